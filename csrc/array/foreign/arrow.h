// array/foreign/arrow.h: read one-dimensional arrays of Arrow, by its C data interface.
#pragma once

#include "array/numpy.h"

namespace pyop {

// Whether the type has __arrow_c_array__.
bool offers_arrow(PyObject* value);

// An ndarray of an object that has __arrow_c_array__: over its memory, read-only, or a copy of truths, which lie packed
// there, and of days. Numbers, truths, dates and durations alone: for other kinds null with no error set, if there are
// no nulls among them. New reference; null with the error set, a BufferError that says why.
PyObject* arrow_array_new(PyObject* value);

}  // namespace pyop
