// kernels/flags.h: put floating-point flags back after code that raised them without meaning it.
#pragma once

#include "kernels/loops.h"

#if defined(__x86_64__)
#include <xmmintrin.h>  // _mm_getcsr, _mm_setcsr
#else
#include <cfenv>  // std::fetestexcept, std::feclearexcept
#endif

namespace pyop::PYOP_KERNEL_LEVEL {

// While one lives, memory is written by what is kept quiet: that keeps the compiler from moving it across.
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

}  // namespace pyop::PYOP_KERNEL_LEVEL
