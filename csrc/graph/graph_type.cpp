// graph/graph_type.cpp: define GraphBase, the Python object of a Graph. python/pyop/graph/graph.py extends it with
// everything that need not be fast.
#include "array/call/checked_call.h"
#include "array/protocol/scalar_operator.h"
#include "graph/build.h"
#include "graph/graph.h"
#include "runtime/errors.h"

namespace pyop {

PyTypeObject* graph_type = nullptr;

namespace {

PyObject* graph_new(PyTypeObject* type, PyObject*, PyObject*) {
    PyObject* self = type->tp_alloc(type, 0);
    if (self) reinterpret_cast<GraphObject*>(self)->graph = new Graph;
    return self;
}

int graph_traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    Graph* g = reinterpret_cast<GraphObject*>(self)->graph;
    return g ? g->traverse(visit, arg) : 0;
}

int graph_clear(PyObject* self) {
    auto* object = reinterpret_cast<GraphObject*>(self);
    if (object->graph) object->graph->drop();
    return 0;
}

void graph_dealloc(PyObject* self) {
    PyObject_GC_UnTrack(self);
    PyTypeObject* type = Py_TYPE(self);
    delete std::exchange(reinterpret_cast<GraphObject*>(self)->graph, nullptr);
    type->tp_free(self);
    Py_DECREF(type);
}

PyObject* add_input(PyObject* self, PyObject* args) {
    PyObject *spec, *name;
    int scalar = 0;
    if (!PyArg_ParseTuple(args, "OU|p", &spec, &name, &scalar)) return nullptr;
    Graph& g = graph_of(self);
    ValueSpec value;
    if (spec_from_python(spec, value) < 0) return nullptr;
    value.form = scalar ? Form::Scalar : Form::Array;
    const int64_t node = g.add(std::make_unique<InputNode>(g.specs().intern(std::move(value))), name);
    return node < 0 ? nullptr : value_new(self, {static_cast<uint32_t>(node), 0});
}

PyObject* add_constant_method(PyObject* self, PyObject* args) {
    PyObject *array, *name;
    if (!PyArg_ParseTuple(args, "O!U", &PyArray_Type, &array, &name)) return nullptr;
    const int64_t node = add_constant(self, as_array(array), name, false);
    return node < 0 ? nullptr : value_new(self, {static_cast<uint32_t>(node), 0});
}

class NamedCaller final : public Caller {
  public:
    explicit NamedCaller(PyObject* name) : name_(name) {}
    std::string name() const override { return printable(name_); }
    std::string description() const override {
        SavedError keep;
        Ref place = origin_text(current_origin());
        const char* text = place ? PyUnicode_AsUTF8(place.get()) : nullptr;
        if (!text) PyErr_Clear();
        return "node '" + name() + "' (created at " + (text ? text : "an unknown place") + ")";
    }

  private:
    PyObject* name_;
};

int parse_form(PyObject* order, PyObject* statics, PyObject* kwnames, size_t n_inputs, PyNode::Call& call) {
    if (order == Py_None) return 0;
    auto form = std::make_unique<CallForm>();
    Ref fast = Ref::steal(PySequence_Tuple(order));
    if (!fast) return -1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(fast.get()); ++i) {
        const long code = PyLong_AsLong(PyTuple_GET_ITEM(fast.get(), i));
        if (code == -1 && PyErr_Occurred()) return -1;
        const bool ok = code >= 0 ? static_cast<size_t>(code) < n_inputs
                                  : PyTuple_Check(statics) && ~code < PyTuple_GET_SIZE(statics);
        if (!ok) {
            PyErr_SetString(PyExc_ValueError, "an argument code points nowhere");
            return -1;
        }
        form->order.push_back(static_cast<int32_t>(code));
    }
    form->statics = SharedRef::borrow(statics);
    if (kwnames != Py_None) {
        if (!PyTuple_Check(kwnames) || PyTuple_GET_SIZE(kwnames) > PyTuple_GET_SIZE(fast.get())) {
            PyErr_SetString(PyExc_ValueError, "more keywords than arguments");
            return -1;
        }
        form->kwnames = SharedRef::borrow(kwnames);
    }
    if (!form->statics) return -1;
    call.form = std::move(form);
    return 0;
}

int specs_of_call(PyObject* self, PyObject* specs, const Contract* c, std::span<const Edge> edges, const CallForm* form,
                  Form kind, const Caller& caller, std::vector<uint32_t>& ids) {
    if (specs == Py_None && c) return infer_outputs(self, *c, edges, form, ids, nullptr, caller);
    Ref list = Ref::steal(PySequence_Tuple(specs));
    if (!list) return -1;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(list.get()); ++k) {
        ValueSpec spec;
        if (spec_from_python(PyTuple_GET_ITEM(list.get(), k), spec) < 0) return -1;
        // A function that returns scalars returns arrays too: of unknown rank nothing is known.
        spec.form = spec.ndim > 0 ? Form::Array : spec.ndim < 0 && kind == Form::Scalar ? Form::Unknown : kind;
        ids.push_back(graph_of(self).specs().intern(std::move(spec)));
    }
    return 0;
}

PyObject* add_call_of(PyObject* self, PyObject* args, PyObject* kwargs) {
    static const char* keywords[] = {"fn",      "inputs",   "name",  "specs",  "contract",   "order", "statics",
                                     "kwnames", "stateful", "lends", "scalar", "of_scalars", nullptr};
    PyObject *fn, *inputs, *name, *specs = Py_None, *contract = Py_None, *order = Py_None, *statics = Py_None,
                                  *kwnames = Py_None, *scalar = Py_None;
    int stateful = 0, lends = 1, of_scalars = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO!U|OOOOOppOp", const_cast<char**>(keywords), &fn, &PyTuple_Type,
                                     &inputs, &name, &specs, &contract, &order, &statics, &kwnames, &stateful, &lends,
                                     &scalar, &of_scalars))
        return nullptr;
    if (of_scalars && (!scalar_operator(fn) || kwnames != Py_None)) {
        PyErr_SetString(PyExc_ValueError, "of_scalars: not the ufunc of an operator");
        return nullptr;
    }
    if (contract != Py_None && !is_contract(contract)) {
        PyErr_SetString(PyExc_TypeError, "contract must be a Contract or None");
        return nullptr;
    }
    auto* c = contract == Py_None ? nullptr : reinterpret_cast<const Contract*>(contract);
    const NamedCaller caller(name);
    const Form form = scalar == Py_None ? Form::Unknown : scalar == Py_True ? Form::Scalar : Form::Array;
    const Py_ssize_t n = PyTuple_GET_SIZE(inputs);
    if (c && c->inputs_declared && n != c->n_in()) {
        PyErr_Format(errors.input, "%U takes %zd arrays, but got %zd", name, c->n_in(), n);
        return nullptr;
    }
    std::vector<Edge> edges;
    std::vector<uint32_t> ids;
    PyNode::Call call;
    if (edges_of(self, &PyTuple_GET_ITEM(inputs, 0), n, c, caller, edges) < 0 ||
        parse_form(order, statics, kwnames, edges.size(), call) < 0 ||
        specs_of_call(self, specs, c, edges, call.form.get(), form, caller, ids) < 0)
        return nullptr;
    call.fn = SharedRef::borrow(fn);
    if (c) call.contract = SharedRef::borrow(contract);
    call.lends = lends != 0;
    call.of_scalars = of_scalars != 0;
    if (!call.fn || (c && !call.contract)) return nullptr;
    const int64_t node = add_call(self, std::move(call), edges, ids, stateful != 0, name);
    return node < 0 ? nullptr : node_handle_new(self, static_cast<uint32_t>(node));
}

PyObject* add_call_method(PyObject* self, PyObject* args, PyObject* kwargs) {
    return guarded([&] { return add_call_of(self, args, kwargs); }, static_cast<PyObject*>(nullptr));
}

// Not Python: an interrupt that lands before the first line of an `__exit__` would leave the thread building.
PyObject* graph_enter(PyObject* self, PyObject*) {
    return guarded(
        [&] {
            push_graph(self);
            return Py_NewRef(self);
        },
        static_cast<PyObject*>(nullptr));
}

PyObject* graph_exit(PyObject* self, PyObject*) {
    if (pop_graph(self)) Py_RETURN_NONE;
    PyErr_Format(errors.graph, "%R is left, but is not being built on this thread: use it as `with graph:`", self);
    return nullptr;
}

Py_ssize_t graph_length(PyObject* self) { return static_cast<Py_ssize_t>(graph_of(self).size()); }

PyObject* graph_item(PyObject* self, PyObject* index) {
    const Py_ssize_t i = PyNumber_AsSsize_t(index, PyExc_IndexError);
    if (i == -1 && PyErr_Occurred()) return nullptr;
    if (i < 0 || i >= graph_length(self)) {
        PyErr_Format(PyExc_IndexError, "node %zd of a graph of %zd", i, graph_length(self));
        return nullptr;
    }
    return node_handle_new(self, static_cast<uint32_t>(i));
}

PyObject* graph_value(PyObject* self, PyObject* args) {
    unsigned int node, output;
    if (!PyArg_ParseTuple(args, "II", &node, &output)) return nullptr;
    Graph& g = graph_of(self);
    if (node >= g.size() || output >= g.node(node).n_outputs()) {
        PyErr_SetString(PyExc_IndexError, "no such value");
        return nullptr;
    }
    return value_new(self, {node, output}, kFixed);
}

PyObject* graph_set_origin(PyObject* self, PyObject* args) {
    unsigned int node;
    PyObject* text;
    if (!PyArg_ParseTuple(args, "IU", &node, &text)) return nullptr;
    if (node >= graph_of(self).size()) {
        PyErr_SetString(PyExc_IndexError, "no such node");
        return nullptr;
    }
    Py_INCREF(text);
    PyUnicode_InternInPlace(&text);
    const Ref kept = Ref::steal(text);
    return guarded(
        [&] {
            graph_of(self).set_origin(node, kept.get());
            return Py_NewRef(Py_None);
        },
        static_cast<PyObject*>(nullptr));
}

PyObject* graph_limit(PyObject* self, PyObject* nodes) {
    const size_t most = PyLong_AsSize_t(nodes);
    if (PyErr_Occurred()) return nullptr;
    graph_of(self).limit(most);
    Py_RETURN_NONE;
}

PyObject* graph_watch(PyObject* self, PyObject* variable) {
    if (!PyContextVar_CheckExact(variable)) {
        PyErr_Format(PyExc_TypeError, "_watch() takes a contextvars.ContextVar, not %R", variable);
        return nullptr;
    }
    return graph_of(self).watch(variable) < 0 ? nullptr : Py_NewRef(Py_None);
}

PyObject* graph_crossed(PyObject* self, PyObject*) { return PyBool_FromLong(graph_of(self).crossed()); }

PyObject* graph_finish(PyObject* self, PyObject* when) {
    if (!PyUnicode_Check(when)) {
        PyErr_SetString(PyExc_TypeError, "_finish takes a str");
        return nullptr;
    }
    graph_of(self).finish(Ref::borrow(when));
    Py_RETURN_NONE;
}

PyObject* graph_absorb(PyObject* self, PyObject* first) {
    const size_t from = PyLong_AsSize_t(first);
    if (PyErr_Occurred()) return nullptr;
    graph_of(self).absorb(from);
    Py_RETURN_NONE;
}

PyObject* graph_inputs(PyObject* self, void*) {
    const auto inputs = graph_of(self).inputs();
    Ref tuple = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(inputs.size())));
    for (size_t i = 0; tuple && i < inputs.size(); ++i) {
        PyObject* value = value_new(self, {inputs[i], 0}, kFixed);
        if (!value) return nullptr;
        PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), value);
    }
    return tuple.release();
}

PyMethodDef graph_methods[] = {
    {"_add_input", add_input, METH_VARARGS, "_add_input(spec, name, scalar=False) -> Value"},
    {"_add_constant", add_constant_method, METH_VARARGS, "_add_constant(array, name) -> Value; copies the array."},
    {"_add_call", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(add_call_method)),
     METH_VARARGS | METH_KEYWORDS,
     "_add_call(fn, inputs, name, specs=None, contract=None, order=None, statics=None, kwnames=None, stateful=False, "
     "lends=True, scalar=None, of_scalars=False) -> Node"},
    {"__enter__", graph_enter, METH_NOARGS, "Make this the graph being built on this thread; return itself."},
    {"__exit__", graph_exit, METH_VARARGS, "Undo __enter__."},
    {"_limit", graph_limit, METH_O, "_limit(nodes): so many at most, in a trace."},
    {"_watch", graph_watch, METH_O, "_watch(variable): see _crossed()."},
    {"_crossed", graph_crossed, METH_NOARGS,
     "_crossed() -> whether a call was added where the variable of _watch() held something else."},
    {"_finish", graph_finish, METH_O, "_finish(when): no node may be added any more."},
    {"_absorb", graph_absorb, METH_O, "_absorb(first): nodes from there on are of a loop, and have no effects here."},
    {"_value", graph_value, METH_VARARGS, "_value(node, output) -> Value"},
    {"_set_origin", graph_set_origin, METH_VARARGS, "_set_origin(node, text): where what it is a copy of was created."},
    {},
};

PyGetSetDef graph_getset[] = {
    {"inputs", graph_inputs, nullptr, "The input Values, in creation order.", nullptr},
    {},
};

PyType_Slot graph_slots[] = {
    {Py_tp_doc, const_cast<char*>("The nodes of a computation, in creation order.")},
    {Py_tp_new, reinterpret_cast<void*>(graph_new)},
    {Py_tp_traverse, reinterpret_cast<void*>(graph_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(graph_clear)},
    {Py_tp_dealloc, reinterpret_cast<void*>(graph_dealloc)},
    {Py_tp_methods, graph_methods},
    {Py_tp_getset, graph_getset},
    {Py_mp_length, reinterpret_cast<void*>(graph_length)},
    {Py_mp_subscript, reinterpret_cast<void*>(graph_item)},
    {0, nullptr},
};

PyType_Spec graph_spec = {"pyop._core.GraphBase", sizeof(GraphObject), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE, graph_slots};

}  // namespace

int graph_init(PyObject* module) {
    if (value_spec_init() < 0) return -1;
    graph_type = reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(module, &graph_spec, nullptr));
    return graph_type ? PyModule_AddType(module, graph_type) : -1;
}

}  // namespace pyop
