// plan/compiled_function_type.cpp: define the type CompiledFunction, but for its calls: counts, forgetting, death.
#include <utility>

#include "plan/compiled_function.h"
#include "runtime/attribute.h"
#include "runtime/errors.h"

namespace pyop {

PyTypeObject* compiled_function_type = nullptr;

namespace {

PyObject* counts(PyObject* self, PyObject*) {
    const CompiledFunctionObject& f = compiled_function_of(self);
    const ObjectLock lock(self);
    return Py_BuildValue("(KKnn)", static_cast<unsigned long long>(f.hits), static_cast<unsigned long long>(f.misses),
                         static_cast<Py_ssize_t>(f.guards->size()), static_cast<Py_ssize_t>(f.guards->limit()));
}

PyObject* clear_cache(PyObject* self, PyObject*) {
    const ObjectLock lock(self);
    compiled_function_of(self).guards->clear();
    PyObject* const states = compiled_function_of(self).states;
    if (states && PyList_CheckExact(states) && PyList_SetSlice(states, 0, PyList_GET_SIZE(states), nullptr) < 0)
        return nullptr;
    compiled_function_of(self).hits = compiled_function_of(self).misses = 0;
    Py_RETURN_NONE;
}

PyObject* forget(PyObject* self, PyObject* reference) {
    return guarded(
        [&]() -> PyObject* {
            const ObjectLock lock(self);
            if (compiled_function_of(self).guards) compiled_function_of(self).guards->forget(reference);
            Py_RETURN_NONE;
        },
        static_cast<PyObject*>(nullptr));
}

PyObject* compiled_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
    static const char* keywords[] = {"fn", "miss", "max_plans", "statics", "takes_out", "declared", nullptr};
    PyObject *fn, *miss;
    Py_ssize_t max_plans;
    unsigned long long statics;
    int takes_out, declared;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOnKpp", const_cast<char**>(keywords), &fn, &miss, &max_plans,
                                     &statics, &takes_out, &declared))
        return nullptr;
    if (max_plans < 1) {
        PyErr_Format(PyExc_ValueError, "max_plans must be at least 1, not %zd", max_plans);
        return nullptr;
    }
    return guarded(
        [&]() -> PyObject* {
            auto guards = std::make_unique<GuardTable>(static_cast<size_t>(max_plans));
            PyObject* self = type->tp_alloc(type, 0);
            if (!self) return nullptr;
            CompiledFunctionObject& f = compiled_function_of(self);
            f.vectorcall = compiled_vectorcall;
            f.fn = Py_NewRef(fn);
            f.miss = Py_NewRef(miss);
            f.guards = guards.release();
            f.statics = statics;
            f.takes_out = takes_out;
            f.declared = declared;
            f.derives = has_attribute<"_pyop_graph">(fn);
            return self;
        },
        static_cast<PyObject*>(nullptr));
}

int compiled_traverse(PyObject* self, visitproc visit, void* arg) {
    const CompiledFunctionObject& f = compiled_function_of(self);
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(f.fn);
    Py_VISIT(f.miss);
    Py_VISIT(f.states);
    Py_VISIT(f.dict);
    return f.guards ? f.guards->traverse(visit, arg) : 0;
}

int compiled_clear(PyObject* self) {
    // The table itself stays, empty, and so does something to call: a finalizer may still come here.
    CompiledFunctionObject& f = compiled_function_of(self);
    {
        const ObjectLock lock(self);
        f.guards->clear();
    }
    Py_CLEAR(f.dict);
    Py_CLEAR(f.states);
    Py_SETREF(f.fn, Py_NewRef(Py_None));
    Py_SETREF(f.miss, Py_NewRef(Py_None));
    return 0;
}

void compiled_dealloc(PyObject* self) {
    PyObject_GC_UnTrack(self);
    CompiledFunctionObject& f = compiled_function_of(self);
    if (f.weakrefs) PyObject_ClearWeakRefs(self);
    delete std::exchange(f.guards, nullptr);
    Py_CLEAR(f.dict);
    Py_CLEAR(f.fn);
    Py_CLEAR(f.miss);
    Py_CLEAR(f.states);
    PyTypeObject* type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

// As functions do: what is no function (a builtin, a partial) is no method either.
PyObject* compiled_get(PyObject* self, PyObject* instance, PyObject*) {
    const bool binds = instance && instance != Py_None && Py_TYPE(compiled_function_of(self).fn)->tp_descr_get;
    return binds ? PyMethod_New(self, instance) : Py_NewRef(self);
}

PyObject* compiled_repr(PyObject* self) {
    return PyUnicode_FromFormat("<pyop.compile of %R>", compiled_function_of(self).fn);
}

template <typename Function>
PyCFunction as_method(Function* function) {
    return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef compiled_methods[] = {
    {"_plans_for", as_method(compiled_plans_for), METH_FASTCALL | METH_KEYWORDS,
     "The plans of all paths that are known; none where the function itself runs."},
    {"plan_for", as_method(compiled_plan_for), METH_FASTCALL | METH_KEYWORDS,
     "The Plan that a call with these arguments runs; made now if there is none yet.\n\n"
     "Examples\n--------\n"
     ">>> import numpy as np, pyop\n"
     ">>> f = pyop.compile(lambda x: x + x * 2.0)\n"
     ">>> f.plan_for(np.ones(3)).input_names\n"
     "('x',)"},
    {"clear_cache", clear_cache, METH_NOARGS, "Forget all plans, and set the counts of `cache_info` to 0."},
    {"_counts", counts, METH_NOARGS, "_counts(): hits, misses, plans, max_plans."},
    {"_forget", forget, METH_O, "_forget(reference): drops the plans of an instance that is no more."},
    {},
};

PyGetSetDef compiled_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {},
};

PyMemberDef compiled_members[] = {
    {"__wrapped__", T_OBJECT, offsetof(CompiledFunctionObject, fn), READONLY, "The function that was compiled."},
    {"_states", T_OBJECT, offsetof(CompiledFunctionObject, states), 0,
     "The plans of its code, whose inputs are what an instance or closure holds: a list of StateInputs, or None."},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(CompiledFunctionObject, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(CompiledFunctionObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(CompiledFunctionObject, weakrefs), READONLY, nullptr},
    {},
};

PyType_Slot compiled_slots[] = {
    {Py_tp_doc,
     const_cast<char*>(
         "A function that is traced for the dtypes and shapes it is called with, and then runs as a plan.\n\n"
         "Made by `pyop.compile`.\n\n"
         "Examples\n--------\n"
         ">>> import numpy as np, pyop\n"
         ">>> f = pyop.compile(lambda x, y: x * y + 1.0)\n"
         ">>> f(np.arange(3.0), 2.0), f.cache_info()\n"
         "(array([1., 3., 5.]), CacheInfo(hits=0, misses=1, plans=1, max_plans=64))")},
    {Py_tp_new, reinterpret_cast<void*>(compiled_new)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_repr, reinterpret_cast<void*>(compiled_repr)},
    {Py_tp_traverse, reinterpret_cast<void*>(compiled_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(compiled_clear)},
    {Py_tp_dealloc, reinterpret_cast<void*>(compiled_dealloc)},
    {Py_tp_descr_get, reinterpret_cast<void*>(compiled_get)},
    {Py_tp_methods, compiled_methods},
    {Py_tp_getset, compiled_getset},
    {Py_tp_members, compiled_members},
    {0, nullptr},
};

// Not immutable: python/pyop/compiling/methods.py adds the cold methods.
PyType_Spec compiled_spec = {"pyop._core.CompiledFunction", sizeof(CompiledFunctionObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, compiled_slots};

}  // namespace

int compiled_function_init(PyObject* module) {
    compiled_function_type = reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(module, &compiled_spec, nullptr));
    return compiled_function_type ? PyModule_AddType(module, compiled_function_type) : -1;
}

}  // namespace pyop
