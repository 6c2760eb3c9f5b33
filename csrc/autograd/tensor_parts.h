// autograd/tensor_parts.h: the parts of the type Tensor that have files of their own.
#pragma once

#include <vector>

#include "autograd/tensor.h"

namespace pyop {

// tensor_operators.cpp
int tensor_operator_slots(std::vector<PyType_Slot>& slots);
PyObject* tensor_array_ufunc(PyObject* self, PyObject* args, PyObject* kwargs);
PyObject* tensor_array_function(PyObject* self, PyObject* args);

// hooks.cpp: handles, new references
PyObject* tensor_add_hook(TensorObject* t, PyObject* hook);
PyObject* tensor_add_post_hook(TensorObject* t, PyObject* hook);
int tensor_retain(TensorObject* t);

}  // namespace pyop
