// plan/disabled.cpp: implement the context manager below `pyop.disable`, and read the environment variable.
#include "plan/disabled.h"

#include <cstdlib>
#include <string_view>
#include <vector>

#include "runtime/errors.h"

namespace pyop {

namespace {

bool everywhere = false;       // PYOP_DISABLE
PyObject* disabled_variable = nullptr;  // a ContextVar: True where it is on

struct DisableObject {
    PyObject_HEAD
    std::vector<Ref>*
        tokens;  // one for each `with` that has entered it: the object may be used again, and inside itself
};

std::vector<Ref>& tokens_of(PyObject* self) { return *reinterpret_cast<DisableObject*>(self)->tokens; }

PyObject* disable_new(PyTypeObject* type, PyObject*, PyObject*) {
    PyObject* self = type->tp_alloc(type, 0);
    if (!self) return nullptr;
    reinterpret_cast<DisableObject*>(self)->tokens = new (std::nothrow) std::vector<Ref>;
    if (reinterpret_cast<DisableObject*>(self)->tokens) return self;
    Py_DECREF(self);
    return PyErr_NoMemory();
}

void disable_dealloc(PyObject* self) {
    PyTypeObject* type = Py_TYPE(self);
    if (auto* tokens = std::exchange(reinterpret_cast<DisableObject*>(self)->tokens, nullptr)) {
        disabled_anywhere -= static_cast<long>(tokens->size());  // entered by hand, and never left
        delete tokens;
    }
    type->tp_free(self);
    Py_DECREF(type);
}

PyObject* enter(PyObject* self, PyObject*) {
    return guarded(
        [&]() -> PyObject* {
            tokens_of(self).reserve(tokens_of(self).size() + 1);
            Ref token = Ref::steal(PyContextVar_Set(disabled_variable, Py_True));
            if (!token) return nullptr;
            tokens_of(self).push_back(std::move(token));
            ++disabled_anywhere;
            return Py_NewRef(self);
        },
        static_cast<PyObject*>(nullptr));
}

PyObject* leave(PyObject* self, PyObject*) {
    if (tokens_of(self).empty()) {
        PyErr_SetString(PyExc_RuntimeError,
                        "pyop.disable() is left, but was not entered: use it as `with pyop.disable():`");
        return nullptr;
    }
    const Ref token = std::move(tokens_of(self).back());
    tokens_of(self).pop_back();
    --disabled_anywhere;
    return PyContextVar_Reset(disabled_variable, token.get()) < 0 ? nullptr : Py_NewRef(Py_None);
}

PyObject* ask(PyObject*, PyObject*) {
    const int on = disabled_anywhere ? is_disabled() : 0;
    return on < 0 ? nullptr : PyBool_FromLong(on);
}

PyMethodDef disable_methods[] = {
    {"__enter__", enter, METH_NOARGS, "Compiled functions run plainly from here on; returns itself."},
    {"__exit__", leave, METH_VARARGS, "They do what they did before."},
    {},
};
PyType_Slot disable_slots[] = {
    {Py_tp_doc, const_cast<char*>("Disable(): compiled functions run plainly for the length of a `with`.")},
    {Py_tp_new, reinterpret_cast<void*>(disable_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(disable_dealloc)},
    {Py_tp_methods, disable_methods},
    {0, nullptr},
};
PyType_Spec disable_spec = {"pyop._core.Disable", sizeof(DisableObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                            disable_slots};

PyMethodDef disabled_functions[] = {
    {"is_disabled", ask, METH_NOARGS, "is_disabled(): whether compiled functions run plainly here."},
    {},
};

}  // namespace

int is_disabled() {
    if (everywhere) return 1;
    PyObject* found;
    if (PyContextVar_Get(disabled_variable, Py_False, &found) < 0) return -1;
    const Ref value = Ref::steal(found);
    return value.get() == Py_True;
}

int disabled_init(PyObject* module) {
    const char* given = std::getenv("PYOP_DISABLE");
    everywhere = given && *given && std::string_view(given) != "0";
    disabled_anywhere += everywhere;
    disabled_variable = PyContextVar_New("pyop.disable", nullptr);
    auto* type = reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(module, &disable_spec, nullptr));
    if (!disabled_variable || !type || PyModule_AddType(module, type) < 0) return -1;
    return PyModule_AddFunctions(module, disabled_functions);
}

}  // namespace pyop
