// array/loop/fp_flags.h: read and write the processor's record of floating-point errors, per thread.
#pragma once

#include <cfenv>

#if defined(__x86_64__)
#include <xmmintrin.h>  // _mm_getcsr
#endif

namespace pyop {

// The four errors that np.errstate knows, as <cfenv> numbers them; "inexact" is none.
inline constexpr int kFpErrors = FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW | FE_INVALID;

// After code that only computes: fp_errors().
#if defined(__x86_64__)
// That is done in SSE registers and wider; what <cfenv> raises is in the x87 status.
inline int fp_errors() { return static_cast<int>(_mm_getcsr()) & kFpErrors; }
inline int x87_errors() {
    unsigned short status;
    // Behind whatever has been computed and stored.
    __asm__ volatile("fnstsw %0" : "=a"(status) : : "memory");
    return status & kFpErrors;
}

// After code that may raise flags by feraiseexcept, as some of NumPy's loops do. Without the calls of <cfenv>, which
// take as long as a sine.
inline int all_fp_errors() {
    const int x87 = x87_errors();
    return x87 | fp_errors();
}
inline void clear_all_fp_errors() {
    if (x87_errors() != 0) __asm__ volatile("fnclex" : : : "memory");
    if (const unsigned csr = _mm_getcsr(); csr & kFpErrors) _mm_setcsr(csr & ~static_cast<unsigned>(kFpErrors));
}
// Without computing anything, as cheap as looking.
inline void raise_fp_errors(int flags) { _mm_setcsr(_mm_getcsr() | static_cast<unsigned>(flags)); }
#else
inline void raise_fp_errors(int flags) { std::feraiseexcept(flags); }
inline int all_fp_errors() { return std::fetestexcept(kFpErrors); }
inline void clear_all_fp_errors() { std::feclearexcept(kFpErrors); }
inline int fp_errors() { return all_fp_errors(); }
#endif

}  // namespace pyop
