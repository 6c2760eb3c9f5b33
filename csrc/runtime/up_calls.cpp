// runtime/up_calls.cpp: the slots of up_calls.h, filled from a dict that must have exactly their names.
#include "runtime/up_calls.h"

#include <array>

#include "runtime/errors.h"

namespace pyop {

UpCalls up_calls;
UpAttributes up_attributes;

namespace {

struct Row {
    const char *name, *files, *meaning;
    PyObject** slot;
};
#define PYOP_UP_ROW(name, files, meaning) Row{#name, files, meaning, &up_calls.name},
const auto calls = std::to_array<Row>({PYOP_UP_CALLS(PYOP_UP_ROW)});
#undef PYOP_UP_ROW
#define PYOP_UP_ROW(name, files, meaning) Row{#name, files, meaning, &up_attributes.name},
const auto attributes = std::to_array<Row>({PYOP_UP_ATTRIBUTES(PYOP_UP_ROW)});
#undef PYOP_UP_ROW

// Whether the dict has each name, and no other.
template <class Rows>
bool has_all(PyObject* given, const Rows& rows) {
    for (const Row& row : rows) {
        if (PyDict_GetItemString(given, row.name)) continue;
        PyErr_Format(PyExc_ImportError, "pyop/up_calls.py has no '%s', which csrc/%s needs (csrc/runtime/up_calls.h)",
                     row.name, row.files);
        return false;
    }
    PyObject *name, *value;
    for (Py_ssize_t at = 0; PyDict_Next(given, &at, &name, &value);) {
        bool known = false;
        for (const Row& row : rows)
            known = known || (PyUnicode_Check(name) && !PyUnicode_CompareWithASCIIString(name, row.name));
        if (known) continue;
        PyErr_Format(PyExc_ImportError, "'%S' of pyop/up_calls.py is not in the list of csrc/runtime/up_calls.h", name);
        return false;
    }
    return true;
}

PyObject* install(PyObject*, PyObject* args) {
    PyObject *functions, *classes;
    if (!PyArg_ParseTuple(args, "O!O!:install_up_calls", &PyDict_Type, &functions, &PyDict_Type, &classes))
        return nullptr;
    if (!has_all(functions, calls) || !has_all(classes, attributes)) return nullptr;
    for (const Row& row : attributes) {
        PyObject* owners = PyDict_GetItemString(classes, row.name);
        for (Py_ssize_t i = 0; PyTuple_Check(owners) && i < PyTuple_GET_SIZE(owners); ++i) {
            if (PyObject_HasAttr(PyTuple_GET_ITEM(owners, i), *row.slot)) continue;
            PyErr_Format(PyExc_ImportError, "%R has no '%s', which csrc/%s asks for (csrc/runtime/up_calls.h)",
                         PyTuple_GET_ITEM(owners, i), row.name, row.files);
            return nullptr;
        }
    }
    for (const Row& row : calls) Py_SETREF(*row.slot, Py_NewRef(PyDict_GetItemString(functions, row.name)));
    Py_RETURN_NONE;
}

PyObject* list(PyObject*, PyObject*) {
    Ref all = Ref::steal(PyDict_New());
    for (const auto& [kind, rows] : {std::pair<const char*, std::span<const Row>>{"up_calls", calls},
                                     std::pair<const char*, std::span<const Row>>{"up_attributes", attributes}}) {
        Ref part = all ? Ref::steal(PyDict_New()) : Ref();
        for (const Row& row : rows) {
            Ref texts = part ? Ref::steal(Py_BuildValue("(ss)", row.files, row.meaning)) : Ref();
            if (!texts || PyDict_SetItemString(part.get(), row.name, texts.get()) < 0) return nullptr;
        }
        if (PyDict_SetItemString(all.get(), kind, part.get()) < 0) return nullptr;
    }
    return all.release();
}

PyMethodDef functions[] = {
    {"install_up_calls", install, METH_VARARGS,
     "install_up_calls(calls, attributes): what C++ calls, by name, and the classes that have the attributes it "
     "reads."},
    {"up_calls", list, METH_NOARGS, "up_calls(): the list of csrc/runtime/up_calls.h: name to (files, meaning)."},
    {},
};

}  // namespace

int up_calls_init(PyObject* module) {
    for (const Row& row : calls) *row.slot = Py_NewRef(Py_None);
    for (const Row& row : attributes)
        if (!(*row.slot = PyUnicode_InternFromString(row.name))) return -1;
    return PyModule_AddFunctions(module, functions);
}

}  // namespace pyop
