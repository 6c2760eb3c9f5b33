// runtime/items.h: hold items of lists and dicts that other code can change while we look at them.
//
// A borrowed item is gone when another thread, or code that runs between two looks, takes it out of its container: what
// is used for longer than a comparison of its address is owned. Without a GIL the look itself needs the functions that
// CPython 3.13 has for it.
#pragma once

#include "runtime/ref.h"

namespace pyop {

// Item `i` of a list or tuple; empty, without an error, where it has fewer by now.
inline Ref item_of(PyObject* sequence, Py_ssize_t i) {
    if (PyTuple_Check(sequence))
        return i < PyTuple_GET_SIZE(sequence) ? Ref::borrow(PyTuple_GET_ITEM(sequence, i)) : Ref();
#if PY_VERSION_HEX >= 0x030D0000
    PyObject* item = PyList_GetItemRef(sequence, i);
    if (!item) PyErr_Clear();
    return Ref::steal(item);
#else
    return i < PyList_GET_SIZE(sequence) ? Ref::borrow(PyList_GET_ITEM(sequence, i)) : Ref();
#endif
}

inline Py_ssize_t size_of_sequence(PyObject* list_or_tuple) {
    return PyTuple_Check(list_or_tuple) ? PyTuple_GET_SIZE(list_or_tuple) : PyList_GET_SIZE(list_or_tuple);
}

// The value of a key; empty without an error where there is none, else with the error of its hash or comparison.
inline Ref item_of_dict(PyObject* dict, PyObject* key) {
#if PY_VERSION_HEX >= 0x030D0000
    PyObject* item = nullptr;
    PyDict_GetItemRef(dict, key, &item);
    return Ref::steal(item);
#else
    return Ref::borrow(PyDict_GetItemWithError(dict, key));
#endif
}

// The same for a key of text; errors are as if there were none.
inline Ref item_of_dict(PyObject* dict, const char* key) {
    PyObject* text = PyUnicode_InternFromString(key);
    Ref item = text ? item_of_dict(dict, text) : Ref();
    Py_XDECREF(text);
    if (!item) PyErr_Clear();
    return item;
}

}  // namespace pyop
