// kernels/fused.cpp: compute + - * / with a number; two or three of + - * / in one pass, as + - * / of which one or
// both operands are + - * /; and sums with a product in them with one more operation on them.
//
// Each operation rounds by itself, so the bits are those of one pass an operation; what is saved is the traffic of
// the intermediate results.
#include "kernels/loops.h"

namespace pyop::PYOP_KERNEL_LEVEL {

namespace {

template <Operation op, class T>
T apply(T x, T y) {
    if constexpr (op == Operation::Add) return x + y;
    if constexpr (op == Operation::Subtract) return x - y;
    if constexpr (op == Operation::Multiply) return x * y;
    if constexpr (op == Operation::Divide) return x / y;
}

template <Operation op, bool number_first, class T>
void with_number(char* const* data, std::ptrdiff_t n) {
    const T *x = in<T>(data, 0), number = *in<T>(data, 1);
    T* to = out<T>(data, 2);
    PYOP_UNROLLED
    PYOP_INDEPENDENT
    for (std::ptrdiff_t i = 0; i < n; ++i) to[i] = number_first ? apply<op>(number, x[i]) : apply<op>(x[i], number);
}

template <class T>
Kernel find_with_number_of(Operation op, bool number_first) {
    switch (op) {
        case Operation::Add:
            return number_first ? &with_number<Operation::Add, true, T> : &with_number<Operation::Add, false, T>;
        case Operation::Subtract:
            return number_first ? &with_number<Operation::Subtract, true, T>
                                : &with_number<Operation::Subtract, false, T>;
        case Operation::Multiply:
            return number_first ? &with_number<Operation::Multiply, true, T>
                                : &with_number<Operation::Multiply, false, T>;
        case Operation::Divide:
            return number_first ? &with_number<Operation::Divide, true, T> : &with_number<Operation::Divide, false, T>;
        default:
            return nullptr;
    }
}

template <Operation outer, Operation left, class T>
void fused_left(char* const* data, std::ptrdiff_t n) {
    const T *x = in<T>(data, 0), *y = in<T>(data, 1), *z = in<T>(data, 2);
    T* to = out<T>(data, 3);
    PYOP_INDEPENDENT
    for (std::ptrdiff_t i = 0; i < n; ++i) to[i] = apply<outer>(apply<left>(x[i], y[i]), z[i]);
}

template <Operation outer, Operation right, class T>
void fused_right(char* const* data, std::ptrdiff_t n) {
    const T *z = in<T>(data, 0), *x = in<T>(data, 1), *y = in<T>(data, 2);
    T* to = out<T>(data, 3);
    PYOP_INDEPENDENT
    for (std::ptrdiff_t i = 0; i < n; ++i) to[i] = apply<outer>(z[i], apply<right>(x[i], y[i]));
}

template <Operation outer, Operation left, Operation right, class T>
void fused_both(char* const* data, std::ptrdiff_t n) {
    const T *x = in<T>(data, 0), *y = in<T>(data, 1), *z = in<T>(data, 2), *w = in<T>(data, 3);
    T* to = out<T>(data, 4);
    PYOP_INDEPENDENT
    for (std::ptrdiff_t i = 0; i < n; ++i) to[i] = apply<outer>(apply<left>(x[i], y[i]), apply<right>(z[i], w[i]));
}

// The kernel that computes `Inner` of all operands but one, and `tail` of that and the one, which comes first or last.
template <Operation tail, bool inner_first, class Inner, class T>
void fused_tail(char* const* data, std::ptrdiff_t n) {
    constexpr int inputs = Inner::inputs, first = inner_first ? 0 : 1;
    const T* v = in<T>(data, inner_first ? inputs : 0);
    const T *x = in<T>(data, first), *y = in<T>(data, first + 1), *z = in<T>(data, first + 2);
    const T* w = in<T>(data, inputs == 4 ? first + 3 : first);
    T* to = out<T>(data, inputs + 1);
    PYOP_INDEPENDENT
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        const T inner = Inner::of(x[i], y[i], z[i], w[i]);
        to[i] = inner_first ? apply<tail>(inner, v[i]) : apply<tail>(v[i], inner);
    }
}

template <Operation outer, class T>
struct ProductFirst {
    static constexpr int inputs = 3;
    static T of(T x, T y, T z, T) { return apply<outer>(x * y, z); }
};
template <Operation outer, class T>
struct ProductLast {
    static constexpr int inputs = 3;
    static T of(T x, T y, T z, T) { return apply<outer>(x, y * z); }
};
template <Operation outer, class T>
struct TwoProducts {
    static constexpr int inputs = 4;
    static T of(T x, T y, T z, T w) { return apply<outer>(x * y, z * w); }
};

template <class Inner, class T>
Kernel find_tail_of(Operation tail, bool inner_first) {
    using enum Operation;
    switch (tail) {
        case Add:
            return inner_first ? &fused_tail<Add, true, Inner, T> : &fused_tail<Add, false, Inner, T>;
        case Subtract:
            return inner_first ? &fused_tail<Subtract, true, Inner, T> : &fused_tail<Subtract, false, Inner, T>;
        case Multiply:
            return inner_first ? &fused_tail<Multiply, true, Inner, T> : &fused_tail<Multiply, false, Inner, T>;
        default:
            return nullptr;
    }
}

template <Operation outer, class T>
Kernel find_tail(Operation tail, bool inner_first, Operation left, Operation right) {
    using enum Operation;
    if (left == Multiply && right == None) return find_tail_of<ProductFirst<outer, T>, T>(tail, inner_first);
    if (left == None && right == Multiply) return find_tail_of<ProductLast<outer, T>, T>(tail, inner_first);
    if (left == Multiply && right == Multiply) return find_tail_of<TwoProducts<outer, T>, T>(tail, inner_first);
    return nullptr;
}

// chosen(op, f): f called with op as a compile-time constant.
template <Operation op>
using Constant = std::integral_constant<Operation, op>;

template <class F>
Kernel chosen(Operation op, F f) {
    switch (op) {
        case Operation::Add:
            return f(Constant<Operation::Add>());
        case Operation::Subtract:
            return f(Constant<Operation::Subtract>());
        case Operation::Multiply:
            return f(Constant<Operation::Multiply>());
        case Operation::Divide:
            return f(Constant<Operation::Divide>());
        default:
            return nullptr;
    }
}

template <class T>
Kernel find(Operation outer, Operation left, Operation right) {
    return chosen(outer, [&](auto o) {
        if (right == Operation::None) return chosen(left, [&](auto l) -> Kernel { return &fused_left<o(), l(), T>; });
        if (left == Operation::None) return chosen(right, [&](auto r) -> Kernel { return &fused_right<o(), r(), T>; });
        return chosen(left, [&](auto l) {
            return chosen(right, [&](auto r) -> Kernel { return &fused_both<o(), l(), r(), T>; });
        });
    });
}

}  // namespace

// Where levels are compiled, the lowest one is for processors from before 2013: they take one pass an operation, with
// the same bits.
#ifdef PYOP_KERNEL_X86

Kernel find_computed_with_number(Operation, bool, Element) { return nullptr; }
Kernel find_fused(Operation, Operation, Operation, Element) { return nullptr; }
Kernel find_fused_tail(Operation, bool, Operation, Operation, Operation, Element) { return nullptr; }

#else

Kernel find_computed_with_number(Operation op, bool number_first, Element e) {
    if (e == Element::F32) return find_with_number_of<float>(op, number_first);
    if (e == Element::F64) return find_with_number_of<double>(op, number_first);
    return nullptr;
}

Kernel find_fused(Operation outer, Operation left, Operation right, Element e) {
    if (e == Element::F32) return find<float>(outer, left, right);
    if (e == Element::F64) return find<double>(outer, left, right);
    return nullptr;
}

Kernel find_fused_tail(Operation tail, bool inner_first, Operation outer, Operation left, Operation right, Element e) {
    const bool wide = e == Element::F64;
    if (!wide && e != Element::F32) return nullptr;
    if (outer == Operation::Add)
        return wide ? find_tail<Operation::Add, double>(tail, inner_first, left, right)
                    : find_tail<Operation::Add, float>(tail, inner_first, left, right);
    if (outer == Operation::Subtract)
        return wide ? find_tail<Operation::Subtract, double>(tail, inner_first, left, right)
                    : find_tail<Operation::Subtract, float>(tail, inner_first, left, right);
    return nullptr;
}

#endif

}  // namespace pyop::PYOP_KERNEL_LEVEL
