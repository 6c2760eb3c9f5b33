// array/foreign/device.h: find where the memory of another library's array is, and tell what to do about it.
#pragma once

#include "array/numpy.h"

namespace pyop {

// Whether `value` is an array on a device that is not the CPU, by __dlpack_device__, else by its `device`. Runs Python
// code of the object's class; errors in that are dropped.
bool is_on_device(PyObject* value);

// With an error pending: if the reason is that `value` is on a device, that error becomes the cause of a BufferError
// that says so, and what to do, and it is true.
PYOP_COLD bool explain_device(PyObject* value);

// "x.cpu()": how to get it from there. Borrowed text, for the life of the process.
const char* device_remedy(PyObject* value);

}  // namespace pyop
