// graph/node_handle.cpp: define pyop.Node, the Python handle of a node, for looking at a graph.
#include "graph/value.h"
#include "runtime/shown_place.h"

namespace pyop {

PyTypeObject* node_type = nullptr;

namespace {

NodeHandleObject* handle(PyObject* self) { return reinterpret_cast<NodeHandleObject*>(self); }
const Node& node_of(PyObject* self) { return graph_of(handle(self)->graph).node(handle(self)->index); }

PyObject* node_name(PyObject* self, void*) {
    return graph_of(handle(self)->graph).node_name(handle(self)->index).release();
}

PyObject* node_kind(PyObject* self, void*) {
    switch (node_of(self).kind()) {
        case NodeKind::Input:
            return PyUnicode_FromString("input");
        case NodeKind::Constant:
            return PyUnicode_FromString("constant");
        case NodeKind::Py:
            return PyUnicode_FromString("py");
    }
    Py_RETURN_NONE;
}

PyObject* values_new(PyObject* graph, std::span<const Edge> edges, uint32_t flags = kFixed) {
    Ref tuple = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(edges.size())));
    for (size_t i = 0; tuple && i < edges.size(); ++i) {
        PyObject* value = value_new(graph, edges[i], flags);
        if (!value) return nullptr;
        PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), value);
    }
    return tuple.release();
}

PyObject* node_inputs(PyObject* self, void*) { return values_new(handle(self)->graph, node_of(self).inputs()); }

PyObject* outputs_new(PyObject* self, uint32_t flags) {
    std::vector<Edge> edges;
    for (uint32_t k = 0; k < node_of(self).n_outputs(); ++k) edges.push_back({handle(self)->index, k});
    return values_new(handle(self)->graph, edges, flags);
}

PyObject* node_outputs(PyObject* self, void*) { return outputs_new(self, kFixed); }
PyObject* node_results(PyObject* self, void*) { return outputs_new(self, 0); }

PyObject* node_index(PyObject* self, void*) { return PyLong_FromUnsignedLong(handle(self)->index); }
PyObject* node_graph(PyObject* self, void*) { return Py_NewRef(handle(self)->graph); }
PyObject* node_stateful(PyObject* self, void*) { return PyBool_FromLong(node_of(self).stateful()); }

PyObject* node_origin(PyObject* self, void*) {
    return kept_place(graph_of(handle(self)->graph).node_origin(handle(self)->index)).release();
}

const PyNode* py_node(PyObject* self) {
    const Node& node = node_of(self);
    return node.kind() == NodeKind::Py ? static_cast<const PyNode*>(&node) : nullptr;
}

PyObject* node_function(PyObject* self, void*) {
    const PyNode* node = py_node(self);
    return Py_NewRef(node && node->fn() ? node->fn() : Py_None);
}

PyObject* node_statics(PyObject* self, void*) {
    const PyNode* node = py_node(self);
    if (!node || !node->form()) Py_RETURN_NONE;
    const CallForm& form = *node->form();
    Ref order = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(form.order.size())));
    for (size_t i = 0; order && i < form.order.size(); ++i)
        PyTuple_SET_ITEM(order.get(), static_cast<Py_ssize_t>(i), PyLong_FromLong(form.order[i]));
    if (!order) return nullptr;
    PyObject* kwnames = form.kwnames ? form.kwnames.get() : Py_None;
    return PyTuple_Pack(3, order.get(), form.statics.get(), kwnames);
}

PyObject* node_lends(PyObject* self, void*) {
    const PyNode* node = py_node(self);
    return PyBool_FromLong(!node || node->lends());
}

PyObject* node_of_scalars(PyObject* self, void*) {
    const PyNode* node = py_node(self);
    return PyBool_FromLong(node && node->of_scalars());
}

PyObject* node_contract(PyObject* self, void*) {
    const PyNode* node = py_node(self);
    PyObject* c = node ? reinterpret_cast<PyObject*>(const_cast<Contract*>(node->contract())) : nullptr;
    return Py_NewRef(c ? c : Py_None);
}

PyObject* node_repr(PyObject* self) {
    Ref name = Ref::steal(node_name(self, nullptr)), kind = Ref::steal(node_kind(self, nullptr)),
        origin = shown_place(Ref::steal(node_origin(self, nullptr)));
    if (!name || !kind || !origin) return nullptr;
    return PyUnicode_FromFormat("<pyop.Node %R %U created at %U>", name.get(), kind.get(), origin.get());
}

PyObject* node_richcompare(PyObject* a, PyObject* b, int op) {
    if (Py_TYPE(b) != node_type || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
    const bool same = handle(a)->graph == handle(b)->graph && handle(a)->index == handle(b)->index;
    return PyBool_FromLong(same == (op == Py_EQ));
}

Py_hash_t node_hash(PyObject* self) {
    const size_t h = reinterpret_cast<size_t>(handle(self)->graph) / 16 * 1000003 + handle(self)->index;
    return h == static_cast<size_t>(-1) ? 0 : static_cast<Py_hash_t>(h);
}

int node_traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(handle(self)->graph);
    return 0;
}

void node_dealloc(PyObject* self) {
    PyObject_GC_UnTrack(self);
    PyTypeObject* type = Py_TYPE(self);
    Py_CLEAR(handle(self)->graph);
    type->tp_free(self);
    Py_DECREF(type);
}

PyGetSetDef node_getset[] = {
    {"name", node_name, nullptr, "The name, unique in the graph.", nullptr},
    {"kind", node_kind, nullptr, "'input', 'constant' or 'py'.", nullptr},
    {"inputs", node_inputs, nullptr, "The Values it reads.", nullptr},
    {"outputs", node_outputs, nullptr, "The Values it computes.", nullptr},
    {"_results", node_results, nullptr, "As `outputs`, for whoever has just added the node.", nullptr},
    {"index", node_index, nullptr, "Its number in creation order.", nullptr},
    {"graph", node_graph, nullptr, "The graph it belongs to.", nullptr},
    {"stateful", node_stateful, nullptr, "Return whether it has effects beyond its outputs.", nullptr},
    {"origin", node_origin, nullptr, "Return where it was created: 'file:line'.", nullptr},
    {"function", node_function, nullptr, "The Python callable it owns, or None.", nullptr},
    {"contract", node_contract, nullptr, "Return what the function declares, or None.", nullptr},
    {"_lends", node_lends, nullptr, "Return whether its arguments go out read-only.", nullptr},
    {"_of_scalars", node_of_scalars, nullptr,
     "Return whether it is an operator between scalars, and function its ufunc.", nullptr},
    {"_form", node_statics, nullptr, "(order, statics, kwnames) of the call, or None.", nullptr},
    {},
};

PyType_Slot node_slots[] = {
    {Py_tp_doc, const_cast<char*>("One application of an operation inside a graph.\n\n"
                                  "Made by calling ops; found as `Value.node` and in `Graph.nodes`. A node can be "
                                  "fetched: it runs and gives None.\n\n"
                                  "Examples\n--------\n"
                                  ">>> import numpy as np, pyop\n"
                                  ">>> g = pyop.trace(lambda x: np.sin(x), \"float64[n]\")\n"
                                  ">>> [(node.name, node.kind) for node in g.nodes]\n"
                                  "[('x', 'input'), ('sin', 'py')]")},
    {Py_tp_repr, reinterpret_cast<void*>(node_repr)},
    {Py_tp_richcompare, reinterpret_cast<void*>(node_richcompare)},
    {Py_tp_hash, reinterpret_cast<void*>(node_hash)},
    {Py_tp_traverse, reinterpret_cast<void*>(node_traverse)},
    {Py_tp_dealloc, reinterpret_cast<void*>(node_dealloc)},
    {Py_tp_getset, node_getset},
    {0, nullptr},
};

PyType_Spec node_spec = {
    "pyop._core.Node", sizeof(NodeHandleObject), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION, node_slots};

}  // namespace

PyObject* node_handle_new(PyObject* graph, uint32_t index) {
    NodeHandleObject* h = PyObject_GC_New(NodeHandleObject, node_type);
    if (!h) return nullptr;
    h->graph = Py_NewRef(graph);
    h->index = index;
    PyObject_GC_Track(h);
    return reinterpret_cast<PyObject*>(h);
}

int node_init(PyObject* module) {
    node_type = reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(module, &node_spec, nullptr));
    return node_type ? PyModule_AddType(module, node_type) : -1;
}

}  // namespace pyop
