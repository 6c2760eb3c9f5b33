// graph/value_sequence.cpp: the slots behind len(), iteration and `in` of a Value.
//
// Slots, and no methods given to the type from Python, which would leave their names in its dict
// (array/protocol/stand_in.h).
#include "graph/value_sequence.h"

#include "array/protocol/operators.h"

namespace pyop {

StandIn value_stand_in;

namespace {

// A function of pyop/graph/value_sequence.py, kept for the life of the process; null with an error set.
template <size_t n>
PyObject* function(const char (&name)[n], PyObject*& kept) {
    if (!kept) {
        Ref module = Ref::steal(PyImport_ImportModule("pyop.graph.value_sequence"));
        kept = module ? PyObject_GetAttrString(module.get(), name) : nullptr;
    }
    return kept;
}

Py_ssize_t length(PyObject* self) {
    static PyObject* kept = nullptr;
    PyObject* call = function("length", kept);
    Ref size = call ? Ref::steal(PyObject_CallOneArg(call, self)) : Ref();
    return size ? PyLong_AsSsize_t(size.get()) : -1;
}

PyObject* iterate(PyObject* self) {
    static PyObject* kept = nullptr;
    PyObject* call = function("iterate", kept);
    return call ? PyObject_CallOneArg(call, self) : nullptr;
}

int contains(PyObject* self, PyObject* item) {
    static PyObject* kept = nullptr;
    PyObject* call = function("contains", kept);
    Ref found = call ? Ref::steal(PyObject_CallFunctionObjArgs(call, self, item, nullptr)) : Ref();
    return found ? PyObject_IsTrue(found.get()) : -1;
}

}  // namespace

int value_sequence_slots(std::vector<PyType_Slot>& slots) {
    slots.push_back(type_slot(Py_sq_length, length));
    slots.push_back(type_slot(Py_mp_length, length));
    slots.push_back(type_slot(Py_tp_iter, iterate));
    slots.push_back(type_slot(Py_sq_contains, contains));
    return 0;
}

}  // namespace pyop
