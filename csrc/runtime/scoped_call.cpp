// runtime/scoped_call.cpp: set an attribute, call, and put it back before any signal is handled.
#include "runtime/scoped_call.h"

#include "runtime/errors.h"

namespace pyop {

PyObject* call_with_attribute(PyObject* owner, PyObject* name, PyObject* value, PyObject* fn, PyObject* args,
                              PyObject* kwargs) {
    Ref before = Ref::steal(PyObject_GetAttr(owner, name));
    if (!before || PyObject_SetAttr(owner, name, value) < 0) return nullptr;
    PyObject* result = survive([&] { return PyObject_Call(fn, args, kwargs); });
    const SavedError keep;
    if (PyObject_SetAttr(owner, name, before.get()) < 0) PyErr_WriteUnraisable(owner);
    return result;
}

}  // namespace pyop
