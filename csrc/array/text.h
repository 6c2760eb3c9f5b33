// array/text.h: text as the py_func family treats it: bytes objects in object arrays, str as UTF-8, nothing
// lost at a NUL. Attached threads only.
#pragma once

#include "array/numpy.h"
#include "runtime/ref.h"

namespace pyop {

// Whether an object is text, or an array or nested list of text, for which utf8_array_new is meant.
bool is_text(PyObject* o);

// An object array of bytes: str items encoded as UTF-8, bytes kept. nullptr with the error set;
// an item that is neither is a TypeError "Unsupported object type NAME".
PyArrayObject* utf8_array_new(PyObject* o);

}  // namespace pyop
