// kernels/quiet.h: compare numbers without touching the floating-point flags, as NumPy does.
//
// The instructions that compilers choose for < and for the smaller of two numbers raise "invalid" for a NaN, also for
// __builtin_isless once it is made a vector. From AVX on there are quiet ones, used here by hand; before, the flags
// are looked at before and after, and written, which is slow, only if there was a NaN. What still raises "invalid" with
// AVX is a signalling NaN, which no computation makes; == and != are quiet by themselves.
#pragma once

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "kernels/flags.h"
#include "kernels/loops.h"

namespace pyop::PYOP_KERNEL_LEVEL {

// What is done with a vector of numbers; here of one, as the compiler likes to make it several.
template <class T>
struct Lanes {
    using V = T;
    static constexpr int n = 1;
    static V all(T x) { return x; }
    static bool less(T x, T y) { return x < y; }
    static bool less_equal(T x, T y) { return x <= y; }
    static bool equal(T x, T y) { return x == y; }
    static bool not_equal(T x, T y) { return x != y; }
    static bool is_nan(T x) { return x != x; }
    static bool any(bool x, bool y) { return x | y; }
    static T but(T x, T y) { return static_cast<T>(x & ~y); }
    static T choose(bool condition, T x, T y) { return condition ? x : y; }
};

#if defined(__AVX2__)

template <>
struct Lanes<double> {
    using V = __m256d;
    static constexpr int n = 4;
    static __m256i first(std::ptrdiff_t count) {
        return _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3));
    }
    static V load(const double* p) { return _mm256_loadu_pd(p); }
    static V load(const double* p, __m256i some) { return _mm256_maskload_pd(p, some); }
    static void store(double* p, V v) { _mm256_storeu_pd(p, v); }
    static void store(double* p, V v, __m256i some) { _mm256_maskstore_pd(p, some, v); }
    static V all(double x) { return _mm256_set1_pd(x); }
    static V less(V x, V y) { return _mm256_cmp_pd(x, y, _CMP_LT_OQ); }
    static V less_equal(V x, V y) { return _mm256_cmp_pd(x, y, _CMP_LE_OQ); }
    static V equal(V x, V y) { return _mm256_cmp_pd(x, y, _CMP_EQ_OQ); }
    static V not_equal(V x, V y) { return _mm256_cmp_pd(x, y, _CMP_NEQ_UQ); }
    static V is_nan(V x) { return _mm256_cmp_pd(x, x, _CMP_UNORD_Q); }
    static V any(V x, V y) { return _mm256_or_pd(x, y); }
    static V choose(V condition, V x, V y) { return _mm256_blendv_pd(y, x, condition); }
};

template <>
struct Lanes<float> {
    using V = __m256;
    static constexpr int n = 8;
    static __m256i first(std::ptrdiff_t count) {
        return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)),
                                  _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    }
    static V load(const float* p) { return _mm256_loadu_ps(p); }
    static V load(const float* p, __m256i some) { return _mm256_maskload_ps(p, some); }
    static void store(float* p, V v) { _mm256_storeu_ps(p, v); }
    static void store(float* p, V v, __m256i some) { _mm256_maskstore_ps(p, some, v); }
    static V all(float x) { return _mm256_set1_ps(x); }
    static V less(V x, V y) { return _mm256_cmp_ps(x, y, _CMP_LT_OQ); }
    static V less_equal(V x, V y) { return _mm256_cmp_ps(x, y, _CMP_LE_OQ); }
    static V equal(V x, V y) { return _mm256_cmp_ps(x, y, _CMP_EQ_OQ); }
    static V not_equal(V x, V y) { return _mm256_cmp_ps(x, y, _CMP_NEQ_UQ); }
    static V is_nan(V x) { return _mm256_cmp_ps(x, x, _CMP_UNORD_Q); }
    static V any(V x, V y) { return _mm256_or_ps(x, y); }
    static V choose(V condition, V x, V y) { return _mm256_blendv_ps(y, x, condition); }
};

// F::of<Lanes>(x, y) of vectors. What is left at the end is loaded as numbers and zeros, and compared quietly too.
template <class F, class T>
void quiet_binary(char* const* data, std::ptrdiff_t n) {
    using L = Lanes<T>;
    const T *x = in<T>(data, 0), *y = in<T>(data, 1);
    T* to = out<T>(data, 2);
    std::ptrdiff_t i = 0;
    for (; i + L::n <= n; i += L::n) L::store(to + i, F::template of<L>(L::load(x + i), L::load(y + i)));
    if (i == n) return;
    const __m256i rest = L::first(n - i);
    L::store(to + i, F::template of<L>(L::load(x + i, rest), L::load(y + i, rest)), rest);
}

template <class F, class T>
void quiet_unary(char* const* data, std::ptrdiff_t n) {
    using L = Lanes<T>;
    const T* x = in<T>(data, 0);
    T* to = out<T>(data, 1);
    std::ptrdiff_t i = 0;
    for (; i + L::n <= n; i += L::n) L::store(to + i, F::template of<L>(L::load(x + i)));
    if (i == n) return;
    const __m256i rest = L::first(n - i);
    L::store(to + i, F::template of<L>(L::load(x + i, rest)), rest);
}

#else

template <class F, class T>
void quiet_binary(char* const* data, std::ptrdiff_t n) {
    const KeepFlags keep;
    const T *x = in<T>(data, 0), *y = in<T>(data, 1);
    T* to = out<T>(data, 2);
    PYOP_INDEPENDENT
    for (std::ptrdiff_t i = 0; i < n; ++i) to[i] = F::template of<Lanes<T> >(x[i], y[i]);
}

template <class F, class T>
void quiet_unary(char* const* data, std::ptrdiff_t n) {
    const KeepFlags keep;
    const T* x = in<T>(data, 0);
    T* to = out<T>(data, 1);
    PYOP_INDEPENDENT
    for (std::ptrdiff_t i = 0; i < n; ++i) to[i] = F::template of<Lanes<T> >(x[i]);
}

#endif

}  // namespace pyop::PYOP_KERNEL_LEVEL
