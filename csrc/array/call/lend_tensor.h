// array/call/lend_tensor.h: hand a tensor of another library to a function, without making a new ndarray.
#pragma once

#include "array/foreign/dlpack.h"
#include "array/numpy.h"

namespace pyop {

// A read-only ndarray over the memory of an object whose type exports by C functions, from a recycled object where
// there is one: see lend.h, whose lend_return_steal() takes it back. New reference; null with the error set.
PyObject* lend_tensor_new(PyObject* value, const Exporter& exporter);

}  // namespace pyop
