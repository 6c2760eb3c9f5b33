// autograd/function_class.cpp: define the type FunctionClass, made once for every subclass of pyop.Function.
#include <cstddef>  // offsetof

#include "autograd/engine.h"
#include "autograd/function.h"
#include "autograd/turn.h"
#include "runtime/errors.h"

namespace pyop {

PyTypeObject* function_class_type = nullptr;

namespace {

PyObject* or_null(PyObject* o) { return o == Py_None ? nullptr : Py_NewRef(o); }

PyObject* function_class_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
    static const char* keywords[] = {"cls",      "name",      "forward",  "setup_context", "backward",
                                     "jvp",      "defaults",  "bind",     "parameters",    "once",
                                     "internal", "ambiguous", "tangents", nullptr};
    PyObject *cls, *name, *forward, *setup_context, *backward, *jvp, *defaults, *bind;
    int parameters = -1, once = 0, internal = 0, ambiguous = 0, tangents = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OUOOOOO!O|ipppi", const_cast<char**>(keywords), &cls, &name,
                                     &forward, &setup_context, &backward, &jvp, &PyTuple_Type, &defaults, &bind,
                                     &parameters, &once, &internal, &ambiguous, &tangents))
        return nullptr;
    PyObject* self = type->tp_alloc(type, 0);
    if (!self) return nullptr;
    FunctionClass& f = *as_function_class(self);
    f.vectorcall = in_turn<function_apply>;
    f.cls = Py_NewRef(cls);
    f.name = Py_NewRef(name);
    f.forward = or_null(forward);
    f.setup_context = or_null(setup_context);
    f.backward = or_null(backward);
    f.jvp = or_null(jvp);
    f.defaults = Py_NewRef(defaults);
    f.bind = Py_NewRef(bind);
    f.parameters = parameters;
    f.tangents = tangents;
    f.once = once;
    f.internal = internal;
    f.ambiguous = ambiguous;
    return self;
}

int function_class_traverse(PyObject* self, visitproc visit, void* arg) {
    FunctionClass& f = *as_function_class(self);
    Py_VISIT(Py_TYPE(self));
    for (PyObject* o : {f.cls, f.forward, f.setup_context, f.backward, f.jvp, f.defaults, f.bind}) Py_VISIT(o);
    return 0;
}

int function_class_clear(PyObject* self) {
    // A call in flight is made through the class or the node, which keep this object reachable.
    FunctionClass& f = *as_function_class(self);
    for (PyObject** o : {&f.cls, &f.forward, &f.setup_context, &f.backward, &f.jvp}) Py_CLEAR(*o);
    return 0;
}

void function_class_dealloc(PyObject* self) {
    PyObject_GC_UnTrack(self);
    FunctionClass& f = *as_function_class(self);
    if (f.weakrefs) PyObject_ClearWeakRefs(self);
    function_class_clear(self);
    for (PyObject** o : {&f.name, &f.defaults, &f.bind}) Py_CLEAR(*o);
    PyTypeObject* type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyObject* function_class_repr(PyObject* self) {
    return PyUnicode_FromFormat("<apply of %U>", as_function_class(self)->name);
}

// A class that is unpickled by value gets its methods after it was created, and after this object was.
PyObject* function_class_fill(PyObject* self, PyObject* other) {
    if (!Py_IS_TYPE(other, function_class_type)) {
        PyErr_SetString(PyExc_TypeError, "_fill takes what apply of a Function is");
        return nullptr;
    }
    FunctionClass &f = *as_function_class(self), &made = *as_function_class(other);
    Py_XSETREF(f.forward, Py_XNewRef(made.forward));
    Py_XSETREF(f.setup_context, Py_XNewRef(made.setup_context));
    Py_XSETREF(f.backward, Py_XNewRef(made.backward));
    Py_XSETREF(f.jvp, Py_XNewRef(made.jvp));
    Py_XSETREF(f.defaults, Py_XNewRef(made.defaults));
    Py_XSETREF(f.bind, Py_XNewRef(made.bind));
    f.parameters = made.parameters;
    f.once = made.once;
    f.ambiguous = made.ambiguous;
    Py_RETURN_NONE;
}

PyMethodDef function_class_methods[] = {
    {"_call", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(in_turn<function_call_recorded>)),
     METH_FASTCALL,
     "_call(fn, args, rule, result=): calls fn (or takes what it has returned) on Tensors' arrays and arrays, and "
     "records it; None if that takes more."},
    {"_fill", in_turn<function_class_fill>, METH_O, "_fill(other): takes the function_class_methods of another."},
    {"_flat", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(in_turn<function_apply_flat>)), METH_FASTCALL,
     "_flat(args, kwargs, tree): a call whose positional arguments are flat."},
    {"_record", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(in_turn<function_record>)), METH_FASTCALL,
     "_record(tensors, result, attributes): records a call that was made already."},
    {},
};

PyMemberDef function_class_members[] = {
    {"cls", T_OBJECT, offsetof(FunctionClass, cls), READONLY, "The class it applies."},
    {"_bind", T_OBJECT, offsetof(FunctionClass, bind), READONLY, "(args, kwargs) -> the same with keywords in place."},
    {"name", T_OBJECT, offsetof(FunctionClass, name), READONLY, "Its name."},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(FunctionClass, vectorcall), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(FunctionClass, weakrefs), READONLY, nullptr},
    {},
};

PyType_Slot function_class_slots[] = {
    {Py_tp_doc, const_cast<char*>("What `apply` of a Function is: called, it runs forward and records a node.")},
    {Py_tp_new, reinterpret_cast<void*>(in_turn<function_class_new>)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_repr, reinterpret_cast<void*>(in_turn<function_class_repr>)},
    {Py_tp_traverse, reinterpret_cast<void*>(function_class_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(in_turn<function_class_clear>)},
    {Py_tp_dealloc, reinterpret_cast<void*>(in_turn<function_class_dealloc>)},
    {Py_tp_methods, function_class_methods},
    {Py_tp_members, function_class_members},
    {0, nullptr},
};

PyType_Spec function_class_spec = {
    "pyop._core.FunctionClass", sizeof(FunctionClass), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_IMMUTABLETYPE,
    function_class_slots};

}  // namespace

int function_class_init(PyObject* module) {
    function_class_type =
        reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(module, &function_class_spec, nullptr));
    return function_class_type ? PyModule_AddType(module, function_class_type) : -1;
}

}  // namespace pyop
