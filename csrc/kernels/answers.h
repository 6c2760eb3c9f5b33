// kernels/answers.h: loop over numbers of four and eight bytes with bool results.
//
// Compilers make such loops of narrow pieces: the answers of a vector fill a quarter or an eighth of one. Here those of
// 32 elements are packed into one vector of bytes. What is left over is done a vector at a time, the last one padded
// with zeros, of which all that is asked here is answered without a flag.
#pragma once

#include <utility>  // std::index_sequence

#include "kernels/quiet.h"

namespace pyop::PYOP_KERNEL_LEVEL {

#if defined(__AVX2__)

// The answers of a vector are in lanes of all ones or all zeros.
inline __m256i as_lanes(__m256i v) { return v; }
inline __m256i as_lanes(__m256d v) { return _mm256_castpd_si256(v); }
inline __m256i as_lanes(__m256 v) { return _mm256_castps_si256(v); }

template <class T, int64_t kFlip>
struct Lanes64 {
    using V = __m256i;
    static constexpr int n = 4;
    static __m256i first(std::ptrdiff_t count) { return Lanes<double>::first(count); }
    static V load(const T* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
    static V load(const T* p, __m256i some) {
        return _mm256_maskload_epi64(reinterpret_cast<const long long*>(p), some);
    }
    static V all(T x) { return _mm256_set1_epi64x(static_cast<int64_t>(x)); }
    static V less(V x, V y) {
        const V flip = _mm256_set1_epi64x(kFlip);
        return _mm256_cmpgt_epi64(_mm256_xor_si256(y, flip), _mm256_xor_si256(x, flip));
    }
    static V equal(V x, V y) { return _mm256_cmpeq_epi64(x, y); }
    static V but(V x, V y) { return _mm256_andnot_si256(y, x); }
    static V no(V x) { return _mm256_xor_si256(x, _mm256_set1_epi64x(-1)); }
    static V less_equal(V x, V y) { return no(less(y, x)); }
    static V not_equal(V x, V y) { return no(equal(x, y)); }
};
template <>
struct Lanes<int64_t> : Lanes64<int64_t, 0> {};
template <>
struct Lanes<uint64_t> : Lanes64<uint64_t, INT64_MIN> {};

template <class T, int32_t kFlip>
struct Lanes32 {
    using V = __m256i;
    static constexpr int n = 8;
    static __m256i first(std::ptrdiff_t count) { return Lanes<float>::first(count); }
    static V load(const T* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
    static V load(const T* p, __m256i some) { return _mm256_maskload_epi32(reinterpret_cast<const int*>(p), some); }
    static V all(T x) { return _mm256_set1_epi32(static_cast<int32_t>(x)); }
    static V less(V x, V y) {
        const V flip = _mm256_set1_epi32(kFlip);
        return _mm256_cmpgt_epi32(_mm256_xor_si256(y, flip), _mm256_xor_si256(x, flip));
    }
    static V equal(V x, V y) { return _mm256_cmpeq_epi32(x, y); }
    static V but(V x, V y) { return _mm256_andnot_si256(y, x); }
    static V no(V x) { return _mm256_xor_si256(x, _mm256_set1_epi32(-1)); }
    static V less_equal(V x, V y) { return no(less(y, x)); }
    static V not_equal(V x, V y) { return no(equal(x, y)); }
};
template <>
struct Lanes<int32_t> : Lanes32<int32_t, 0> {};
template <>
struct Lanes<uint32_t> : Lanes32<uint32_t, INT32_MIN> {};

// Answers of 32 elements, by vectors of eight lanes or of four, as 32 bools.
inline __m256i packed(const __m256i (&m)[4]) {
    const __m256i v = _mm256_packs_epi16(_mm256_packs_epi32(m[0], m[1]), _mm256_packs_epi32(m[2], m[3]));
    return _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}
inline __m256i halves(__m256i a, __m256i b) {
    return _mm256_castps_si256(
        _mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), _MM_SHUFFLE(2, 0, 2, 0)));
}
inline __m256i packed(const __m256i (&m)[8]) {
    const __m256i v = _mm256_packs_epi16(_mm256_packs_epi32(halves(m[0], m[1]), halves(m[2], m[3])),
                                         _mm256_packs_epi32(halves(m[4], m[5]), halves(m[6], m[7])));
    const __m128i low = _mm256_castsi256_si128(v), high = _mm256_extracti128_si256(v, 1);
    return _mm256_set_m128i(_mm_unpackhi_epi16(low, high), _mm_unpacklo_epi16(low, high));
}
// `answer(load)` gives the lanes of the elements that `load` loads of an operand.
template <class T, class Answer, std::size_t... k>
__attribute__((always_inline)) inline __m256i answer_32(std::ptrdiff_t i, const Answer& answer,
                                                        std::index_sequence<k...>) {
    using L = Lanes<T>;
    const __m256i lanes[] = {
        as_lanes(answer([&](const T* x) { return L::load(x + i + static_cast<std::ptrdiff_t>(k) * L::n); }))...};
    return packed(lanes);
}

template <class T, class Answer>
__attribute__((always_inline)) inline void answer_all(Byte* to, std::ptrdiff_t n, const Answer& answer) {
    using L = Lanes<T>;
    const __m256i one = _mm256_set1_epi8(1);
    std::ptrdiff_t i = 0;
    for (; i + 32 <= n; i += 32) {
        const __m256i answers = answer_32<T>(i, answer, std::make_index_sequence<32 / L::n>());
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), _mm256_and_si256(answers, one));
    }
    for (; i < n; i += L::n) {
        const __m256i some = L::first(n - i);
        alignas(32) Byte each[32];
        _mm256_store_si256(reinterpret_cast<__m256i*>(each),
                           as_lanes(answer([&](const T* x) { return L::load(x + i, some); })));
        for (int k = 0; k < L::n && i + k < n; ++k) to[i + k] = each[static_cast<std::size_t>(k) * sizeof(T)] & 1;
    }
}

template <class T>
constexpr bool kInVectors = Lanes<T>::n > 1;

#else

template <class T>
constexpr bool kInVectors = false;
template <class T, class Answer>
void answer_all(Byte* to, std::ptrdiff_t n, const Answer& answer);

#endif

// F::of<Lanes>(x, y) of all elements.
template <class F, class T>
void answers_of_two(char* const* data, std::ptrdiff_t n) {
    const T *x = in<T>(data, 0), *y = in<T>(data, 1);
    Byte* to = out<Byte>(data, 2);
    if constexpr (kInVectors<T>) {
        answer_all<T>(to, n, [=](const auto& load) { return F::template of<Lanes<T>>(load(x), load(y)); });
    } else {
        const KeepFlags keep;
        PYOP_INDEPENDENT
        for (std::ptrdiff_t i = 0; i < n; ++i) to[i] = F::template of<Lanes<T>>(x[i], y[i]);
    }
}

// F::of<Lanes>(x, y) of all elements x and one number y.
template <class F, class T>
void answers_with_number(char* const* data, std::ptrdiff_t n) {
    const T *x = in<T>(data, 0), y = *in<T>(data, 1);
    Byte* to = out<Byte>(data, 2);
    if constexpr (kInVectors<T>) {
        const auto all = Lanes<T>::all(y);
        answer_all<T>(to, n, [=](const auto& load) { return F::template of<Lanes<T>>(load(x), all); });
    } else {
        const KeepFlags keep;
        PYOP_INDEPENDENT
        for (std::ptrdiff_t i = 0; i < n; ++i) to[i] = F::template of<Lanes<T>>(x[i], y);
    }
}

// F::of<Lanes>(x) of all elements.
template <class F, class T>
void answers_of_one(char* const* data, std::ptrdiff_t n) {
    const T* x = in<T>(data, 0);
    Byte* to = out<Byte>(data, 1);
    if constexpr (kInVectors<T>) {
        answer_all<T>(to, n, [=](const auto& load) { return F::template of<Lanes<T>>(load(x)); });
    } else {
        PYOP_INDEPENDENT
        for (std::ptrdiff_t i = 0; i < n; ++i) to[i] = F::template of<Lanes<T>>(x[i]);
    }
}

}  // namespace pyop::PYOP_KERNEL_LEVEL
