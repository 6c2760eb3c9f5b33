// kernels/sum.cpp: sums of several terms in one pass: each term is read once, and nothing between is stored.
#include "kernels/sum.h"

#include "kernels/loops.h"

namespace pyop::PYOP_KERNEL_LEVEL {

Kernel find_sum(int terms, bool less_product, Element e);

namespace {

template <int terms, bool less_product, class T>
void sum(char* const* data, std::ptrdiff_t n) {
    constexpr int last = less_product ? terms + 2 : terms;
    const T *x0 = in<T>(data, 0), *x1 = in<T>(data, 1), *x2 = in<T>(data, 2);
    const T *x3 = in<T>(data, terms > 3 ? 3 : 0), *x4 = in<T>(data, terms > 4 ? 4 : 0);
    const T* x5 = in<T>(data, terms > 5 ? 5 : 0);
    const T *y = in<T>(data, less_product ? terms : 0), *z = in<T>(data, less_product ? terms + 1 : 0);
    T* to = out<T>(data, last);
    PYOP_INDEPENDENT
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        T s = (x0[i] + x1[i]) + x2[i];
        if constexpr (terms > 3) s = s + x3[i];
        if constexpr (terms > 4) s = s + x4[i];
        if constexpr (terms > 5) s = s + x5[i];
        if constexpr (less_product) s = s - y[i] * z[i];
        to[i] = s;
    }
}

template <class T>
Kernel find(int terms, bool less_product) {
    switch (terms) {
        case 3:
            return less_product ? &sum<3, true, T> : nullptr;
        case 4:
            return less_product ? &sum<4, true, T> : &sum<4, false, T>;
        case 5:
            return less_product ? &sum<5, true, T> : &sum<5, false, T>;
        case 6:
            return less_product ? nullptr : &sum<6, false, T>;
        default:
            return nullptr;
    }
}

}  // namespace

Kernel find_sum(int terms, bool less_product, Element e) {
    if (e == Element::F32) return find<float>(terms, less_product);
    if (e == Element::F64) return find<double>(terms, less_product);
    return nullptr;
}

}  // namespace pyop::PYOP_KERNEL_LEVEL
