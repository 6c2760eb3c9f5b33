// entry/entry_type.cpp: what a Plan has for C, as Python sees it: attributes that are added to its type.
#include "entry/entry.h"
#include "entry/failure.h"
#include "runtime/errors.h"

namespace pyop {

namespace {

PyObject* address(PyObject* plan, void*) {
    return guarded(
        [&]() -> PyObject* {
            const Entry* const entry = entry_of(plan);
            return entry ? PyLong_FromVoidPtr(const_cast<Entry*>(entry)) : nullptr;
        },
        static_cast<PyObject*>(nullptr));
}

void drop_plan(PyObject* capsule) { Py_XDECREF(static_cast<PyObject*>(PyCapsule_GetContext(capsule))); }

PyObject* capsule(PyObject* plan, void*) {
    return guarded(
        [&]() -> PyObject* {
            const Entry* const entry = entry_of(plan);
            if (!entry) return nullptr;
            Ref made = Ref::steal(PyCapsule_New(const_cast<Entry*>(entry), PYOP_PLAN_CAPSULE, drop_plan));
            if (!made || PyCapsule_SetContext(made.get(), plan) < 0) return nullptr;
            Py_INCREF(plan);
            return made.release();
        },
        static_cast<PyObject*>(nullptr));
}

PyObject* is_native(PyObject* plan, void*) {
    return guarded(
        [&]() -> PyObject* {
            const Entry* const entry = entry_of(plan);
            return entry ? PyBool_FromLong(entry->native) : nullptr;
        },
        static_cast<PyObject*>(nullptr));
}

PyObject* low_level(PyObject* plan, PyObject* name) {
    return guarded([&] { return low_level_new(plan, name); }, static_cast<PyObject*>(nullptr));
}

PyGetSetDef entry_attributes[] = {
    {"address", address, nullptr, "The `pyop_plan*` of <pyop/entry.h>, as an integer: good as long as the plan lives.",
     nullptr},
    {"capsule", capsule, nullptr, "A PyCapsule named \"pyop.plan\" of the `pyop_plan*`, which keeps the plan alive.",
     nullptr},
    {"_without_python", is_native, nullptr, "Whether a call from C computes without Python.", nullptr},
    {},
};

PyMethodDef entry_methods[] = {
    {"_low_level", low_level, METH_O, "_low_level(name): the capsule for a scipy.LowLevelCallable."},
    {},
};

}  // namespace

int entry_init(PyObject*) {
    PyObject* const type = reinterpret_cast<PyObject*>(plan_type);
    for (PyGetSetDef* each = entry_attributes; each->name; ++each) {
        Ref made = Ref::steal(PyDescr_NewGetSet(plan_type, each));
        if (!made || PyObject_SetAttrString(type, each->name, made.get()) < 0) return -1;
    }
    for (PyMethodDef* each = entry_methods; each->ml_name; ++each) {
        Ref made = Ref::steal(PyDescr_NewMethod(plan_type, each));
        if (!made || PyObject_SetAttrString(type, each->ml_name, made.get()) < 0) return -1;
    }
    return 0;
}

}  // namespace pyop
