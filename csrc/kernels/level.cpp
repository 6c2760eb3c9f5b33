// kernels/level.cpp: fill the table of one level.
#include "kernels/level.h"

#include "kernels/loops.h"

// What the level below does as fast is compiled for that one alone.
#ifndef PYOP_KERNEL_BELOW
#define PYOP_KERNEL_BELOW PYOP_KERNEL_LEVEL
#endif

#define PYOP_KERNEL_TEXT_(x) #x
#define PYOP_KERNEL_TEXT(x) PYOP_KERNEL_TEXT_(x)

namespace pyop::PYOP_KERNEL_BELOW {

Kernel find_arithmetic(Operation op, Element e);
Kernel find_extremum(Operation op, Element e);
Kernel find_rounding(Operation op, Element e);
Kernel find_computed_with_number(Operation op, bool number_first, Element e);
Kernel find_fused(Operation outer, Operation left, Operation right, Element e);
Kernel find_fused_tail(Operation tail, bool inner_first, Operation outer, Operation left, Operation right, Element e);
std::span<const ExactFunction* const> exact_functions();
ProductKernel find_product(Element e, std::ptrdiff_t columns);
void gather(char* to, const char* from, std::ptrdiff_t stride, std::ptrdiff_t n, std::size_t itemsize);
void scatter(char* to, std::ptrdiff_t stride, const char* from, std::ptrdiff_t n, std::size_t itemsize);

}  // namespace pyop::PYOP_KERNEL_BELOW

namespace pyop::PYOP_KERNEL_LEVEL {

Kernel find_fast(std::string_view ufunc_name, Element e);

namespace below = pyop::PYOP_KERNEL_BELOW;

namespace {

Kernel find_kernel(Operation op, Element e) {
    for (const auto find : {find_arithmetic, find_extremum, find_comparison, find_bits, find_select,
                            below::find_rounding, below::find_arithmetic, below::find_extremum})
        if (const Kernel kernel = find(op, e)) return kernel;
    return nullptr;
}

Kernel find_with_number(Operation op, bool number_first, Element e) {
    if (const Kernel kernel = find_compared_with_number(op, number_first, e)) return kernel;
    return below::find_computed_with_number(op, number_first, e);
}

}  // namespace

extern const KernelLevel level;
const KernelLevel level = {PYOP_KERNEL_TEXT(PYOP_KERNEL_LEVEL),
                           find_kernel,
                           find_with_number,
                           below::find_fused,
                           below::find_fused_tail,
                           find_cast,
                           find_fast,
                           below::exact_functions,
                           below::find_product,
                           below::gather,
                           below::scatter};

}  // namespace pyop::PYOP_KERNEL_LEVEL
