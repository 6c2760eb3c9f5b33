// entry/entry_type.cpp: add the attributes for C to the type Plan, as Python sees them.
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

PyObject* keeping(PyObject*, void*) { return PyLong_FromVoidPtr(reinterpret_cast<void*>(call_entry_keeping)); }

PyObject* raising_later(PyObject*, void*) { return PyLong_FromVoidPtr(reinterpret_cast<void*>(call_entry_later)); }

PyObject* take_kept(PyObject*, PyObject*) {
    return guarded([] { return take_failure(); }, static_cast<PyObject*>(nullptr));
}

Ref array_told(const EntryArray& a) {
    Ref shape = Ref::steal(PyTuple_New(a.told.ndim));
    for (int d = 0; shape && d < a.told.ndim; ++d) {
        PyObject* size = PyLong_FromLongLong(a.shape[static_cast<size_t>(d)]);
        if (!size) return {};
        PyTuple_SET_ITEM(shape.get(), d, size);
    }
    return shape ? Ref::steal(Py_BuildValue("ssO", a.told.name, a.told.dtype, shape.get())) : Ref();
}

Ref arrays_told(const std::deque<EntryArray>& arrays) {
    Ref all = Ref::steal(PyList_New(0));
    for (const EntryArray& each : arrays) {
        const Ref one = all ? array_told(each) : Ref();
        if (!one || PyList_Append(all.get(), one.get()) < 0) return {};
    }
    return all;
}

PyObject* arrays(PyObject* plan, void*) {
    return guarded(
        [&]() -> PyObject* {
            const Entry* const entry = entry_of(plan);
            if (!entry) return nullptr;
            const auto& leaves = *reinterpret_cast<PlanObject*>(plan)->leaves;
            const FetchForm form = reinterpret_cast<PlanObject*>(plan)->form;
            bool in_order = leaves.size() == entry->outputs.size();
            for (size_t k = 0; in_order && k < leaves.size(); ++k) in_order = leaves[k] == static_cast<int32_t>(k);
            const char* const text = !in_order                   ? "tree"
                                     : form == FetchForm::Single ? "single"
                                     : form == FetchForm::Tuple  ? "tuple"
                                     : form == FetchForm::List   ? "list"
                                                                 : "tree";
            const Ref inputs = arrays_told(entry->inputs), outputs = inputs ? arrays_told(entry->outputs) : Ref();
            return outputs ? Py_BuildValue("OOs", inputs.get(), outputs.get(), text) : nullptr;
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
    {"_arrays", arrays, nullptr,
     "Return what C hands over and gets, lists of (name, dtype, shape); and how Python gets it: single, tuple, list or "
     "tree.",
     nullptr},
    {"_call_keeping", keeping, nullptr,
     "The address of pyop_plan_call for who asks _take_failure() what was raised, and not PyErr_Occurred().", nullptr},
    {"_call_later", raising_later, nullptr,
     "The address of pyop_plan_call for who looks at no errors: they are raised when the thread returns to Python.",
     nullptr},
    {"_without_python", is_native, nullptr, "Return whether a call from C computes without Python.", nullptr},
    {},
};

PyMethodDef entry_functions[] = {
    {"_take_failure", take_kept, METH_NOARGS,
     "_take_failure(): the exception that a call by C on this thread has kept; None if there is none."},
    {"_with_subnormals", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_with_subnormals)),
     METH_FASTCALL, "_with_subnormals(function, argument): a call for which subnormal numbers are no zeros."},
    {"_ort_declare", ort_declare, METH_VARARGS,
     "_ort_declare(domain, operators, words): what RegisterCustomOps adds next; None for nothing."},
    {"_ort_output", ort_output, METH_VARARGS,
     "_ort_output(call, index, dtype, shape): ONNX Runtime's memory, to write."},
    {"_xla_target", xla_target, METH_VARARGS, "_xla_target(process, words): the handler of XLA's, as a capsule."},
    {},
};

PyMethodDef entry_methods[] = {
    {"_low_level", low_level, METH_O, "_low_level(name): the capsule for a scipy.LowLevelCallable."},
    {},
};

}  // namespace

int entry_init(PyObject* module) {
    if (PyModule_AddFunctions(module, entry_functions) < 0) return -1;
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
