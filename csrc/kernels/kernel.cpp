// kernels/kernel.cpp: name the operations, and choose a level.
#include "kernels/kernel.h"

#include <array>    // std::array
#include <utility>  // std::pair

#include "kernels/level.h"
#include "kernels/sum.h"

namespace pyop {

namespace baseline {
extern const KernelLevel level;
Kernel find_sum(int terms, bool less_product, SumTail tail, Element e);
}  // namespace baseline
#ifdef PYOP_KERNEL_X86
namespace v3 {
extern const KernelLevel level;
Kernel find_sum(int terms, bool less_product, SumTail tail, Element e);
}  // namespace v3
namespace v4 {
extern const KernelLevel level;
}
#endif

namespace {

using enum Operation;

constexpr std::pair<std::string_view, Operation> kNames[] = {
    {"add", Add},
    {"subtract", Subtract},
    {"multiply", Multiply},
    {"divide", Divide},
    {"true_divide", Divide},
    {"minimum", Minimum},
    {"maximum", Maximum},
    {"negative", Negative},
    {"positive", Positive},
    {"absolute", Absolute},
    {"fabs", Absolute},
    {"sign", Sign},
    {"square", Square},
    {"sqrt", Sqrt},
    {"reciprocal", Reciprocal},
    {"floor", Floor},
    {"ceil", Ceil},
    {"trunc", Trunc},
    {"rint", Rint},
    {"copysign", Copysign},
    {"less", Less},
    {"less_equal", LessEqual},
    {"greater", Greater},
    {"greater_equal", GreaterEqual},
    {"equal", Equal},
    {"not_equal", NotEqual},
    {"logical_and", LogicalAnd},
    {"logical_or", LogicalOr},
    {"logical_xor", LogicalXor},
    {"logical_not", LogicalNot},
    {"isnan", IsNan},
    {"isinf", IsInf},
    {"isfinite", IsFinite},
    {"signbit", SignBit},
    {"bitwise_and", BitwiseAnd},
    {"bitwise_or", BitwiseOr},
    {"bitwise_xor", BitwiseXor},
    {"invert", Invert},
    {"left_shift", LeftShift},
    {"right_shift", RightShift},
    {"where", Where},
};

struct Levels {
    std::array<const KernelLevel*, 3> levels{&baseline::level};
    std::size_t n = 1;

    Levels() {
#ifdef PYOP_KERNEL_X86
        __builtin_cpu_init();
        if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi2"))
            return;
        levels[n++] = &v3::level;
        if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
            !__builtin_cpu_supports("avx512cd") || !__builtin_cpu_supports("avx512dq") ||
            !__builtin_cpu_supports("avx512vl"))
            return;
        levels[n++] = &v4::level;
#endif
    }
};

const Levels kLevels;

const KernelLevel& best() { return *kLevels.levels[kLevels.n - 1]; }

}  // namespace

std::span<const KernelLevel* const> kernel_levels() { return {kLevels.levels.data(), kLevels.n}; }

int n_inputs(Operation op) {
    switch (op) {
        case None:
            return 0;
        case Where:
            return 3;
        case Negative:
        case Positive:
        case Absolute:
        case Sign:
        case Square:
        case Sqrt:
        case Reciprocal:
        case Floor:
        case Ceil:
        case Trunc:
        case Rint:
        case LogicalNot:
        case IsNan:
        case IsInf:
        case IsFinite:
        case SignBit:
        case Invert:
            return 1;
        default:
            return 2;
    }
}

Element result_of(Operation op, Element operands) { return op >= Less && op <= SignBit ? Element::Bool : operands; }

Operation operation_of(std::string_view ufunc_name) {
    for (const auto& [name, op] : kNames)
        if (name == ufunc_name) return op;
    return None;
}

Kernel find_kernel(Operation op, Element operands) { return best().find_kernel(op, operands); }

Kernel find_with_number(Operation op, bool number_first, Element operands) {
    return best().find_with_number(op, number_first, operands);
}

Kernel find_fused(Operation outer, Operation left, Operation right, Element e) {
    return best().find_fused(outer, left, right, e);
}

Kernel find_fused_tail(Operation tail, bool inner_first, Operation outer, Operation left, Operation right, Element e) {
    return best().find_fused_tail(tail, inner_first, outer, left, right, e);
}

// As fast at v3 as above.
Kernel find_sum(int terms, bool less_product, SumTail tail, Element e) {
#ifdef PYOP_KERNEL_X86
    if (kLevels.n > 1) return v3::find_sum(terms, less_product, tail, e);
#endif
    return baseline::find_sum(terms, less_product, tail, e);
}

Kernel find_cast(Element from, Element to) { return best().find_cast(from, to); }

Kernel find_fast(std::string_view ufunc_name, Element e) { return best().find_fast(ufunc_name, e); }

std::span<const ExactFunction* const> exact_functions() { return best().exact_functions(); }

ProductKernel find_product(Element e, std::ptrdiff_t columns) { return best().find_product(e, columns); }

void gather(char* to, const char* from, std::ptrdiff_t stride, std::ptrdiff_t n, std::size_t itemsize) {
    best().gather(to, from, stride, n, itemsize);
}

void scatter(char* to, std::ptrdiff_t stride, const char* from, std::ptrdiff_t n, std::size_t itemsize) {
    best().scatter(to, stride, from, n, itemsize);
}

}  // namespace pyop
