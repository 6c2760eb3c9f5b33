// runtime/meter.cpp: test whether the processor's counter keeps time.
#include "runtime/meter.h"

#if defined(__x86_64__)
#include <cpuid.h>  // __get_cpuid

namespace pyop {

namespace {

// "Invariant TSC": bit 8 of EDX of leaf 0x80000007.
bool invariant_tsc() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(0x80000007u, &a, &b, &c, &d) != 0 && (d & (1u << 8)) != 0;
}

}  // namespace

const bool counter_is_steady = invariant_tsc();

}  // namespace pyop
#endif
