// runtime/forced_exit.h: survive that Python kills a thread while it is inside our frames.
//
// Once the interpreter finalizes, a thread that asks for the GIL never gets it. From Python 3.14 on it
// hangs there for good. Up to 3.13 it is ended by pthread_exit(), which unwinds its C++ frames *without
// the GIL*: every Ref on the way would decref unprotected, and the first noexcept function (any
// destructor) would turn the unwinding into std::terminate. That is how a program with a daemon thread
// aborts at exit, now and then.
//
// survive() gives 3.14's behaviour to the older versions: it stops the unwinding at the innermost C++
// frame and parks the thread there until the process ends. Nothing above it is unwound. It costs
// nothing at run time (a table entry). Use it around every call that may give up the GIL while C++
// objects are alive: above all the user's function, but also a decref that may run `__del__`.
//
// What follows for the caller, on every version: never hold a C++ lock across such a call. The thread
// may stay in there for ever, and the lock with it.
#pragma once

#include <unistd.h>  // pause

#include <exception>  // std::current_exception
#include <utility>    // std::forward

#include "runtime/python.h"

namespace pyop {

// Ends this thread's work without ending the thread. For a thread that may no longer touch Python.
[[noreturn]] PYOP_COLD inline void park_thread() noexcept {
    for (;;) {
        ::pause();
    }
}

// In a handler: pthread_exit() unwinds without an exception object, which tells it from a C++ exception.
PYOP_COLD inline void park_if_thread_is_ending() noexcept {
    if (std::current_exception() == nullptr) {
        park_thread();
    }
}

// Calls f() and returns what it returns; does not come back if Python ends the thread inside f. Not to be
// used from within a handler: an ending cannot be caught there, and terminates.
template <class F>
PYOP_INLINE decltype(auto) survive(F&& f) {
#if PY_VERSION_HEX < 0x030E0000
    try {
        return std::forward<F>(f)();
    } catch (...) {
        park_if_thread_is_ending();
        throw;
    }
#else
    return std::forward<F>(f)();
#endif
}

// PyObject_Vectorcall, survived. Attached threads. New reference, or null with the error set.
PYOP_INLINE PyObject* vectorcall_new(PyObject* callable, PyObject* const* args, size_t nargsf,
                                     PyObject* kwnames = nullptr) {
    return survive([&] { return PyObject_Vectorcall(callable, args, nargsf, kwnames); });
}

// Py_DECREF, survived: for destructors, which are noexcept. Attached threads; `o` is not null.
PYOP_INLINE void decref(PyObject* o) noexcept {
    survive([&] { Py_DECREF(o); });
}

}  // namespace pyop
