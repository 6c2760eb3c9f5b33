// kernels/sum.cpp: sum several terms in one pass: each term is read once, and nothing between is stored.
#include "kernels/sum.h"

#include "kernels/loops.h"

namespace pyop::PYOP_KERNEL_LEVEL {

Kernel find_sum(int terms, bool less_product, SumTail tail, Element e);

namespace {

#if defined(__AVX2__)
typedef double Doubles __attribute__((vector_size(32)));
typedef float Floats __attribute__((vector_size(32)));

constexpr int kAtOnce = 4;  // vectors
#endif

template <int terms, bool less_product, SumTail tail, class T>
void sum(char* const* data, std::ptrdiff_t n) {
    constexpr int inner = less_product ? terms + 2 : terms;  // operands of the sum
    constexpr bool scaled = tail != SumTail::None, added = tail == SumTail::ScaledAdded;
    constexpr int result = inner + scaled;
    const T *x0 = in<T>(data, 0), *x1 = in<T>(data, 1), *x2 = in<T>(data, 2);
    const T *x3 = in<T>(data, terms > 3 ? 3 : 0), *x4 = in<T>(data, terms > 4 ? 4 : 0);
    const T* x5 = in<T>(data, terms > 5 ? 5 : 0);
    const T *y = in<T>(data, less_product ? terms : 0), *z = in<T>(data, less_product ? terms + 1 : 0);
    const T* q = in<T>(data, scaled ? inner : 0);
    T* const to = out<T>(data, result);
    if (n <= 0) return;
    const T factor = scaled && less_product ? *y : T{}, scale = scaled ? *q : T{};
    // Vectors of elements, or one element; several at once, one operation after the other on all of them: each waits
    // for the last, and few that wait fit into the processor.
    const auto compute = [&]<class V, int at_once>(std::ptrdiff_t i) __attribute__((always_inline)) {
        V s[at_once], last[at_once];
        const auto each = [&](auto f) __attribute__((always_inline)) {
#pragma GCC unroll 4
            for (int u = 0; u < at_once; ++u)
                f(s[u], last[u], i + u * static_cast<std::ptrdiff_t>(sizeof(V) / sizeof(T)));
        };
        const auto of = [](const T* x) __attribute__((always_inline)) {
            V value;
            __builtin_memcpy(&value, x, sizeof value);
            return value;
        };
        each([&](V& v, V&, std::ptrdiff_t k) { v = of(x0 + k) + of(x1 + k); });
        each([&](V& v, V&, std::ptrdiff_t k) { v = v + of(x2 + k); });
        if constexpr (terms > 3) each([&](V& v, V&, std::ptrdiff_t k) { v = v + of(x3 + k); });
        if constexpr (terms > 4) each([&](V& v, V&, std::ptrdiff_t k) { v = v + of(x4 + k); });
        if constexpr (terms > 5) each([&](V& v, V&, std::ptrdiff_t k) { v = v + of(x5 + k); });
        if constexpr (less_product)
            each([&](V& v, V& w, std::ptrdiff_t k) {
                V value = of(z + k);
#if defined(__AVX2__)
                if constexpr (added) asm("" : "+x"(value));  // read once
#endif
                w = value;
                if constexpr (scaled)
                    v = v - factor * w;
                else
                    v = v - of(y + k) * w;
            });
        if constexpr (scaled) each([&](V& v, V&, std::ptrdiff_t) { v = scale * v; });
        if constexpr (added) each([&](V& v, V& w, std::ptrdiff_t) { v = w + v; });
        each([&](V& v, V&, std::ptrdiff_t k) { __builtin_memcpy(to + k, &v, sizeof v); });
    };
#if defined(__AVX2__)
    // By hand: rows are short, and what the compiler makes of their ends is twice as much code, and slower.
    using Vector = std::conditional_t<sizeof(T) == 8, Doubles, Floats>;
    constexpr auto lanes = static_cast<std::ptrdiff_t>(sizeof(Vector) / sizeof(T));
    std::ptrdiff_t i = 0;
    for (; i + kAtOnce * lanes <= n; i += kAtOnce * lanes) compute.template operator()<Vector, kAtOnce>(i);
    if (i < n && n >= lanes) {
        const std::ptrdiff_t last = n - lanes;
        // Unless it is written over an input.
        const bool may_repeat = n % lanes != 0 && !((x0 == to) | (x1 == to) | (x2 == to) | (x3 == to) | (x4 == to) |
                                                    (x5 == to) | (y == to) | (z == to) | (q == to));
        while (i <= last) {
            compute.template operator()<Vector, 1>(i);
            i += lanes;
            // What is left, with elements before it once more.
            if (i > last && i < n && may_repeat) i = last;
        }
    }
    for (; i < n; ++i) {
        compute.template operator()<T, 1>(i);
        asm volatile("");  // no vectors of what does not fill one
    }
#else
    PYOP_INDEPENDENT
    for (std::ptrdiff_t i = 0; i < n; ++i) compute.template operator()<T, 1>(i);
#endif
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
