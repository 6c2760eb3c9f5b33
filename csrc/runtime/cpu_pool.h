// runtime/cpu_pool.h: share one piece of C++ work among the threads of the CPU pool. They know nothing of Python.
//
// The caller works too, and takes whatever nobody else has taken, so a call never waits for a worker to become free and
// may be nested. Workers are started when first wanted, live as long as the process, and are forgotten in the child of
// a fork.
#pragma once

#include <type_traits>

namespace pyop {

namespace detail {
void run_parts(int n_parts, void (*part)(void* work, int k), void* work);
}

// Calls work(0) … work(n_parts - 1), each once, on up to n_parts threads, and returns when all are done. The work must
// not touch Python and must not throw.
template <typename Work>
void run_parts(int n_parts, Work&& work) {
    using Plain = std::remove_reference_t<Work>;
    detail::run_parts(
        n_parts, [](void* w, int k) { (*static_cast<Plain*>(w))(k); },
        const_cast<void*>(static_cast<const void*>(&work)));
}

}  // namespace pyop
