// kernels/product.cpp: multiply small matrices, of which a call of BLAS takes longer than their arithmetic.
#include "kernels/loops.h"

#include <iterator>  // std::size

#ifdef __FMA__
#include <immintrin.h>
#endif

namespace pyop::PYOP_KERNEL_LEVEL {

namespace {

#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)

// x * y + sum without rounding between, for one number or a few side by side.
template <class T, int width>
struct Lanes;
template <>
struct Lanes<double, 1> {
    double sum = 0;
    void add(double x, const double* y) { sum = __builtin_fma(x, *y, sum); }
    void store(double* to) const { *to = sum; }
};
template <>
struct Lanes<float, 1> {
    float sum = 0;
    void add(float x, const float* y) { sum = __builtin_fmaf(x, *y, sum); }
    void store(float* to) const { *to = sum; }
};
#ifdef __FMA__
template <>
struct Lanes<double, 2> {
    __m128d sum = _mm_setzero_pd();
    void add(double x, const double* y) { sum = _mm_fmadd_pd(_mm_set1_pd(x), _mm_loadu_pd(y), sum); }
    void store(double* to) const { _mm_storeu_pd(to, sum); }
};
template <>
struct Lanes<double, 4> {
    __m256d sum = _mm256_setzero_pd();
    void add(double x, const double* y) { sum = _mm256_fmadd_pd(_mm256_set1_pd(x), _mm256_loadu_pd(y), sum); }
    void store(double* to) const { _mm256_storeu_pd(to, sum); }
};
template <>
struct Lanes<float, 4> {
    __m128 sum = _mm_setzero_ps();
    void add(float x, const float* y) { sum = _mm_fmadd_ps(_mm_set1_ps(x), _mm_loadu_ps(y), sum); }
    void store(float* to) const { _mm_storeu_ps(to, sum); }
};

template <class T>
constexpr int widest(int columns) {
    if (columns >= 4) return 4;
    return columns >= 2 && std::is_same_v<T, double> ? 2 : 1;
}
#else
template <class T>
constexpr int widest(int) {
    return 1;
}
#endif

// A row of the result.
template <class T, int columns>
struct Row {
    static constexpr int kWidth = widest<T>(columns);
    Lanes<T, kWidth> first;
    Row<T, columns - kWidth> rest;

    void add(T x, const T* y) {
        first.add(x, y);
        rest.add(x, y + kWidth);
    }
    void store(T* to) const {
        first.store(to);
        rest.store(to + kWidth);
    }
};
template <class T>
struct Row<T, 0> {
    void add(T, const T*) {}
    void store(T*) const {}
};

// Whether it is neither infinite nor NaN; a comparison of floating-point numbers would raise flags.
inline bool is_finite(double x) { return (__builtin_bit_cast(uint64_t, x) << 1) < (uint64_t{0x7ff} << 53); }
inline bool is_finite(float x) { return (__builtin_bit_cast(uint32_t, x) << 1) < (uint32_t{0xff} << 24); }

// The rows of y come side by side first.
template <class T, int columns>
bool multiply(const Product& p) {
    T y[kMostInProduct][columns];
    for (std::ptrdiff_t k = 0; k < p.inner; ++k)
        for (std::ptrdiff_t j = 0; j < columns; ++j)
            y[k][j] = *reinterpret_cast<const T*>(p.y + k * p.y_row + j * p.y_column);
    bool finite = true;
    for (std::ptrdiff_t i = 0; i < p.rows; ++i) {
        const char* const x = p.x + i * p.x_row;
        Row<T, columns> row;
        for (std::ptrdiff_t k = 0; k < p.inner; ++k) row.add(*reinterpret_cast<const T*>(x + k * p.x_column), y[k]);
        T* const to = reinterpret_cast<T*>(p.to) + i * columns;
        row.store(to);
        for (int j = 0; j < columns; ++j) finite &= is_finite(to[j]);
    }
    return finite;
}

template <class T>
ProductKernel of_columns(std::ptrdiff_t columns) {
    constexpr ProductKernel kKernels[] = {&multiply<T, 2>, &multiply<T, 3>, &multiply<T, 4>, &multiply<T, 5>,
                                          &multiply<T, 6>};
    static_assert(std::size(kKernels) == kMostInProduct - 1);
    return columns >= 2 && columns <= kMostInProduct ? kKernels[columns - 2] : nullptr;
}

#else

template <class T>
ProductKernel of_columns(std::ptrdiff_t) {
    return nullptr;
}

#endif

}  // namespace

ProductKernel find_product(Element e, std::ptrdiff_t columns) {
    if (e == Element::F64) return of_columns<double>(columns);
    return e == Element::F32 ? of_columns<float>(columns) : nullptr;
}

}  // namespace pyop::PYOP_KERNEL_LEVEL
