// runtime/stack_limit.h: raise RecursionError before a thread's stack ends.
//
// Python counts its own frames. A function that calls itself through an op or a plan has C++ frames in between, and on
// the small stacks that threads may have (threading.stack_size) these end before Python has counted to its limit.
#pragma once

#include <cstdint>

#include "runtime/python.h"

namespace pyop {

// Below this address no call into Python begins. It is not known before the first question on a thread.
inline constinit thread_local uintptr_t stack_floor = UINTPTR_MAX;

// Finds the floor out, and answers. False on a stack that is not the thread's own.
PYOP_COLD bool stack_ends_here(uintptr_t here);

PYOP_INLINE bool stack_is_low() {
    const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
    return PYOP_UNLIKELY(here < stack_floor) && stack_ends_here(here);
}

// Raises RecursionError. Always null.
PYOP_COLD PyObject* no_stack_left(const char* where);

}  // namespace pyop
