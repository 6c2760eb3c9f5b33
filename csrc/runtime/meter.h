// runtime/meter.h: count what a thread has spent for a profile: bytes copied, time without the GIL.
//
// The counters only ever rise. Whoever wants to know what a call spent reads them before and after
// (profile/scope.h). While nothing is profiled, which is one flag for the whole process, nobody counts.
#pragma once

#include <time.h>  // clock_gettime

#include <atomic>  // std::atomic

#include "runtime/python.h"

namespace pyop {

// Written by attached threads; read anywhere. A call that began while it was off is not part of any profile.
inline constinit std::atomic<bool> profiling_flag{false};
PYOP_INLINE bool profiling() { return PYOP_UNLIKELY(profiling_flag.load(std::memory_order_relaxed)); }

struct Meter {
    uint64_t released = 0;  // ticks between giving the GIL up and asking for it again
    uint64_t waited = 0;    // ticks between asking for it and having it
    uint64_t copied = 0;    // bytes of arrays that were copied or converted on the way in or out
};
inline constinit thread_local Meter meter;

inline uint64_t clock_ns() {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

// The processor's counter, where it runs at one rate on all cores; else nanoseconds. Reading the clock through the
// system takes three times as long (25 ns), and a profile reads it twice a call. By the compiler's built-in function:
// the header of intrinsics takes half a second to parse in each file.
#if defined(__x86_64__)
extern const bool counter_is_steady;
PYOP_INLINE uint64_t ticks() { return PYOP_LIKELY(counter_is_steady) ? __builtin_ia32_rdtsc() : clock_ns(); }
#elif defined(__aarch64__)
PYOP_INLINE uint64_t ticks() {
    uint64_t t;
    asm volatile("mrs %0, cntvct_el0" : "=r"(t));
    return t;
}
#else
PYOP_INLINE uint64_t ticks() { return clock_ns(); }
#endif

}  // namespace pyop
