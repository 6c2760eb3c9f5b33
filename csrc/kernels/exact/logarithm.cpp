// kernels/exact/logarithm.cpp: compute the logarithms of float64, to the bases e and 2.
//
//     x = 2^e m,  r = c m - 1        log x = e log 2 - log c + log(1 + r)
//
// c comes from a table, by the first bits of m, which lies between 0.709 and 1.418; |r| <= 2^-8. Around 1 c is 1, so
// that r is all there is. c m - 1 is exact in two parts. The head of log 2 has 40 bits, so that its product with e is
// exact. What is not a head is below 2^-9 of the result: rounding it, three times, costs less than 0.007 units in the
// last place. The series of log(1 + r) goes to r^8 (the next term is 2^-67 of the result). To the base 2 r / log 2 has
// two parts.
#include <cmath>  // ::log, ::log2

#include "kernels/exact/functions.h"

#if defined(__AVX2__) && defined(__FMA__)

#include "kernels/exact/lanes.h"
#include "kernels/exact/log_table.h"

namespace pyop::PYOP_KERNEL_LEVEL {

namespace {

constexpr double kTiny = 0x1p-1022, kHuge = 0x1.fffffffffffffp1023;

// log(2^e), log(1 + r) and the table with -log c, to a base.
struct ToE {
    static constexpr auto& table = kLogs;
    static Parts of_two(Four e) { return {e * all(kLn2Head), e * all(kLn2Tail)}; }
    static Parts first_term(Four r) { return {r, all(0.0)}; }
    static Four scaled(Four x) { return x; }
};
struct ToTwo {
    static constexpr auto& table = kLogs2;
    static Parts of_two(Four e) { return {e, all(0.0)}; }
    static Parts first_term(Four r) {
        const Parts p = product(r, all(kPerLn2Head));
        return {p.head, fma(r, all(kPerLn2Tail), p.tail)};
    }
    static Four scaled(Four x) { return x * all(kPerLn2Head); }
};

template <class To>
struct Logarithm {
    static Results of(Four x, Four slack) {
        const FourInts bits_of_x = _mm256_castpd_si256(x);
        // Exponents change in the middle between two rows, at 1 + 53.5/128 and half of that.
        const FourInts from_least = _mm256_sub_epi64(bits_of_x, _mm256_castpd_si256(all(0.708984375)));
        const FourInts exponent =
            _mm256_and_si256(from_least, _mm256_set1_epi64x(static_cast<long long>(0xFFFull << 52)));
        const Four m = _mm256_castsi256_pd(_mm256_sub_epi64(bits_of_x, exponent));
        const FourInts high_halves = _mm256_permutevar8x32_epi32(exponent, _mm256_setr_epi32(1, 3, 5, 7, 1, 3, 5, 7));
        const Four e = _mm256_cvtepi32_pd(_mm_srai_epi32(_mm256_castsi256_si128(high_halves), 20));
        const FourInts nearest = _mm256_srli_epi64(_mm256_add_epi64(bits_of_x, _mm256_set1_epi64x(1ll << 44)), 45);
        Four row[4];
        rows_of(To::table, _mm256_and_si256(nearest, _mm256_set1_epi64x(kLogSteps - 1)), row);

        const Parts scaled = product(m, row[0]);
        const Four r = scaled.head - all(1.0);
        const Four rest_of_r = minus_fma(scaled.tail, r, scaled.tail);  // by the derivative of log, 1 - r
        const Parts of_two = To::of_two(e), term = To::first_term(r);
        const Parts first = sum_of_larger(of_two.head, row[1]);        // that of 2^e is 0 or above all of the table
        const Parts most = sum_of_larger(first.head, term.head);       // and so is this to r
        Four series = fma(fma(all(-1.0 / 8), r, all(1.0 / 7)), r, all(-1.0 / 6));
        series = fma(fma(fma(fma(series, r, all(1.0 / 5)), r, all(-0.25)), r, all(1.0 / 3)), r, all(-0.5));
        const Four small = of_two.tail + row[2] + (first.tail + most.tail) + term.tail;
        const Four tail = small + To::scaled(fma(r * r, series, rest_of_r));
        Results result = round_if_settled({most.head, tail}, slack);
        const Four ordinary = _mm256_and_pd(at_least(x, all(kTiny)), at_least(all(kHuge), x));
        result.settled = _mm256_and_pd(result.settled, ordinary);
        return result;
    }
};

}  // namespace

// glibc since 2.28: 0.520 ULP and 0.550 ULP without fused multiply-adds, less with them
// (sysdeps/ieee754/dbl-64/e_log.c, e_log2.c).
const ExactFunction kExactLogarithm{"log", &settle<Logarithm<ToE>>, &::log, 0.52, 0.008, 4.0, 0x1p-1000, 0x1p1000,
                                    false};
const ExactFunction kExactBinaryLogarithm{
    "log2", &settle<Logarithm<ToTwo>>, &::log2, 0.55, 0.01, 4.0, 0x1p-1000, 0x1p1000, false};

}  // namespace pyop::PYOP_KERNEL_LEVEL

#endif
