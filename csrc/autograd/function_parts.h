// autograd/function_parts.h: what the files of Function share among themselves.
#pragma once

#include "autograd/function.h"

namespace pyop {

// The classes whose instances stand for arrays and scalars under vmap; set by Python, null until vmap is first used.
extern PyObject* batched_types[2];

inline bool is_batched(PyObject* o) {
    auto* type = reinterpret_cast<PyObject*>(Py_TYPE(o));
    return type == batched_types[0] || type == batched_types[1];
}

// Under detect_anomaly: notes where the node was made.
int remember_creation(GradNode* node);

// Under detect_anomaly: an error if gradient `i` of the node has a NaN.
int check_nan(GradNode* node, Py_ssize_t i, PyObject* gradient);

// A recorded NumPy call keeps its arguments and its results.
int record_saves(FunctionCall& call, PyObject* result);

}  // namespace pyop
