// array/call/text.h: treat text as the py_func family does: bytes objects in object arrays, str as UTF-8, nothing lost
// at a NUL; and tell which arrays it knows at all. Attached threads only.
#pragma once

#include "array/numpy.h"
#include "runtime/ref.h"

namespace pyop {

// Whether an object is text, or an array or nested list of text, for which utf8_array_new is meant.
bool is_text(PyObject* o);

// An object array of bytes: str items encoded as UTF-8, bytes kept; `o` itself if it is one. nullptr with the error
// set; an item that is neither is a TypeError "Unsupported object type NAME".
PyArrayObject* utf8_array_new(PyObject* o);

// Whether arrays of this dtype exist in the py_func family: numbers, bool, and objects (which are text).
bool is_tensor_dtype(PyArray_Descr* d);

// An object array of the str and bytes in `value` if NumPy's string types would cut a trailing NUL of one of them;
// otherwise `array`, which is what NumPy made of `value`. Steals `array`; nullptr with the error set.
PyObject* keep_nuls_steal(PyObject* array, PyObject* value);

}  // namespace pyop
