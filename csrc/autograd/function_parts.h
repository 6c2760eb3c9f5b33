// autograd/function_parts.h: share declarations among the files of Function.
#pragma once

#include "autograd/function.h"
#include "runtime/up_calls.h"

namespace pyop {

// Whether it stands for an array or a scalar under vmap.
inline bool is_batched(PyObject* o) {
    auto* type = reinterpret_cast<PyObject*>(Py_TYPE(o));
    return type == up_calls.batched_array || type == up_calls.batched_scalar;
}

// Under detect_anomaly: notes where the node was made.
int remember_creation(GradNode* node);

// Under detect_anomaly: an error if gradient `i` of the node has a NaN.
int check_nan(GradNode* node, Py_ssize_t i, PyObject* gradient);

// A recorded NumPy call keeps its arguments and its results.
int record_saves(FunctionCall& call, PyObject* result);

}  // namespace pyop
