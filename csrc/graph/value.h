// graph/value.h: Value, the Python handle of one output of a node, and NodeHandle, that of a whole node.
//
// A handle is a graph and an index: it owns nothing else, and two handles of the same output are equal in
// all but identity. Values hash by identity, as `==` on them is NumPy's elementwise comparison.
#pragma once

#include "graph/graph.h"

namespace pyop {

struct ValueObject {
    PyObject_HEAD PyObject* graph;
    Edge edge;
};

struct NodeHandleObject {
    PyObject_HEAD PyObject* graph;
    uint32_t index;
};

extern PyTypeObject* value_type;
extern PyTypeObject* node_type;
int value_init(PyObject* module);
int node_init(PyObject* module);

PYOP_INLINE bool is_value(PyObject* o) { return Py_TYPE(o) == value_type; }
PYOP_INLINE ValueObject* as_value(PyObject* o) { return reinterpret_cast<ValueObject*>(o); }

PyObject* value_new(PyObject* graph, Edge edge);
PyObject* node_handle_new(PyObject* graph, uint32_t index);

// Python's side of array-like behaviour: array_ufunc(ufunc, method, inputs, kwargs) and
// array_function(func, types, args, kwargs), told once by python/pyop/__init__.py.
void set_array_hooks(PyObject* array_ufunc, PyObject* array_function);

// `ufunc(*inputs)` as a node, when its specs can be had without Python; else through the hook. With `instead` the node
// calls that, whose specs are those of the ufunc; a dtype that cannot be had is not known then.
PyObject* ufunc_call_new(PyObject* ufunc, PyObject* const* inputs, Py_ssize_t n, PyObject* instead = nullptr);

PyObject* call_array_ufunc_hook(PyObject* ufunc, PyObject* const* inputs, Py_ssize_t n);

// Appends Value's number and comparison slots (value_operators.cpp).
int value_operator_slots(std::vector<PyType_Slot>& slots);

}  // namespace pyop
