// kernels/quiet.h: comparisons that leave the floating-point flags alone, as NumPy's do.
//
// Vector instructions for < and for the smaller of two numbers raise "invalid" for a NaN. Where the processor has no
// quiet form of them the flags are looked at before and after; writing them, which is slow, only happens if there
// was a NaN.
#pragma once

#include "kernels/loops.h"

#if defined(__x86_64__)
#include <xmmintrin.h>  // _mm_getcsr, _mm_setcsr
#else
#include <cfenv>  // std::fetestexcept, std::feclearexcept
#endif

namespace pyop::PYOP_KERNEL_LEVEL {

class KeepFlags {
  public:
    KeepFlags() : before_(get()) { barrier(); }
    ~KeepFlags() {
        barrier();
        if (get() != before_) set(before_);
    }
    KeepFlags(const KeepFlags&) = delete;
    KeepFlags& operator=(const KeepFlags&) = delete;

  private:
    // Memory is written by what is kept quiet, so this keeps the compiler from moving it across.
    static void barrier() { asm volatile("" ::: "memory"); }
#if defined(__x86_64__)
    static unsigned get() { return _mm_getcsr(); }
    static void set(unsigned flags) { _mm_setcsr(flags); }
    unsigned before_;
#else
    static int get() { return std::fetestexcept(FE_ALL_EXCEPT); }
    static void set(int flags) { std::feclearexcept(FE_ALL_EXCEPT & ~flags); }
    int before_;
#endif
};

template <Kernel kernel>
void quiet(char* const* data, std::ptrdiff_t n) {
    const KeepFlags keep;
    kernel(data, n);
}

}  // namespace pyop::PYOP_KERNEL_LEVEL
