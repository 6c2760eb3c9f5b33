// kernels/fused.cpp: two or three of + - * / in one pass, as + - * / of which one or both operands are + - * /.
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

Kernel find_fused(Operation outer, Operation left, Operation right, Element e) {
    if (e == Element::F32) return find<float>(outer, left, right);
    if (e == Element::F64) return find<double>(outer, left, right);
    return nullptr;
}

}  // namespace pyop::PYOP_KERNEL_LEVEL
