// runtime/up_calls.cpp: fill the slots of up_calls.h from a dict that must have exactly their names.
#include "runtime/up_calls.h"

#include <array>
#include <cstddef>
#include <span>

#include "runtime/errors.h"

namespace pyop {

UpCalls up_calls;
UpAttributes up_attributes;

namespace {

struct UpCallRow {
    const char *name, *files, *meaning;
    PyObject** slot;
};
#define PYOP_UP_ROW(name, files, meaning) UpCallRow{#name, files, meaning, &up_calls.name},
const auto calls = std::to_array<UpCallRow>({PYOP_UP_CALLS(PYOP_UP_ROW)});
#undef PYOP_UP_ROW
#define PYOP_UP_ROW(name, files, meaning) UpCallRow{#name, files, meaning, &up_attributes.name},
const auto python_attributes = std::to_array<UpCallRow>({PYOP_UP_ATTRIBUTES(PYOP_UP_ROW)});
#undef PYOP_UP_ROW

// Stands in a slot for a function of a module that nobody has needed yet. The first call imports the module, puts the
// function into the slot and calls it; threads that call at once wait for one another in the import system, and find
// the same function. Where the import fails (the interpreter is ending, say) the call has failed, and the next one
// tries again.
struct Deferred {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *module, *name;
    PyObject** slot;
};

PyTypeObject* deferred_type;

PyObject* call_deferred(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
    auto* deferred = reinterpret_cast<Deferred*>(self);
    // The package before its module: another thread that imports the package waits for its modules, and who imports a
    // module waits for the package.
    const Py_ssize_t dot = PyUnicode_FindChar(deferred->module, '.', 0, PyUnicode_GET_LENGTH(deferred->module), -1);
    Ref package = Ref::steal(PyUnicode_Substring(deferred->module, 0, dot));
    Ref first = package ? Ref::steal(PyImport_Import(package.get())) : Ref();
    Ref module = first ? Ref::steal(PyImport_Import(deferred->module)) : Ref();
    Ref function = module ? Ref::steal(PyObject_GetAttr(module.get(), deferred->name)) : Ref();
    if (!function) return nullptr;
    // Who is calling borrows from the slot: this object must live on, so its reference is given up.
    if (*deferred->slot == self) *deferred->slot = Py_NewRef(function.get());
    return PyObject_Vectorcall(function.get(), args, nargsf, kwnames);
}

// ("module", "name") for a function that is to be imported by its first call; anything else stays what it is.
PyObject* called_by(PyObject* given, PyObject** slot) {
    if (!PyTuple_CheckExact(given) || PyTuple_GET_SIZE(given) != 2 || !PyUnicode_Check(PyTuple_GET_ITEM(given, 0)))
        return Py_NewRef(given);
    Deferred* made = PyObject_New(Deferred, deferred_type);
    if (!made) return nullptr;
    made->vectorcall = call_deferred;
    made->module = Py_NewRef(PyTuple_GET_ITEM(given, 0));
    made->name = Py_NewRef(PyTuple_GET_ITEM(given, 1));
    made->slot = slot;
    return reinterpret_cast<PyObject*>(made);
}

void dealloc(PyObject* self) {
    auto* deferred = reinterpret_cast<Deferred*>(self);
    PyTypeObject* type = Py_TYPE(self);
    Py_CLEAR(deferred->module);
    Py_CLEAR(deferred->name);
    PyObject_Free(self);
    Py_DECREF(type);
}

PyMemberDef deferred_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Deferred, vectorcall), READONLY, nullptr},
    {"module", T_OBJECT_EX, offsetof(Deferred, module), READONLY, nullptr},
    {"name", T_OBJECT_EX, offsetof(Deferred, name), READONLY, nullptr},
    {},
};

PyType_Slot deferred_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_members, deferred_members},
    {0, nullptr},
};

PyType_Spec deferred_spec{"pyop._core._Deferred", sizeof(Deferred), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                          deferred_slots};

// Whether the dict has each name, and no other.
template <class Rows>
bool has_all(PyObject* given, const Rows& rows) {
    for (const UpCallRow& row : rows) {
        if (PyDict_GetItemString(given, row.name)) continue;
        PyErr_Format(PyExc_ImportError, "pyop/up_calls.py has no '%s', which csrc/%s needs (csrc/runtime/up_calls.h)",
                     row.name, row.files);
        return false;
    }
    PyObject *name, *value;
    for (Py_ssize_t at = 0; PyDict_Next(given, &at, &name, &value);) {
        bool known = false;
        for (const UpCallRow& row : rows)
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
    if (!has_all(functions, calls) || !has_all(classes, python_attributes)) return nullptr;
    for (const UpCallRow& row : python_attributes) {
        PyObject* owners = PyDict_GetItemString(classes, row.name);
        for (Py_ssize_t i = 0; PyTuple_Check(owners) && i < PyTuple_GET_SIZE(owners); ++i) {
            if (PyUnicode_Check(PyTuple_GET_ITEM(owners, i))) continue;  // a class that is not imported yet
            if (PyObject_HasAttr(PyTuple_GET_ITEM(owners, i), *row.slot)) continue;
            PyErr_Format(PyExc_ImportError, "%R has no '%s', which csrc/%s asks for (csrc/runtime/up_calls.h)",
                         PyTuple_GET_ITEM(owners, i), row.name, row.files);
            return nullptr;
        }
    }
    for (const UpCallRow& row : calls) {
        PyObject* given = PyDict_GetItemString(functions, row.name);
        if (given == Py_None) continue;  // left to fill_up_call
        PyObject* filled = called_by(given, row.slot);
        if (!filled) return nullptr;
        Py_SETREF(*row.slot, filled);
    }
    Py_RETURN_NONE;
}

// The slot of that name, or null with KeyError.
PyObject** slot_of(PyObject* name) {
    for (const UpCallRow& row : calls)
        if (!PyUnicode_CompareWithASCIIString(name, row.name)) return row.slot;
    PyErr_Format(PyExc_KeyError, "%R is not in the list of csrc/runtime/up_calls.h", name);
    return nullptr;
}

PyObject* fill(PyObject*, PyObject* args) {
    PyObject *name, *known;
    if (!PyArg_ParseTuple(args, "UO:fill_up_call", &name, &known)) return nullptr;
    PyObject** slot = slot_of(name);
    if (!slot) return nullptr;
    Py_SETREF(*slot, Py_NewRef(known));
    Py_RETURN_NONE;
}

PyObject* filled(PyObject*, PyObject* name) {
    PyObject** slot = PyUnicode_Check(name) ? slot_of(name) : nullptr;
    if (!slot && !PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "the name of an up-call is a str");
    return slot ? Py_NewRef(*slot) : nullptr;
}

PyObject* list(PyObject*, PyObject*) {
    Ref all = Ref::steal(PyDict_New());
    for (const auto& [kind, rows] :
         {std::pair<const char*, std::span<const UpCallRow>>{"up_calls", calls},
          std::pair<const char*, std::span<const UpCallRow>>{"up_attributes", python_attributes}}) {
        Ref part = all ? Ref::steal(PyDict_New()) : Ref();
        for (const UpCallRow& row : rows) {
            Ref texts = part ? Ref::steal(Py_BuildValue("(ss)", row.files, row.meaning)) : Ref();
            if (!texts || PyDict_SetItemString(part.get(), row.name, texts.get()) < 0) return nullptr;
        }
        if (PyDict_SetItemString(all.get(), kind, part.get()) < 0) return nullptr;
    }
    return all.release();
}

PyMethodDef up_call_functions[] = {
    {"install_up_calls", install, METH_VARARGS,
     "install_up_calls(calls, attributes): what C++ calls, by name, and the classes that have the attributes it "
     "reads. A pair (module, name) is imported by the first call, None is left to fill_up_call."},
    {"fill_up_call", fill, METH_VARARGS,
     "fill_up_call(name, object): what C++ knows by identity, from the module that defines it."},
    {"up_call", filled, METH_O, "up_call(name): what C++ has for it now."},
    {"up_calls", list, METH_NOARGS, "up_calls(): the list of csrc/runtime/up_calls.h: name to (files, meaning)."},
    {},
};

}  // namespace

int up_calls_init(PyObject* module) {
    deferred_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&deferred_spec));
    if (!deferred_type) return -1;
    for (const UpCallRow& row : calls) *row.slot = Py_NewRef(Py_None);
    for (const UpCallRow& row : python_attributes)
        if (!(*row.slot = PyUnicode_InternFromString(row.name))) return -1;
    return PyModule_AddFunctions(module, up_call_functions);
}

}  // namespace pyop
