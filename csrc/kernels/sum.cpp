// kernels/sum.cpp: sums of several terms in one pass: each term is read once, and nothing between is stored.
#include "kernels/sum.h"

#include "kernels/loops.h"

namespace pyop::PYOP_KERNEL_LEVEL {

Kernel find_sum(int terms, bool less_product, SumTail tail, Element e);

namespace {

template <int terms, bool less_product, SumTail tail, class T>
void sum(char* const* data, std::ptrdiff_t n) {
    constexpr int inner = less_product ? terms + 2 : terms;  // operands of the sum
    constexpr bool scaled = tail != SumTail::None, added = tail == SumTail::ScaledAdded;
    const T *x0 = in<T>(data, 0), *x1 = in<T>(data, 1), *x2 = in<T>(data, 2);
    const T *x3 = in<T>(data, terms > 3 ? 3 : 0), *x4 = in<T>(data, terms > 4 ? 4 : 0);
    const T* x5 = in<T>(data, terms > 5 ? 5 : 0);
    const T *y = in<T>(data, less_product ? terms : 0), *z = in<T>(data, less_product ? terms + 1 : 0);
    const T *q = in<T>(data, scaled ? inner : 0), *v = in<T>(data, added ? inner + 1 : 0);
    T* to = out<T>(data, inner + scaled + added);
    if (n == 0) return;
    const T factor = scaled && less_product ? *y : T{}, scale = scaled ? *q : T{};
    PYOP_INDEPENDENT
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        T s = (x0[i] + x1[i]) + x2[i];
        if constexpr (terms > 3) s = s + x3[i];
        if constexpr (terms > 4) s = s + x4[i];
        if constexpr (terms > 5) s = s + x5[i];
        if constexpr (less_product) s = s - (scaled ? factor : y[i]) * z[i];
        if constexpr (scaled) s = scale * s;
        if constexpr (added) s = v[i] + s;
        to[i] = s;
    }
}

template <class T>
Kernel find(int terms, bool less_product) {
    constexpr SumTail tail = SumTail::None;
    switch (terms) {
        case 3:
            return less_product ? &sum<3, true, tail, T> : nullptr;
        case 4:
            return less_product ? &sum<4, true, tail, T> : &sum<4, false, tail, T>;
        case 5:
            return less_product ? &sum<5, true, tail, T> : &sum<5, false, tail, T>;
        case 6:
            return less_product ? nullptr : &sum<6, false, tail, T>;
        default:
            return nullptr;
    }
}

#if defined(__AVX2__) || !defined(PYOP_KERNEL_X86)
template <class T>
Kernel find(int terms, bool less_product, SumTail tail) {
    if (tail == SumTail::None) return find<T>(terms, less_product);
    if (tail == SumTail::Scaled && !less_product)
        return terms == 4   ? &sum<4, false, SumTail::Scaled, T>
               : terms == 5 ? &sum<5, false, SumTail::Scaled, T>
                            : nullptr;
    if (tail == SumTail::ScaledAdded && less_product)
        return terms == 4   ? &sum<4, true, SumTail::ScaledAdded, T>
               : terms == 6 ? &sum<6, true, SumTail::ScaledAdded, T>
                            : nullptr;
    return nullptr;
}
#else
template <class T>
Kernel find(int terms, bool less_product, SumTail tail) {
    return tail == SumTail::None ? find<T>(terms, less_product) : nullptr;
}
#endif

}  // namespace

Kernel find_sum(int terms, bool less_product, SumTail tail, Element e) {
    if (e == Element::F32) return find<float>(terms, less_product, tail);
    if (e == Element::F64) return find<double>(terms, less_product, tail);
    return nullptr;
}

}  // namespace pyop::PYOP_KERNEL_LEVEL
