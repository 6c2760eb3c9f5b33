// autograd/tensor_parts.h: declare the parts of the type Tensor that have files of their own.
#pragma once

#include <vector>

#include "autograd/builtin.h"
#include "autograd/tensor.h"

namespace pyop {

// tensor_operators.cpp
int tensor_operator_slots(std::vector<PyType_Slot>& slots);
PyObject* tensor_array_ufunc(PyObject* self, PyObject* args, PyObject* kwargs);
PyObject* tensor_array_function(PyObject* self, PyObject* args);

// tensor_writes.cpp
// `what` would take numbers out of what is recorded: an error. Always null.
PYOP_COLD PyObject* refuse_numbers(const char* what);
// Changing `t` in place cannot be done right: an error that says why. `other` is the operand, or null. Always null.
PYOP_COLD PyObject* refuse_write(const char* how, TensorObject* t, PyObject* other);
// Whether memory that is written through `t`, of which nothing is recorded, is that of something recorded.
bool is_written_through(const TensorObject* t);
struct InPlace {
    const char* text;   // "+="
    const char* ufunc;
    Builtin builtin;
    PyObject* (*apply)(PyObject*, PyObject*);
};
PyObject* tensor_in_place(const InPlace& how, PyObject* a, PyObject* b);

// autograd.cpp
// Whether a transformation is differentiating what `t`, which is watched, belongs to: on this thread, or on another one
// whose function works here.
bool is_differentiated(TensorObject* t);

// tensor.cpp: an argument of a function that is differentiated was written into. Always -1.
PYOP_COLD int written_argument_error(PyArrayObject* argument);

// hooks.cpp: handles, new references
PyObject* tensor_add_hook(TensorObject* t, PyObject* hook);
PyObject* tensor_add_post_hook(TensorObject* t, PyObject* hook);
int tensor_retain(TensorObject* t);
// What retain_grad() asked of the node `before` is asked of the node that `t` comes from now.
int tensor_retain_again(TensorObject* t, GradNode* before);

}  // namespace pyop
