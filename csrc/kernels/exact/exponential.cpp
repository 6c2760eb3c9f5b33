// kernels/exact/exponential.cpp: compute the exponential functions of float64, to the bases e and 2.
//
//     x = k s + r,  s = log(2) / 128,  |r| <= s / 2        exp x = 2^(k / 128) exp r
//
// The head of s has 32 bits, so that k s_head and the difference to x are exact; r is rounded once, 2^-62. exp r - 1 is
// below 2^-8.5: rounding it costs 2^-62, and its product with the table's number, which is below 2, 2^-61 more. In all
// that is less than 0.007 units in the last place of a result between 0.997 and 2. Its Taylor series has six terms (the
// next is 2^-72). The power of two in front is put on in the end, where results are normal numbers.
//
// To the base 2 s is 1 / 128: r is exact, and it is the first factor of the series that is rounded.
#include <cmath>  // ::exp, ::exp2

#include "kernels/exact/functions.h"

#if defined(__AVX2__) && defined(__FMA__)

#include "kernels/exact/exp_table.h"
#include "kernels/exact/lanes.h"

namespace pyop::PYOP_KERNEL_LEVEL {

namespace {

// What 2^(k / 128) has to be multiplied with, less one.
struct ToE {
    static constexpr double least = -708, most = 709, steps = kExpStepsPerUnit;
    static Four less_one(Four k, Four x) {
        const Four r = minus_fma(k, all(kExpStep2), minus_fma(k, all(kExpStep1), x));
        Four series = fma(all(1.0 / 720), r, all(1.0 / 120));
        series = fma(fma(fma(series, r, all(1.0 / 24)), r, all(1.0 / 6)), r, all(0.5));
        return fma(r * r, series, r);
    }
};
struct ToTwo {
    static constexpr double least = -1021, most = 1023, steps = kExpSteps;
    static Four less_one(Four k, Four x) {
        const Four r = minus_fma(k, all(1.0 / kExpSteps), x);
        Four series = fma(all(kTwos[5]), r, all(kTwos[4]));
        series = fma(fma(fma(series, r, all(kTwos[3])), r, all(kTwos[2])), r, all(kTwos[1]));
        return fma(r * r, series, r * all(kTwos[0]));
    }
};

template <class To>
struct Exponential {
    static Results of(Four x, Four slack) {
        const Nearest k = nearest_of_product(x, all(To::steps));
        Four power[2];
        const FourInts in_table = _mm256_set1_epi64x(kExpSteps - 1);
        rows_of(kPowersOfTwo, _mm256_and_si256(k.shifted, in_table), power);
        const Four tail = fma(power[0], To::less_one(k.integer, x), power[1]);
        Results result = round_if_settled({power[0], tail}, slack);
        // Seven bits of k are in the table; the next one counts in the exponent, which begins at bit 52.
        const FourInts exponent = _mm256_slli_epi64(_mm256_andnot_si256(in_table, k.shifted), 45);
        result.value = _mm256_castsi256_pd(_mm256_add_epi64(_mm256_castpd_si256(result.value), exponent));
        result.settled =
            _mm256_and_pd(result.settled, _mm256_and_pd(at_least(x, all(To::least)), at_least(all(To::most), x)));
        return result;
    }
};

}  // namespace

// glibc since 2.28: both 0.511 ULP without fused multiply-adds, less with them (sysdeps/ieee754/dbl-64/e_exp_data.c).
const ExactFunction kExactExponential{"exp", &settle<Exponential<ToE>>, &::exp, 0.511, 0.007, 4.0, 0.0, 708.0, true};
const ExactFunction kExactPowerOfTwo{"exp2", &settle<Exponential<ToTwo>>, &::exp2, 0.511, 0.009, 4.0, 0.0, 1021.0,
                                     true};

}  // namespace pyop::PYOP_KERNEL_LEVEL

#endif
