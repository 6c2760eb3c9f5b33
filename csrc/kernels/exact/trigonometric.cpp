// kernels/exact/trigonometric.cpp: compute sine and cosine of float64.
//
//     x = k s + r,  s = 2 pi / 128,  |r| <= s / 2        sin x = sin(k s) cos r + cos(k s) sin r
//
// Reduction (Cody and Waite 1980; with fused multiply-adds Muller et al., Handbook of Floating-Point Arithmetic, 2nd
// ed., 11.2): s is two doubles. x - k s1 is exact: it is a multiple of 2^-57, or x itself, and below 2^-5. What s2
// takes off, below 2^-27, leaves two parts. They are off by 2^-79, less where r is large beside that: far below what
// counts, since results that small (kNoZero) are left open where k is not 0.
//
// sin(k s) and cos(k s) come from a table. With |r| < 0.02455 all that is not sin(k s) + cos(k s) r is below 2^-11 of
// the result, so that rounding it costs 2^-64: four terms of each Taylor series are enough (the next are 2^-90 and,
// of the cosine, 2^-78).
#include <cmath>  // ::sin, ::cos

#include "kernels/exact/functions.h"

#if defined(__AVX2__) && defined(__FMA__)

#include "kernels/exact/lanes.h"
#include "kernels/exact/sine_table.h"

namespace pyop::PYOP_KERNEL_LEVEL {

namespace {

// x = k s + r; arguments that are too large are not reduced to anything.
struct Reduced {
    FourInts k;
    Parts r;
};
constexpr double kTooLarge = 0x1p26;
// libm's bound is for what is left when multiples of pi / 2 were taken off. These it knows to 106 or 136 bits, which is
// too little where next to nothing is left: cos(0x1.921fb54442d19p+0), of 2^-53, it has 0.561 units off. Here that part
// of its error is below 2^-30 units.
constexpr double kNoZero = 0x1p-20;

Reduced reduce(Four x) {
    const Nearest k = nearest_of_product(x, all(kStepsPerRadian));
    const Four r1 = minus_fma(k.integer, all(kStep1), x), r = minus_fma(k.integer, all(kStep2), r1);
    return {k.shifted, {r, minus_fma(k.integer, all(kStep2), r1 - r)}};
}

// sin r - r over r^3, and cos r - 1 over r^2.
Four sine_series(Four r2) {
    return fma(fma(fma(all(1.0 / 362880), r2, all(-1.0 / 5040)), r2, all(1.0 / 120)), r2, all(-1.0 / 6));
}
Four cosine_series(Four r2) {
    return fma(fma(fma(all(1.0 / 40320), r2, all(-1.0 / 720)), r2, all(1.0 / 24)), r2, all(-0.5));
}

// The sine of the angle whose sine and cosine are given, and r.
Parts turned(Four sine, Four sine_tail, Four cosine, Four cosine_tail, Parts r, Four sines, Four cosines) {
    const Parts first = product(cosine, r.head);
    const Parts most = sum_of_larger(sine, first.head);  // no row has a sine below s but 0
    Four rest = fma(sine, cosines, sine_tail);
    rest = fma(cosine, sines, rest);
    rest = fma(cosine_tail, r.head, rest);
    rest = fma(cosine, r.tail, rest);
    return {most.head, rest + (first.tail + most.tail)};
}

// `quarter`: of a turn ahead.
Results sine(Four x, Four slack, int quarter) {
    const Reduced reduced = reduce(x);
    const Parts& r = reduced.r;
    const FourInts k = _mm256_add_epi64(reduced.k, _mm256_set1_epi64x(quarter * (kSineSteps / 4)));
    Four row[4];
    rows_of(kSines, _mm256_and_si256(k, _mm256_set1_epi64x(kSineSteps - 1)), row);
    const Four r2 = r.head * r.head;
    const Four sines = r.head * (r2 * sine_series(r2));
    // (r + t)^2 / 2: the tail is far below the bits of r^2 / 2 that count.
    const Four cosines = r2 * cosine_series(r2);
    Results result = round_if_settled(turned(row[0], row[1], row[2], row[3], r, sines, cosines), slack);
    const Four size = absolute(x);
    const Four bounded = _mm256_or_pd(at_least(absolute(result.value), all(kNoZero)), less(size, all(1.0)));
    result.settled = _mm256_and_pd(result.settled, _mm256_and_pd(bounded, less(size, all(kTooLarge))));
    return result;
}

struct Sine {
    static Results of(Four x, Four slack) {
        Results r = sine(x, slack, 0);
        const Four size = absolute(x);
        // x - x^3 / 6 rounds to x. Zeros keep their sign; a subnormal number raises "underflow".
        const Four tiny = less(size, all(0x1p-27));
        r.value = choose(tiny, x, r.value);
        const Four normal = _mm256_or_pd(at_least(size, all(0x1p-1022)), _mm256_cmp_pd(x, all(0.0), _CMP_EQ_OQ));
        r.settled = choose(tiny, normal, r.settled);
        return r;
    }
};

struct Cosine {
    static Results of(Four x, Four slack) { return sine(x, slack, 1); }
};

}  // namespace

// glibc since 2.28 (sysdeps/ieee754/dbl-64/s_sin.c) says "~0.55 ULP" of both as a whole, and 0.518 and less of their
// parts. What can be shown of the latter: to the sine of a multiple of 2^-7, in two parts, it adds a correction below
// 2^-8, in which without fused multiply-adds three roundings of 2^-62 count, and some of 2^-70. The result is above
// 0.125, its units are 2^-55 or more: 0.5 + 3/128 + 0.0002. Below 0.126 the correction to x is 2^-8.5 of it, with five
// roundings: 0.514. A cosine is above 0.7: 0.507. The reduction adds 2^-108, which is nothing beyond kNoZero.
const ExactFunction kExactSine{"sin", &settle<Sine>, &::sin, 0.525, 0.004, 10.0, 0.0, kTooLarge, true};
const ExactFunction kExactCosine{"cos", &settle<Cosine>, &::cos, 0.525, 0.004, 10.0, 0.0, kTooLarge, true};

}  // namespace pyop::PYOP_KERNEL_LEVEL

#endif
