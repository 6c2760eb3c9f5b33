// autograd/grad_node_type.cpp: define the heap type of nodes, as Python sees it.
#include <cstddef>  // offsetof
#include <vector>

#include "autograd/function.h"
#include "autograd/hooks.h"
#include "autograd/turn.h"
#include "runtime/errors.h"

namespace pyop {

PyTypeObject* grad_node_type = nullptr;

void grad_node_dealloc(PyObject* self);
int grad_node_traverse(PyObject* self, visitproc visit, void* arg);
int grad_node_clear(PyObject* self);

namespace {

PyObject* grad_node_repr(PyObject* self) {
    Ref name = grad_node_name(as_grad_node(self));
    return name ? PyUnicode_FromFormat("<%U node at %p>", name.get(), self) : nullptr;
}

PyObject* node_name(PyObject* self, PyObject*) { return grad_node_name(as_grad_node(self)).release(); }

PyObject* node_sequence(PyObject* self, PyObject*) { return PyLong_FromUnsignedLongLong(as_grad_node(self)->sequence); }

PyObject* add_to(PyObject* self, PyObject* hook, PyObject* NodeExtra::* slot) {
    NodeExtra* extra = grad_node_extra(as_grad_node(self));
    return extra ? hook_add_new(extra->*slot, hook) : nullptr;
}

PyObject* register_hook(PyObject* self, PyObject* hook) { return add_to(self, hook, &NodeExtra::posthooks); }
PyObject* register_prehook(PyObject* self, PyObject* hook) { return add_to(self, hook, &NodeExtra::prehooks); }

PyObject* next_functions(PyObject* self, void*) {
    GradNode* node = as_grad_node(self);
    Ref list = Ref::steal(PyList_New(0));
    for (Py_ssize_t i = 0; list && i < edge_count(node); ++i) {
        const GradEdge& edge = node->edges[i];
        if (edge.kind != ArgumentKind::Tensor) continue;
        PyObject* next = edge.node ? as_object(edge.node) : Py_None;
        Ref item = Ref::steal(Py_BuildValue("(OI)", next, edge.output));
        if (!item || PyList_Append(list.get(), item.get()) < 0) return nullptr;
    }
    return list ? PyList_AsTuple(list.get()) : nullptr;
}

PyObject* metadata(PyObject* self, void*) {
    NodeExtra* extra = grad_node_extra(as_grad_node(self));
    if (!extra || (!extra->metadata && !(extra->metadata = PyDict_New()))) return nullptr;
    return Py_NewRef(extra->metadata);
}

PyObject* variable(PyObject* self, void*) {
    GradNode* node = as_grad_node(self);
    return Py_NewRef(node->kind == GradNodeKind::Accumulate ? node->owner : Py_None);
}

PyObject* get_tangents(PyObject* self, void*) {
    const NodeExtra* extra = as_grad_node(self)->extra;
    return Py_NewRef(extra && extra->tangents ? extra->tangents : Py_None);
}

PyMethodDef own_methods[] = {
    {"name", in_turn<node_name>, METH_NOARGS,
     "name($self, /)\n--\n\nWhat it is: the name of its Function and 'Backward'."},
    {"_sequence_nr", in_turn<node_sequence>, METH_NOARGS, "_sequence_nr(): when it was made; newer nodes run first."},
    {"register_hook", in_turn<register_hook>, METH_O,
     "register_hook($self, hook, /)\n--\n\n"
     "Call `hook(grad_inputs, grad_outputs)` after backward of this node; a tuple it returns replaces grad_inputs. "
     "Returns a handle with remove()."},
    {"register_prehook", in_turn<register_prehook>, METH_O,
     "register_prehook($self, hook, /)\n--\n\n"
     "Call `hook(grad_outputs)` before backward of this node; a tuple it returns replaces them. Returns a handle with "
     "remove()."},
};

PyGetSetDef own_getset[] = {
    {"next_functions", in_turn<next_functions>, nullptr,
     "(node, output) for each Tensor argument; (None, 0) where no gradient goes.", nullptr},
    {"metadata", in_turn<metadata>, nullptr,
     "A dict for anybody's notes; under detect_anomaly it has ``'traceback_'``.", nullptr},
    {"variable", in_turn<variable>, nullptr, "The leaf of an accumulating node, else None.", nullptr},
    {"_tangents", in_turn<get_tangents>, nullptr, "In forward mode the tangent of each output, or None.", nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
};

PyMemberDef grad_node_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(GradNode, weakrefs), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(GradNode, dict), READONLY, nullptr},
    {},
};

// The own ones and those of the ctx, in one list.
template <typename Def, size_t N, typename Name>
std::vector<Def> joined(const Def (&own)[N], const Def* more, Name name) {
    std::vector<Def> all(own, own + N);
    for (; more->*name; ++more) all.push_back(*more);
    all.push_back({});
    return all;
}

}  // namespace

int grad_node_init(PyObject* module) {
    // For the life of the process: the type keeps pointers into them.
    static auto* const methods = new std::vector(joined(own_methods, grad_node_context_methods, &PyMethodDef::ml_name));
    static auto* const getset = new std::vector(joined(own_getset, grad_node_context_getset, &PyGetSetDef::name));
    PyType_Slot slots[] = {
        {Py_tp_doc,
         const_cast<char*>(
             "One step of a recorded computation; in a Function's methods, the `ctx`.\n\n"
             "Anything may be kept on it as an attribute. Arguments and outputs go through save_for_backward, which "
             "notices changes and keeps no cycle.\n\n"
             ">>> pyop.Tensor(2.0, requires_grad=True).sum().grad_fn.name()\n'SumBackward'")},
        {Py_tp_repr, reinterpret_cast<void*>(in_turn<grad_node_repr>)},
        {Py_tp_dealloc, reinterpret_cast<void*>(in_turn<grad_node_dealloc>)},
        {Py_tp_traverse, reinterpret_cast<void*>(grad_node_traverse)},
        {Py_tp_clear, reinterpret_cast<void*>(in_turn<grad_node_clear>)},
        {Py_tp_methods, methods->data()},
        {Py_tp_getset, getset->data()},
        {Py_tp_members, grad_node_members},
        {0, nullptr},
    };
    PyType_Spec spec = {
        "pyop._core.GradNode", static_cast<int>(offsetof(GradNode, edges)), sizeof(GradEdge),
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE, slots};
    grad_node_type = reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(module, &spec, nullptr));
    return grad_node_type ? PyModule_AddType(module, grad_node_type) : -1;
}

}  // namespace pyop
