// graph/value_sequence.cpp: implement the slots behind len(), iteration and `in` of a Value.
//
// Slots, and no methods given to the type from Python, which would leave their names in its dict
// (array/protocol/stand_in.h).
#include "graph/value_sequence.h"

#include "array/protocol/operators.h"
#include "runtime/up_calls.h"

namespace pyop {

StandIn value_stand_in;

namespace {

Py_ssize_t value_length(PyObject* self) {
    Ref size = Ref::steal(PyObject_CallOneArg(up_calls.value_length, self));
    return size ? PyLong_AsSsize_t(size.get()) : -1;
}

PyObject* value_iterate(PyObject* self) { return PyObject_CallOneArg(up_calls.value_iterate, self); }

int value_contains(PyObject* self, PyObject* item) {
    Ref found = Ref::steal(PyObject_CallFunctionObjArgs(up_calls.value_contains, self, item, nullptr));
    return found ? PyObject_IsTrue(found.get()) : -1;
}

}  // namespace

int value_sequence_slots(std::vector<PyType_Slot>& slots) {
    slots.push_back(type_slot(Py_sq_length, value_length));
    slots.push_back(type_slot(Py_mp_length, value_length));
    slots.push_back(type_slot(Py_tp_iter, value_iterate));
    slots.push_back(type_slot(Py_sq_contains, value_contains));
    return 0;
}

}  // namespace pyop
