#include "runtime/stack_limit.h"

#include <pthread.h>

#include <algorithm>  // std::min
#include <cstdint>

namespace pyop {

namespace {

// For what Python and NumPy need beneath a call that fails, and for loops that call nobody.
constexpr uintptr_t kReserve = 96 << 10;

constinit thread_local uintptr_t stack_bottom = 0;  // its lowest address

}  // namespace

bool stack_ends_here(uintptr_t here) {
    if (stack_floor == UINTPTR_MAX) {
        stack_floor = 0;  // nothing is known
        pthread_attr_t attributes;
        if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
            void* lowest;
            size_t size, guard = 0;
            if (pthread_attr_getstack(&attributes, &lowest, &size) == 0) {
                pthread_attr_getguardsize(&attributes, &guard);
                stack_bottom = reinterpret_cast<uintptr_t>(lowest);
                stack_floor = stack_bottom + guard + std::min<uintptr_t>(kReserve, size / 3);
            }
            pthread_attr_destroy(&attributes);
        }
    }
    return here < stack_floor && here >= stack_bottom;
}

PyObject* no_stack_left(const char* where) {
    PyErr_Format(PyExc_RecursionError,
                 "the stack of this thread is nearly used up%s: a function calls itself without end, or it needs a "
                 "larger one (threading.stack_size)",
                 where);
    return nullptr;
}

}  // namespace pyop
