// array/protocol/stand_in.cpp: list the names that are for arrays alone, and answer for them.
#include "array/protocol/stand_in.h"

#include <algorithm>
#include <span>

namespace pyop {

namespace {

bool is_one_of(PyObject* name, std::span<const char* const> texts) {
    return std::any_of(texts.begin(), texts.end(),
                       [&](const char* text) { return PyUnicode_CompareWithASCIIString(name, text) == 0; });
}

bool is_special(PyObject* name) {
    const Py_ssize_t n = PyUnicode_GET_LENGTH(name);
    return n > 4 && PyUnicode_READ_CHAR(name, 0) == '_' && PyUnicode_READ_CHAR(name, 1) == '_' &&
           PyUnicode_READ_CHAR(name, n - 1) == '_';
}

// What others must find, whatever it stands for.
constexpr std::array<const char*, 5> kProtocols = {"__class__", "__array_ufunc__", "__array_function__",
                                                   "__pandas_priority__", "__module__"};
// Methods that arrays have and scalars have not.
constexpr std::array<const char*, 3> kOfArrays = {"dot", "argpartition", "partition"};
constexpr std::array<const char*, 5> kSpecialOfArrays = {"__len__", "__iter__", "__contains__", "__setitem__",
                                                         "__delitem__"};

// Almost every attribute that is asked for comes by here: most names are told by their first letter.
bool is_of_arrays(PyObject* name) {
    if (PyUnicode_GET_LENGTH(name) == 0) return false;
    const Py_UCS4 first = PyUnicode_READ_CHAR(name, 0);
    return (first == 'd' || first == 'a' || first == 'p') && is_one_of(name, kOfArrays);
}

PyObject* has_not(PyObject* type, PyObject* name) {
    PyErr_Format(PyExc_AttributeError, "'%s' object has no attribute '%U'",
                 reinterpret_cast<PyTypeObject*>(type)->tp_name, name);
    return nullptr;
}

}  // namespace

int StandIn::take_names(PyTypeObject* type) {
    for (size_t i = 0; i < kNames.size(); ++i) {
        PyObject* method = PyDict_GetItemString(type->tp_dict, kNames[i]);
        if (!method) continue;
        methods_[i] = Py_NewRef(method);
        if (PyDict_DelItemString(type->tp_dict, kNames[i]) < 0) return -1;
    }
    // That of `object` would be found.
    if (PyDict_SetItemString(type->tp_dict, "__hash__", Py_None) < 0) return -1;
    PyType_Modified(type);
    return 0;
}

bool StandIn::only_arrays_have(PyObject* name) {
    return PyUnicode_Check(name) && is_special(name) && is_one_of(name, kSpecialOfArrays);
}

PyObject* StandIn::attribute(PyObject* self, PyObject* name, PyObject* (*as)(PyObject*, void*)) const {
    if (!PyUnicode_Check(name)) return PyObject_GenericGetAttr(self, name);
    const bool special = is_special(name);
    if (special ? is_one_of(name, kProtocols) : !is_of_arrays(name)) return PyObject_GenericGetAttr(self, name);
    Ref type = Ref::steal(as(self, nullptr));
    if (!type) return nullptr;
    Ref theirs = Ref::steal(PyObject_GetAttr(type.get(), name));
    if (!theirs) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return nullptr;
        PyErr_Clear();
        Ref ours = Ref::steal(PyObject_GenericGetAttr(self, name));
        return ours ? has_not(type.get(), name) : nullptr;
    }
    if (!special) return PyObject_GenericGetAttr(self, name);
    for (size_t i = 0; i < kNames.size(); ++i) {
        if (!methods_[i] || PyUnicode_CompareWithASCIIString(name, kNames[i]) != 0) continue;
        if (theirs.get() == Py_None) return theirs.release();
        return Py_TYPE(methods_[i])->tp_descr_get(methods_[i], self, reinterpret_cast<PyObject*>(Py_TYPE(self)));
    }
    return PyObject_GenericGetAttr(self, name);
}

}  // namespace pyop
