// kernels/exact/lanes.h: compute four arguments at a time, and tell which of their results are settled.
//
// A function computes f(x) as a head and a tail, whose sum is off by less than `own` units in the last place. libm is
// known to be off by less than `bound` units. If the exact value lies further than (bound - 1/2) units from the middle
// between two doubles, then libm has to return the nearest double: the other neighbour would be too far off. So where
// all of head + tail +- (bound - 1/2 + own) units rounds to one double that is libm's result, without any knowledge of
// how libm computes it. Everywhere else the lane is left open.
//
// A unit is that of the result's binade. Right below a power of two that may be the binade above, whose units are
// larger, so that a lane is open that need not be.
//
// Whatever raises flags on the way is kept quiet (flags.h): settled lanes are those of ordinary arguments and results,
// for which libm raises none but "inexact".
#pragma once

#include <immintrin.h>

#include "kernels/flags.h"
#include "kernels/loops.h"

namespace pyop::PYOP_KERNEL_LEVEL {

using Four = __m256d;
using FourInts = __m256i;

inline Four all(double x) { return _mm256_set1_pd(x); }
inline Four bits(uint64_t x) { return _mm256_castsi256_pd(_mm256_set1_epi64x(static_cast<long long>(x))); }
inline Four absolute(Four x) { return _mm256_andnot_pd(all(-0.0), x); }
inline Four fma(Four a, Four b, Four c) { return _mm256_fmadd_pd(a, b, c); }        // a b + c
inline Four fma_minus(Four a, Four b, Four c) { return _mm256_fmsub_pd(a, b, c); }  // a b - c
inline Four minus_fma(Four a, Four b, Four c) { return _mm256_fnmadd_pd(a, b, c); } // c - a b
inline Four less(Four a, Four b) { return _mm256_cmp_pd(a, b, _CMP_LT_OQ); }
inline Four at_least(Four a, Four b) { return _mm256_cmp_pd(a, b, _CMP_GE_OQ); }
inline Four choose(Four mask, Four yes, Four no) { return _mm256_blendv_pd(no, yes, mask); }

// A number in two parts, of which the tail is small beside the head.
struct Parts {
    Four head, tail;
};

// a + b and a b without any error. The first is for |a| >= |b|, or a = 0.
inline Parts sum_of_larger(Four a, Four b) {
    const Four s = a + b;
    return {s, b - (s - a)};
}
inline Parts sum(Four a, Four b) {
    const Four s = a + b, from_b = s - a;
    return {s, (a - (s - from_b)) + (b - from_b)};
}
inline Parts product(Four a, Four b) {
    const Four p = a * b;
    return {p, fma_minus(a, b, p)};
}

// The nearest integer of |x| < 2^51: as a double, and in the low bits of `shifted`.
struct Nearest {
    Four integer;
    FourInts shifted;
};
inline Nearest nearest_of_product(Four x, Four y) {
    const Four shift = all(0x1.8p52), shifted = fma(x, y, shift);
    return {shifted - shift, _mm256_castpd_si256(shifted)};
}

// Row `k` of a table for each lane, column by column.
inline void rows_of(const double (*table)[4], FourInts k, Four* columns) {
    const __m128i low = _mm256_castsi256_si128(k), high = _mm256_extracti128_si256(k, 1);
    const Four a = _mm256_load_pd(table[_mm_cvtsi128_si64(low)]), b = _mm256_load_pd(table[_mm_extract_epi64(low, 1)]);
    const Four c = _mm256_load_pd(table[_mm_cvtsi128_si64(high)]),
               d = _mm256_load_pd(table[_mm_extract_epi64(high, 1)]);
    const Four ab = _mm256_unpacklo_pd(a, b), cd = _mm256_unpacklo_pd(c, d);
    const Four ab2 = _mm256_unpackhi_pd(a, b), cd2 = _mm256_unpackhi_pd(c, d);
    columns[0] = _mm256_permute2f128_pd(ab, cd, 0x20);
    columns[1] = _mm256_permute2f128_pd(ab2, cd2, 0x20);
    columns[2] = _mm256_permute2f128_pd(ab, cd, 0x31);
    columns[3] = _mm256_permute2f128_pd(ab2, cd2, 0x31);
}
inline void rows_of(const double (*table)[2], FourInts k, Four* columns) {
    const __m128i low = _mm256_castsi256_si128(k), high = _mm256_extracti128_si256(k, 1);
    const Four ac = _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_load_pd(table[_mm_cvtsi128_si64(low)])),
                                         _mm_load_pd(table[_mm_cvtsi128_si64(high)]), 1);
    const Four bd = _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_load_pd(table[_mm_extract_epi64(low, 1)])),
                                         _mm_load_pd(table[_mm_extract_epi64(high, 1)]), 1);
    columns[0] = _mm256_unpacklo_pd(ac, bd);
    columns[1] = _mm256_unpackhi_pd(ac, bd);
}

// What a function makes of four arguments: their results, and which of these are settled.
struct Results {
    Four value, settled;
};

// `slack` in units of the last place, times 2^-52.
inline Results round_if_settled(Parts exact, Four slack) {
    const Four infinity = bits(0x7FF0000000000000u);  // its exponent, without the rest
    const Four about = exact.head + exact.tail;
    const Four reach = _mm256_and_pd(about, infinity) * slack;
    const Four above = exact.head + (exact.tail + reach), below = exact.head + (exact.tail - reach);
    return {above, _mm256_cmp_pd(above, below, _CMP_EQ_OQ)};
}

// For each set of lanes: these in front, as halves.
struct Compressions {
    alignas(32) int32_t halves[16][8];
    alignas(16) int32_t lanes[16][4];
    constexpr Compressions() : halves{}, lanes{} {
        for (int set = 0; set < 16; ++set)
            for (int lane = 0, at = 0; lane < 4; ++lane) {
                if (!(set >> lane & 1)) continue;
                halves[set][2 * at] = 2 * lane;
                halves[set][2 * at + 1] = 2 * lane + 1;
                lanes[set][at++] = lane;
            }
    }
};
inline constexpr Compressions kCompressions;

// Puts the open lanes of four behind the `n` found before. Without a branch, as nobody can foretell them. The new
// count.
inline std::ptrdiff_t note_open(Four x, Four settled, std::ptrdiff_t place, OpenLanes& open, std::ptrdiff_t n) {
    const int set = _mm256_movemask_pd(settled) ^ 15;
    const auto* halves = reinterpret_cast<const FourInts*>(kCompressions.halves[set]);
    const auto* lanes = reinterpret_cast<const __m128i*>(kCompressions.lanes[set]);
    const FourInts front = _mm256_permutevar8x32_epi32(_mm256_castpd_si256(x), _mm256_load_si256(halves));
    _mm256_storeu_pd(open.arguments + n, _mm256_castsi256_pd(front));
    const __m128i places = _mm_add_epi32(_mm_load_si128(lanes), _mm_set1_epi32(static_cast<int>(place)));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(open.places + n), places);
    return n + __builtin_popcount(static_cast<unsigned>(set));
}

// Fewer than four at the end are done with ones beside them, whose results nobody sees.
template <class F>
void settle(const double* x, double* to, std::ptrdiff_t n, double slack_in_units, OpenLanes& open) {
    const KeepFlags keep;
    const Four slack = all(slack_in_units * 0x1p-52);
    std::ptrdiff_t i = 0, found = 0;
    for (; i + 4 <= n; i += 4) {
        const Four v = _mm256_loadu_pd(x + i);
        const Results r = F::of(v, slack);
        _mm256_storeu_pd(to + i, r.value);
        found = note_open(v, r.settled, i, open, found);
    }
    if (i < n) {
        alignas(32) static constexpr int64_t kFirst[8] = {-1, -1, -1, -1, 0, 0, 0, 0};
        const FourInts there = _mm256_loadu_si256(reinterpret_cast<const FourInts*>(kFirst + 4 - (n - i)));
        const Four lanes = _mm256_castsi256_pd(there);
        const Four v = choose(lanes, _mm256_maskload_pd(x + i, there), all(1.0));
        const Results r = F::of(v, slack);
        _mm256_maskstore_pd(to + i, there, r.value);
        found = note_open(v, _mm256_or_pd(r.settled, _mm256_andnot_pd(lanes, bits(~uint64_t{0}))), i, open, found);
    }
    open.n = found;
}

}  // namespace pyop::PYOP_KERNEL_LEVEL
