// array/loop/fp_flags.h: the processor's record of floating-point errors, per thread.
#pragma once

#include <cfenv>

#if defined(__x86_64__)
#include <xmmintrin.h>  // _mm_getcsr
#endif

namespace pyop {

// The four errors that np.errstate knows, as <cfenv> numbers them; "inexact" is none.
inline constexpr int kFpErrors = FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW | FE_INVALID;

// After code that may raise flags by feraiseexcept, as some of NumPy's loops do.
inline int all_fp_errors() { return std::fetestexcept(kFpErrors); }
inline void clear_all_fp_errors() { std::feclearexcept(kFpErrors); }

// After code that only computes.
#if defined(__x86_64__)
// That is done in SSE registers and wider; <cfenv> reads and writes the x87 status too, at several times the cost.
inline int fp_errors() { return static_cast<int>(_mm_getcsr()) & kFpErrors; }
#else
inline int fp_errors() { return all_fp_errors(); }
#endif

}  // namespace pyop
