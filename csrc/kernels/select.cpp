// kernels/select.cpp: compute where(condition, x, y), for elements of any meaning.
#include "kernels/loops.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace pyop::PYOP_KERNEL_LEVEL {

namespace {

// Both are read always: values are moved as bits, which raises no flag. A mask instead of a choice, because compilers
// make vectors of the one and not always of the other.
template <class T>
T choose(bool condition, T x, T y) {
    const T mask = static_cast<T>(T{0} - static_cast<T>(condition));
    return static_cast<T>((x & mask) | (y & static_cast<T>(~mask)));
}

struct Pair {
    uint64_t real, imaginary;
};
Pair choose(bool condition, Pair x, Pair y) {
    return {choose(condition, x.real, y.real), choose(condition, x.imaginary, y.imaginary)};
}

template <class T>
void where(char* const* data, std::ptrdiff_t n) {
    const Byte* condition = in<Byte>(data, 0);
    const T *x = in<T>(data, 1), *y = in<T>(data, 2);
    T* to = out<T>(data, 3);
    PYOP_INDEPENDENT
    for (std::ptrdiff_t i = 0; i < n; ++i) to[i] = choose(condition[i] != 0, x[i], y[i]);
}

#if defined(__AVX2__)

// The compiler fills a vector with conditions, and so needs at least 16 elements; by hand it takes 4 or 8.
__m256i zero_lanes(const Byte* condition, uint64_t) {
    uint32_t four;
    __builtin_memcpy(&four, condition, 4);
    return _mm256_cmpeq_epi64(_mm256_cvtepu8_epi64(_mm_cvtsi32_si128(static_cast<int>(four))), _mm256_setzero_si256());
}
__m256i zero_lanes(const Byte* condition, uint32_t) {
    uint64_t eight;
    __builtin_memcpy(&eight, condition, 8);
    return _mm256_cmpeq_epi32(_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<long long>(eight))),
                              _mm256_setzero_si256());
}

template <class T>
void where_lanes(char* const* data, std::ptrdiff_t n) {
    constexpr std::ptrdiff_t kLanes = 32 / sizeof(T);
    const Byte* condition = in<Byte>(data, 0);
    const T *x = in<T>(data, 1), *y = in<T>(data, 2);
    T* to = out<T>(data, 3);
    std::ptrdiff_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
        const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i));
        const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(y + i));
        const __m256i chosen = _mm256_blendv_epi8(a, b, zero_lanes(condition + i, T{}));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), chosen);
    }
    for (; i < n; ++i) to[i] = choose(condition[i] != 0, x[i], y[i]);
}

#else

template <class T>
constexpr Kernel where_lanes = &where<T>;

#endif

}  // namespace

Kernel find_select(Operation op, Element e) {
    if (op != Operation::Where) return nullptr;
    switch (size_of(e)) {
        case 1:
            return &where<uint8_t>;
        case 2:
            return &where<uint16_t>;
        case 4:
            return where_lanes<uint32_t>;
        case 8:
            return where_lanes<uint64_t>;
        case 16:
            return &where<Pair>;
        default:
            return nullptr;
    }
}

}  // namespace pyop::PYOP_KERNEL_LEVEL
