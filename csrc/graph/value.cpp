// graph/value.cpp: define the type Value: what is known of it, and NumPy's two protocols.
#include "graph/value.h"

#include "graph/build.h"
#include "graph/storage.h"
#include "graph/value_item.h"
#include "graph/value_sequence.h"
#include "runtime/errors.h"
#include "runtime/refusal.h"
#include "runtime/up_calls.h"

namespace pyop {

PyTypeObject* value_type = nullptr;

const ValueSpec& spec_of(PyObject* self) { return graph_of(as_value(self)->graph).spec(as_value(self)->edge); }

namespace {

PyObject* value_name(PyObject* self, void*) {
    ValueObject* v = as_value(self);
    Ref name = graph_of(v->graph).node_name(v->edge.node);
    if (!name || v->edge.output == 0) return name.release();
    return PyUnicode_FromFormat("%U:%u", name.get(), v->edge.output);
}

PyObject* value_spec(PyObject* self, void*) { return spec_new(spec_of(self)); }
PyObject* value_shape(PyObject* self, void*) { return shape_new(spec_of(self)); }

PyObject* value_dtype(PyObject* self, void*) {
    PyObject* dtype = spec_of(self).dtype.get();
    return Py_NewRef(dtype ? dtype : Py_None);
}

PyObject* value_ndim(PyObject* self, void*) {
    const int ndim = spec_of(self).ndim;
    if (ndim < 0) Py_RETURN_NONE;
    return PyLong_FromLong(ndim);
}

PyObject* value_is_scalar(PyObject* self, void*) {
    const Form form = spec_of(self).form;
    if (form == Form::Unknown) Py_RETURN_NONE;
    return PyBool_FromLong(form == Form::Scalar);
}

PyObject* value_text(PyObject* self, void*) {
    const char text = spec_of(self).text;
    if (!text) Py_RETURN_NONE;
    return PyUnicode_FromStringAndSize(&text, 1);
}

PyObject* value_graph(PyObject* self, void*) { return Py_NewRef(as_value(self)->graph); }
PyObject* value_node(PyObject* self, void*) {
    if (bring_up_to_date(as_value(self)) < 0) return nullptr;
    return node_handle_new(as_value(self)->graph, as_value(self)->edge.node);
}
PyObject* value_index(PyObject* self, void*) {
    if (bring_up_to_date(as_value(self)) < 0) return nullptr;
    return PyLong_FromUnsignedLong(as_value(self)->edge.output);
}

PyObject* value_key(PyObject* self, void*) {
    if (bring_up_to_date(as_value(self)) < 0) return nullptr;
    const Edge e = as_value(self)->edge;
    return PyLong_FromUnsignedLongLong(static_cast<uint64_t>(e.node) << 32 | e.output);
}

// For the function under trace, a text that it may show, but not go by: that of an array would be another.
PyObject* value_shown(PyObject* self) {
    Ref text = Ref::steal(text_of_value(self));
    if (!text || !watching() || graph_being_built() != as_value(self)->graph) return text.release();
    return PyObject_CallOneArg(up_calls.shown_text, text.get());
}

// Feeds of a graph are given by Value. The function under trace has NumPy's arrays before its eyes, which have no hash,
// and scalars, whose hash is of their number.
Py_hash_t value_hash(PyObject* self) {
    if (PYOP_UNLIKELY(watching()) && graph_being_built() == as_value(self)->graph) {
        if (spec_of(self).form != Form::Scalar)
            PyErr_SetString(PyExc_TypeError, "unhashable type: 'numpy.ndarray'");
        else
            refuse(
                PyExc_TypeError,
                "the hash of a Value (for the key of a dict, or a set) is that of its number, which it has only when "
                "its graph runs: use a Python value as the key, or do this in a pyop.op, which is called with arrays");
        return -1;
    }
    const auto address = reinterpret_cast<size_t>(self);
    return static_cast<Py_hash_t>(address >> 4);
}

constexpr const char* kWrap =
    "declare the function that needs numbers with pyop.op (or pyop.numpy_function), which calls it with arrays when "
    "the graph runs";
constexpr const char* kWrapOrStack =
    "where np.array([...]) was to put Values together, write np.stack([...]); else declare the function that needs "
    "numbers with pyop.op (or pyop.numpy_function), which calls it with arrays when the graph runs";

PYOP_COLD PyObject* needs_number(PyObject* self, const char* what, const char* instead) {
    const Graph& graph = graph_of(as_value(self)->graph);
    if (graph.finished()) {
        Ref kept = graph.kept_value_text(as_value(self)->edge.node);
        if (kept) PyErr_SetObject(errors.graph, kept.get());
        return nullptr;
    }
    Ref text = Ref::steal(text_of_value(self));
    Ref storing = text ? Ref::steal(PyObject_CallOneArg(up_calls.text_of_store, text.get())) : Ref();
    if (!storing) return nullptr;
    if (storing.get() != Py_None)
        refuse(PyExc_TypeError, "%U", storing.get());
    else
        refuse(PyExc_TypeError, "%s of %U was asked for, but a Value has no numbers until its graph runs: %s", what,
               text.get(), instead);
    return nullptr;
}

// What a Value is known to be, as an array or a scalar, if the function under trace may go by it; None, or null with
// the error set.
Ref known_numbers(PyObject* self) {
    if (graph_of(as_value(self)->graph).finished()) return Ref::borrow(Py_None);
    return Ref::steal(PyObject_CallOneArg(up_calls.numbers_asked, self));
}

PyObject* value_array(PyObject* self, PyObject*, PyObject*) {
    Ref known = known_numbers(self);
    if (!known) return nullptr;
    if (known.get() == Py_None) return needs_number(self, "the array", kWrapOrStack);
    Ref array = Ref::steal(PyArray_FromAny(known.get(), nullptr, 0, 0, NPY_ARRAY_ENSURECOPY, nullptr));
    if (!array) return nullptr;
    // Whoever asks may take it for the memory itself: nobody writes to either from now on.
    PyArray_CLEARFLAGS(as_array(array.get()), NPY_ARRAY_WRITEABLE);
    if (!PyArray_IsScalar(known.get(), Generic)) give_memory_away(as_value(self));
    return array.release();
}
PyObject* value_complex(PyObject* self, PyObject*) {
    Ref known = known_numbers(self);
    if (!known) return nullptr;
    if (known.get() == Py_None) return needs_number(self, "complex()", kWrap);
    return PyObject_CallOneArg(reinterpret_cast<PyObject*>(&PyComplex_Type), known.get());
}

// Whether what the caller's Python code is doing is an operator and no call: python/pyop/graph/operands.py. -1: error
// set.
int is_written_as_operator() {
    Ref answer = Ref::steal(PyObject_CallNoArgs(up_calls.is_written_as_operator));
    return answer ? answer.get() == Py_True : -1;
}

PyObject* value_array_ufunc(PyObject* self, PyObject* args, PyObject* kwargs) {
    if (PyTuple_GET_SIZE(args) < 2) {
        PyErr_SetString(PyExc_TypeError, "__array_ufunc__ needs a ufunc and a method");
        return nullptr;
    }
    PyObject *ufunc = PyTuple_GET_ITEM(args, 0), *method = PyTuple_GET_ITEM(args, 1);
    const bool plain_call =
        !kwargs && PyUnicode_Check(method) && PyUnicode_CompareWithASCIIString(method, "__call__") == 0;
    if (plain_call) {
        PyObject* const* inputs = &PyTuple_GET_ITEM(args, 2);
        const Py_ssize_t n = PyTuple_GET_SIZE(args) - 2;
        // NumPy's scalars hand their operators on as calls of ufuncs.
        const int written = n == 2 && !is_value(inputs[0]) && PyArray_CheckScalar(inputs[0]) &&
                                    stands_for_scalar(inputs[0]) && stands_for_scalar(inputs[1])
                                ? is_written_as_operator()
                                : 0;
        if (written < 0) return nullptr;
        return written ? operator_call_new(ufunc, inputs, n) : ufunc_call_new(ufunc, inputs, n);
    }
    Ref inputs = Ref::steal(PyTuple_GetSlice(args, 2, PyTuple_GET_SIZE(args)));
    Ref empty = kwargs ? Ref::borrow(kwargs) : Ref::steal(PyDict_New());
    if (!inputs || !empty) return nullptr;
    (void)self;
    return PyObject_CallFunctionObjArgs(up_calls.value_array_ufunc, ufunc, method, inputs.get(), empty.get(), nullptr);
}

PyObject* value_array_function(PyObject*, PyObject* args) {
    return PyObject_CallObject(up_calls.value_array_function, args);
}

// A slot, and no method given to the type from Python: that would make the type a sequence in the eyes of NumPy, which
// then hides our errors behind its own.
PyObject* value_subscript(PyObject* self, PyObject* key) {
    Ref plain = Ref::steal(value_plain_item(self, key));
    if (!plain || plain.get() != Py_None) return plain.release();
    return PyObject_CallFunctionObjArgs(up_calls.value_getitem, self, key, nullptr);
}

int value_traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(as_value(self)->graph);
    return 0;
}

void value_dealloc(PyObject* self) {
    PyObject_GC_UnTrack(self);
    PyTypeObject* type = Py_TYPE(self);
    leave_storage(as_value(self));
    Py_CLEAR(as_value(self)->graph);
    type->tp_free(self);
    Py_DECREF(type);
}

// What a Value is in the call that is traced, if the function under trace may go by it: null with the error set, or
// NotImplemented.
PyObject* decided_new(PyObject* self, const char* asked) {
    if (graph_of(as_value(self)->graph).finished()) return Py_NewRef(Py_NotImplemented);
    return PyObject_CallFunction(up_calls.value_decided, "Os", self, asked);
}

int value_bool(PyObject* self) {
    const Ref known = Ref::steal(decided_new(self, "t"));
    if (!known) return -1;
    if (known.get() != Py_NotImplemented) return known.get() == Py_True;
    needs_number(self, "the truth",
                 "choose by value with np.where, combine conditions with & and |, or declare the "
                 "function that decides with pyop.op");
    return -1;
}
PyObject* value_float(PyObject* self) {
    Ref known = known_numbers(self);
    if (!known) return nullptr;
    return known.get() == Py_None ? needs_number(self, "float()", kWrap) : PyNumber_Float(known.get());
}
PyObject* value_int(PyObject* self) {
    Ref known = Ref::steal(decided_new(self, "i"));
    return !known || known.get() != Py_NotImplemented ? known.release() : needs_number(self, "int()", kWrap);
}
PyObject* value_as_index(PyObject* self) {
    Ref known = Ref::steal(decided_new(self, "x"));
    return !known || known.get() != Py_NotImplemented ? known.release() : needs_number(self, "an index", kWrap);
}

PyGetSetDef value_getset[] = {
    {"name", value_name, nullptr, "The name of the node; with ':k' for output k > 0.", nullptr},
    {"spec", value_spec, nullptr, "Return what is known of dtype and shape, as a Spec.", nullptr},
    {"shape", value_shape, nullptr, "Tuple of int, Dim (symbolic) or None (unknown); None if the rank is unknown.",
     nullptr},
    {"dtype", value_dtype, nullptr, "The dtype, or None if unknown.", nullptr},
    {"ndim", value_ndim, nullptr, "The number of dimensions, or None if unknown.", nullptr},
    {"_is_scalar", value_is_scalar, nullptr, "Return whether NumPy has a scalar here, and no array; None if unknown.",
     nullptr},
    {"__class__", value_class, nullptr, "Return what NumPy has here: ndarray, or the type of a scalar.", nullptr},
    {"_text", value_text, nullptr, "'U' or 'S' where str or bytes of any length is declared; else None.", nullptr},
    {"graph", value_graph, nullptr, "The graph this Value belongs to.", nullptr},
    {"node", value_node, nullptr, "The node that computes this Value.", nullptr},
    {"_key", value_key, nullptr, "A number that identifies the output within its graph.", nullptr},
    {"output_index", value_index, nullptr, "Return which output of the node this is.", nullptr},
    {},
};

PyMethodDef value_methods[] = {
    {"__array__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(value_array)),
     METH_VARARGS | METH_KEYWORDS, "A Value has no array: raises TypeError with what to do."},
    {"__complex__", value_complex, METH_NOARGS, "A Value has no number: raises TypeError."},
    {"__array_ufunc__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(value_array_ufunc)),
     METH_VARARGS | METH_KEYWORDS, "NumPy's protocol for ufuncs: adds a node."},
    {"__array_function__", value_array_function, METH_VARARGS, "NumPy's protocol for functions: adds a node."},
    {},
};

const PyType_Slot own_slots[] = {
    {Py_tp_doc, const_cast<char*>(
                    "A symbolic array: one output of a node in a graph.\n\n"
                    "Behaves like an ndarray under NumPy's functions and operators, each of which adds a node. Made by "
                    "`Graph.input`, `Graph.constant` and by calling ops; has no numbers until the graph runs.\n\n"
                    "Examples\n--------\n"
                    ">>> import numpy as np, pyop\n"
                    ">>> g = pyop.Graph()\n"
                    ">>> x = g.input(\"float64[n,3]\", name=\"x\")\n"
                    ">>> np.sum(x * 2.0, axis=1)\n"
                    "<pyop.Value 'sum' float64[n]>")},
    {Py_tp_repr, reinterpret_cast<void*>(value_shown)},
    {Py_tp_hash, reinterpret_cast<void*>(value_hash)},
    {Py_tp_traverse, reinterpret_cast<void*>(value_traverse)},
    {Py_tp_dealloc, reinterpret_cast<void*>(value_dealloc)},
    {Py_tp_getset, value_getset},
    {Py_tp_getattro, reinterpret_cast<void*>(value_getattro)},
    {Py_tp_setattro, reinterpret_cast<void*>(value_setattro)},
    {Py_mp_subscript, reinterpret_cast<void*>(value_subscript)},
    {Py_nb_bool, reinterpret_cast<void*>(value_bool)},
    {Py_nb_float, reinterpret_cast<void*>(value_float)},
    {Py_nb_int, reinterpret_cast<void*>(value_int)},
    {Py_nb_index, reinterpret_cast<void*>(value_as_index)},
};

}  // namespace

PyObject* text_of_value(PyObject* self) {
    Ref name = Ref::steal(value_name(self, nullptr));
    Ref spec = Ref::steal(value_spec(self, nullptr));
    if (!name || !spec) return nullptr;
    return PyUnicode_FromFormat("<pyop.Value %R %S>", name.get(), spec.get());
}

PyObject* value_new(PyObject* graph, Edge edge, uint32_t flags) {
    ValueObject* v = PyObject_GC_New(ValueObject, value_type);
    if (!v) return nullptr;
    v->graph = Py_NewRef(graph);
    v->edge = edge;
    v->flags = flags;
    v->version = 0;
    v->storage = nullptr;
    v->view = nullptr;
    v->next = v->previous = nullptr;
    PyObject_GC_Track(v);
    return reinterpret_cast<PyObject*>(v);
}

PyObject* array_ufunc_in_python(PyObject* ufunc, PyObject* const* inputs, Py_ssize_t n) {
    Ref method = Ref::steal(PyUnicode_InternFromString("__call__"));
    Ref tuple = Ref::steal(PyTuple_New(n)), kwargs = Ref::steal(PyDict_New());
    if (!method || !tuple || !kwargs) return nullptr;
    for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(tuple.get(), i, Py_NewRef(inputs[i]));
    return PyObject_CallFunctionObjArgs(up_calls.value_array_ufunc, ufunc, method.get(), tuple.get(), kwargs.get(),
                                        nullptr);
}

int value_init(PyObject* module) {
    std::vector<PyType_Slot> slots(std::begin(own_slots), std::end(own_slots));
    if (value_operator_slots(slots) < 0 || value_in_place_slots(slots) < 0 || value_sequence_slots(slots) < 0)
        return -1;
    static std::vector<PyMethodDef> methods(std::begin(value_methods), std::end(value_methods));
    const auto more = value_memory_methods();
    methods.insert(methods.end() - 1, more.begin(), more.end());
    slots.push_back({Py_tp_methods, methods.data()});
    slots.push_back({0, nullptr});
    // Not immutable: python/pyop/graph/value_methods.py adds the ndarray methods.
    PyType_Spec spec = {"pyop._core.Value", sizeof(ValueObject), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots.data()};
    value_type = reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(module, &spec, nullptr));
    if (!value_type || value_stand_in.take_names(value_type) < 0 || value_item_init() < 0) return -1;
    return PyModule_AddType(module, value_type);
}

}  // namespace pyop
