// op/op_type.cpp: define the heap type pyop.Op.
#include "array/call/checked_call.h"
#include "array/native/native_kernel.h"
#include "op/op.h"
#include "runtime/errors.h"
#include "runtime/shown_place.h"
#include "runtime/up_calls.h"

namespace pyop {

PyTypeObject* op_type = nullptr;

namespace {

std::string text_of(PyObject* str) {
    const char* text = PyUnicode_AsUTF8(str);
    if (!text) PyErr_Clear();
    return text ? text : "?";
}

void set_fast(OpObject& op) {
    const bool native = is_native_kernel(op.call_fn);
    op.vectorcall = native ? native_op_vectorcall : op_vectorcall;
    op.any_alike = native && takes_any_alike(op.declared());
    op.fast = !native && op.declared().plain && !op.arg_trees && !op.is_method && op.n_in >= 0 &&
              op.n_in <= kPlainArity && (!op.declared().inputs_declared || op.n_in == op.declared().n_in()) &&
              PyTuple_GET_SIZE(op.required) == 0;
}

PyObject* op_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
    static const char* keywords[] = {"fn",        "contract",  "name",     "signature", "origin",   "parameters",
                                     "defaults",  "statics",   "required", "n_in",      "stateful", "any_static",
                                     "is_method", "arg_trees", "call_fn",  nullptr};
    PyObject *fn, *contract, *name, *signature, *origin, *parameters, *defaults, *statics, *required,
        *arg_trees = Py_None, *call_fn = Py_None;
    int n_in, stateful, any_static, is_method;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO!UOUO!O!O!O!ippp|OO", const_cast<char**>(keywords), &fn,
                                     contract_type, &contract, &name, &signature, &origin, &PyTuple_Type, &parameters,
                                     &PyTuple_Type, &defaults, &PyTuple_Type, &statics, &PyTuple_Type, &required, &n_in,
                                     &stateful, &any_static, &is_method, &arg_trees, &call_fn))
        return nullptr;
    if (!PyCallable_Check(fn)) {
        PyErr_Format(PyExc_TypeError, "an op is made of a callable, not of %s", Py_TYPE(fn)->tp_name);
        return nullptr;
    }
    PyObject* self = type->tp_alloc(type, 0);
    if (!self) return nullptr;
    OpObject& op = *as_op(self);
    op.fn = Py_NewRef(fn);
    op.call_fn = Py_NewRef(call_fn == Py_None ? fn : call_fn);
    op.contract = Py_NewRef(contract);
    op.signature = Py_NewRef(signature);
    op.name = Py_NewRef(name);
    op.origin = Py_NewRef(origin);
    op.parameters = Py_NewRef(parameters);
    op.defaults = Py_NewRef(defaults);
    op.statics = Py_NewRef(statics);
    op.required = Py_NewRef(required);
    op.arg_trees = arg_trees == Py_None ? nullptr : Py_NewRef(arg_trees);
    op.n_in = n_in;
    op.stateful = stateful;
    op.any_static = any_static;
    op.is_method = is_method;
    set_fast(op);
    return self;
}

int op_traverse(PyObject* self, visitproc visit, void* arg) {
    const OpObject& op = *as_op(self);
    Py_VISIT(Py_TYPE(self));
    for (PyObject* o : {op.fn, op.call_fn, op.contract, op.signature, op.defaults, op.arg_trees, op.unbound, op.dict})
        Py_VISIT(o);
    return 0;
}

int op_clear(PyObject* self) {
    // A call in flight holds what it uses only through the op, but then the op is reachable and not cleared.
    OpObject& op = *as_op(self);
    op.fast = false;
    op.vectorcall = op_vectorcall;
    Py_CLEAR(op.dict);
    Py_SETREF(op.fn, Py_NewRef(Py_None));
    Py_SETREF(op.call_fn, Py_NewRef(Py_None));
    Py_SETREF(op.defaults, PyTuple_New(0));
    return 0;
}

void op_dealloc(PyObject* self) {
    PyObject_GC_UnTrack(self);
    OpObject& op = *as_op(self);
    if (op.weakrefs) PyObject_ClearWeakRefs(self);
    for (PyObject** o : {&op.fn, &op.call_fn, &op.contract, &op.signature, &op.name, &op.origin, &op.parameters,
                         &op.defaults, &op.statics, &op.required, &op.arg_trees, &op.unbound, &op.dict})
        Py_CLEAR(*o);
    PyTypeObject* type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyObject* op_repr(PyObject* self) {
    const OpObject& op = *as_op(self);
    return PyUnicode_FromFormat("<pyop.Op %R %S>", op.name, op.signature);
}

PyObject* op_get(PyObject* self, PyObject* instance, PyObject*) {
    if (!instance || instance == Py_None || !as_op(self)->is_method) return Py_NewRef(self);
    return op_bind_instance_new(as_op(self), instance);
}

// Pickled by import path, as functions are: pickle checks that the path leads back to this object.
PyObject* op_reduce(PyObject* self, PyObject*) { return PyObject_GetAttrString(self, "__qualname__"); }

// @op.abstract comes after the op exists: the declaration is replaced. Nodes made before keep the old one.
PyObject* op_declare(PyObject* self, PyObject* args) {
    PyObject *contract, *signature;
    if (!PyArg_ParseTuple(args, "O!O", contract_type, &contract, &signature)) return nullptr;
    OpObject& op = *as_op(self);
    Py_SETREF(op.contract, Py_NewRef(contract));
    Py_SETREF(op.signature, Py_NewRef(signature));
    set_fast(op);
    Py_RETURN_NONE;
}

PyObject* op_stateful(PyObject* self, void*) { return PyBool_FromLong(as_op(self)->stateful); }

PyMethodDef op_methods[] = {
    {"_declare", op_declare, METH_VARARGS, "_declare(contract, signature): replaces the declaration."},
    {"__reduce__", op_reduce, METH_NOARGS, "Pickle the op by its import path."},
    {},
};

PyGetSetDef op_getset[] = {
    {"stateful", op_stateful, nullptr, "Return whether it has side effects or hidden inputs.", nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {},
};

PyMemberDef op_members[] = {
    {"__wrapped__", T_OBJECT, offsetof(OpObject, fn), READONLY, "The function that was declared."},
    {"spec", T_OBJECT, offsetof(OpObject, signature), READONLY, "The declaration, a Signature."},
    {"name", T_OBJECT, offsetof(OpObject, name), READONLY, "The name nodes of this op get."},
    {"origin", T_OBJECT, offsetof(OpObject, origin), READONLY, "Where it was declared: 'file:line'."},
    {"parameters", T_OBJECT, offsetof(OpObject, parameters), READONLY, "The names of the array parameters."},
    {"statics", T_OBJECT, offsetof(OpObject, statics), READONLY, "The names of the static (keyword-only) parameters."},
    {"contract", T_OBJECT, offsetof(OpObject, contract), READONLY, "The declaration in the form a call checks."},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(OpObject, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(OpObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(OpObject, weakrefs), READONLY, nullptr},
    {},
};

PyType_Slot op_slots[] = {
    {Py_tp_doc,
     const_cast<char*>(
         "A Python function with declared outputs: made by `pyop.op`.\n\n"
         "Called with arrays it checks them, lends them read-only, calls the function and checks what it returns.\n"
         "Called with Values, or while a graph is being built, it adds a node and returns Values.\n\n"
         "Examples\n--------\n"
         ">>> import numpy as np, pyop\n"
         ">>> double = pyop.op(lambda x: 2.0 * x, \"float64[n] -> float64[n]\", name=\"double\")\n"
         ">>> double(np.ones(2)), double(pyop.Graph().input(\"float64[3]\"))\n"
         "(array([2., 2.]), <pyop.Value 'double' float64[3]>)")},
    {Py_tp_new, reinterpret_cast<void*>(op_new)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_repr, reinterpret_cast<void*>(op_repr)},
    {Py_tp_traverse, reinterpret_cast<void*>(op_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(op_clear)},
    {Py_tp_dealloc, reinterpret_cast<void*>(op_dealloc)},
    {Py_tp_descr_get, reinterpret_cast<void*>(op_get)},
    {Py_tp_methods, op_methods},
    {Py_tp_getset, op_getset},
    {Py_tp_members, op_members},
    {0, nullptr},
};

// Not immutable: python/pyop/ops/op.py adds the cold methods.
PyType_Spec op_type_spec = {"pyop._core.Op", sizeof(OpObject), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, op_slots};

}  // namespace

PyObject* op_bind_instance_new(OpObject* op, PyObject* instance) {
    PyObject* self = op_type->tp_alloc(op_type, 0);
    if (!self) return nullptr;
    OpObject& bound = *as_op(self);
    bound.fn = PyMethod_New(op->fn, instance);
    bound.call_fn = op->call_fn == op->fn ? Py_XNewRef(bound.fn)
                                          : PyObject_CallMethodOneArg(op->call_fn, up_attributes.bind, instance);
    bound.contract = Py_NewRef(op->contract);
    bound.signature = Py_NewRef(op->signature);
    bound.name = Py_NewRef(op->name);
    bound.origin = Py_NewRef(op->origin);
    bound.parameters = Py_NewRef(op->parameters);
    bound.defaults = Py_NewRef(op->defaults);
    bound.statics = Py_NewRef(op->statics);
    bound.required = Py_NewRef(op->required);
    bound.arg_trees = Py_XNewRef(op->arg_trees);
    bound.dict = op->dict ? PyDict_Copy(op->dict) : nullptr;
    bound.unbound = Py_NewRef(reinterpret_cast<PyObject*>(op));
    bound.n_in = op->n_in;
    bound.stateful = op->stateful;
    bound.any_static = op->any_static;
    bound.is_method = false;
    if (bound.fn && bound.call_fn) {
        set_fast(bound);
        return self;
    }
    Py_DECREF(self);
    return nullptr;
}

std::string OpCaller::name() const { return text_of(op_.name); }

std::string OpCaller::description() const {
    SavedError keep;
    return "op '" + text_of(op_.name) + "' (declared at " + text_of(shown_place(Ref::borrow(op_.origin)).get()) + ")";
}

std::string OpCaller::argument_name(int64_t k) const {
    if (op_.arg_trees || k >= PyTuple_GET_SIZE(op_.parameters)) return {};
    return text_of(PyTuple_GET_ITEM(op_.parameters, k));
}

int op_init(PyObject* module) {
    op_type = reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(module, &op_type_spec, nullptr));
    return op_type ? PyModule_AddType(module, op_type) : -1;
}

}  // namespace pyop
