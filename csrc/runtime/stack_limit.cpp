// runtime/stack_limit.cpp: find where the stack of this thread ends, and keep the answer.
#include "runtime/stack_limit.h"

#include <pthread.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>  // std::min
#include <cstdint>
#include <cstring>

namespace pyop {

namespace {

// For what Python and NumPy need beneath a call that fails, and for loops that call nobody.
constexpr uintptr_t kReserve = 96 << 10;

constinit thread_local uintptr_t stack_bottom = 0;  // its lowest address

// Of a process's first stack, if `here` is on it: its size, and its lowest address in `bottom`; else 0. The C library
// would read the list of all that is mapped for it, which takes a millisecond in a process with many libraries. The
// kernel puts the name of the program at the very top of that stack, and maps nothing within 128 MiB beneath that.
size_t first_stack(uintptr_t here, uintptr_t& bottom) {
    const uintptr_t name = getauxval(AT_EXECFN);
    rlimit limit;
    if (!name || getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur > (rlim_t{64} << 20)) return 0;
    const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    const uintptr_t end = name + std::strlen(reinterpret_cast<const char*>(name)) + 1;
    const uintptr_t top = (end + page - 1) / page * page;
    const size_t size = limit.rlim_cur / page * page;
    bottom = top - size;
    return here >= bottom && here < top ? size : 0;
}

}  // namespace

bool stack_ends_here(uintptr_t here) {
    if (stack_floor == UINTPTR_MAX) {
        stack_floor = 0;  // nothing is known
        pthread_attr_t attributes;
        if (const size_t first = first_stack(here, stack_bottom)) {
            stack_floor = stack_bottom + std::min<uintptr_t>(kReserve, first / 3);
        } else if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
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
