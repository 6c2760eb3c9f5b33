// autograd/modes.h: turn the modes of a thread (autograd/state.h) on and off from Python.
//
// Context managers and calls in a mode are C++ for one reason: a KeyboardInterrupt may land before the first line of a
// Python `__exit__` or `finally`, and the thread would then stay in the mode for ever (runtime/scoped_call.h).
#pragma once

#include "runtime/forced_exit.h"
#include "runtime/python.h"

namespace pyop {

int modes_init(PyObject* module);

// A call that Python asks for in another mode.
struct ModeCall {
    PyObject *fn, *args, *kwargs;
    PyObject* run() const {
        return survive([&] { return PyObject_Call(fn, args, kwargs); });
    }
};

}  // namespace pyop
