// graph/value.h: define Value, the Python handle of one output of a node, and NodeHandle, that of a whole node.
//
// A handle is a graph and an index, and knows what else shows its memory (graph/storage.h). A write moves it to another
// index: so all names of the handle see it; other handles of the same memory follow when they are read (`current`).
// Values hash by identity, as `==` on them is NumPy's elementwise comparison.
#pragma once

#include "graph/graph.h"

namespace pyop {

struct Storage;
struct View;

// Of a Value: NumPy's array there is read-only; the handle was looked up in a graph, where an output has one value for
// ever.
inline constexpr uint32_t kReadOnly = 1, kFixed = 2;

struct ValueObject {
    PyObject_HEAD
    PyObject* graph;
    Edge edge;  // before `current`, perhaps of memory that was written since; its spec stays
    uint32_t flags;
    uint32_t version;  // of the storage, when `edge` was right
    Storage* storage;  // null: shows memory of its own, or of an argument
    View* view;  // how it shows the storage; null: whole
    ValueObject* next;  // of the handles that show this storage
    ValueObject* previous;
};

struct NodeHandleObject {
    PyObject_HEAD
    PyObject* graph;
    uint32_t index;
};

extern PyTypeObject* value_type;
extern PyTypeObject* node_type;
int value_init(PyObject* module);
int node_init(PyObject* module);

PYOP_INLINE bool is_value(PyObject* o) { return Py_TYPE(o) == value_type; }
PYOP_INLINE ValueObject* as_value(PyObject* o) { return reinterpret_cast<ValueObject*>(o); }
const ValueSpec& spec_of(PyObject* value);

PyObject* value_new(PyObject* graph, Edge edge, uint32_t flags = 0);
// Brings `edge` up to what its memory holds now. 0, or -1 with the error set.
int bring_up_to_date(ValueObject* value);
// What is known of it, for messages. (repr() may refuse: the function under trace must not go by it.)
PyObject* text_of_value(PyObject* value);
PyObject* node_handle_new(PyObject* graph, uint32_t index);

// `ufunc(*inputs)` as a node, when its specs can be had without Python; else through Python. With `instead` the node
// calls that, whose specs are those of the ufunc; a dtype that cannot be had is not known then.
PyObject* ufunc_call_new(PyObject* ufunc, PyObject* const* inputs, Py_ssize_t n, PyObject* instead = nullptr);

// Whether the result of a ufunc on a Value and others is sure to have the dtype and shape of the first, and the bits
// that the ufunc gives where it writes over that.
bool ufunc_keeps_spec(PyObject* ufunc, PyObject* const* inputs, Py_ssize_t n);
// An operator on Values: `ufunc(*inputs)`, or between NumPy's scalars the operator itself.
PyObject* operator_call_new(PyObject* ufunc, PyObject* const* inputs, Py_ssize_t n);
// Whether NumPy has a scalar in the place of this operand, or a Python number.
bool stands_for_scalar(PyObject* operand);

PyObject* array_ufunc_in_python(PyObject* ufunc, PyObject* const* inputs, Py_ssize_t n);

// Appends Value's number and comparison slots (value_operators.cpp), those of augmented assignment
// (value_in_place.cpp).
int value_operator_slots(std::vector<PyType_Slot>& slots);
int value_in_place_slots(std::vector<PyType_Slot>& slots);

// Attributes (value_attributes.cpp).
bool in_own_code();  // whether Python code of pyop is running, and not the user's
PyObject* value_class(PyObject* self, void*);  // what NumPy has there: isinstance() asks
PyObject* value_getattro(PyObject* self, PyObject* name);
int value_setattro(PyObject* self, PyObject* name, PyObject* value);

// Methods about memory, for Python's rules (value_memory.cpp).
std::span<const PyMethodDef> value_memory_methods();

}  // namespace pyop
