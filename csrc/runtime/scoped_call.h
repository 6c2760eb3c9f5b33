// runtime/scoped_call.h: make a call during which something of the thread is different.
//
// In Python `finally` puts such a thing back, unless a KeyboardInterrupt lands in between: signals are heard between
// any two lines, those of the `finally` among them, and a thread that goes on in the wrong mode computes wrongly
// without a word. In C++ no signal is heard between the end of the call and the putting back.
#pragma once

#include "runtime/python.h"

namespace pyop {

// fn(*args, **kwargs), with `owner.name` set to `value` until it is over. `kwargs` may be null. New reference, or null
// with the error set.
PyObject* call_with_attribute(PyObject* owner, PyObject* name, PyObject* value, PyObject* fn, PyObject* args,
                              PyObject* kwargs);

}  // namespace pyop
