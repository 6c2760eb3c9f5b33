// autograd/grad_node.cpp: make and destroy nodes.
//
// Death is iterative. Dropping the last reference to a node drops those to the nodes before it, and so on for as many
// nodes as were recorded. The first node that dies on a thread works as the undertaker: nodes that die while it drops
// references put themselves on a list, linked through a field they no longer need, and it takes them one by one. This
// covers every path from node to node (edges, saved Tensors, attributes of ctx), since all lead through a node.
#include "autograd/grad_node.h"

#include <new>  // std::nothrow

#include "autograd/function.h"

namespace pyop {

namespace {

uint64_t next_sequence = 1;  // guarded by the turn

thread_local bool burying = false;
thread_local GradNode* doomed = nullptr;

void drop(PyObject*& slot) {
    if (PyObject* o = std::exchange(slot, nullptr)) decref(o);
}

void drop_node(GradNode*& slot) {
    if (GradNode* n = std::exchange(slot, nullptr)) decref(as_object(n));
}

void drop_extra(GradNode* node) {
    NodeExtra* extra = std::exchange(node->extra, nullptr);
    if (!extra) return;
    for (OutputHook& hook : extra->output_hooks) {
        drop(hook.hooks);
        drop(hook.retained);
    }
    for (PyObject** o :
         {&extra->prehooks, &extra->posthooks, &extra->metadata, &extra->tree, &extra->message, &extra->tangents})
        drop(*o);
    release_run(extra->run);
    delete extra;
}

void drop_contents(GradNode* node) {
    for (Py_ssize_t i = 0; i < edge_count(node); ++i) drop_node(node->edges[i].node);
    for (uint32_t i = 0; i < node->output_count; ++i) drop(node->outputs[i].gradient);
    saved_free(std::exchange(node->saved, nullptr));
    drop_extra(node);
    drop(node->dict);
}

void bury(GradNode* node) {
    if (node->weakrefs) survive([&] { PyObject_ClearWeakRefs(as_object(node)); });
    if (node->kind == GradNodeKind::Accumulate && node->owner) {
        TensorObject* leaf = as_tensor(node->owner);
        if (leaf->sink == node) leaf->sink = nullptr;
    }
    drop_contents(node);
    drop(node->owner);
    for (Py_ssize_t i = 0; i < edge_count(node); ++i) unshare(node->edges[i].info);
    for (uint32_t i = 0; i < node->output_count; ++i) unshare(node->outputs[i].info);
    if (node->outputs != &node->first) PyMem_Free(node->outputs);
    PyTypeObject* type = Py_TYPE(node);
    PyObject_GC_Del(node);
    Py_DECREF(type);
}

}  // namespace

void grad_node_dealloc(PyObject* self) {
    if (PyObject_GC_IsTracked(self)) PyObject_GC_UnTrack(self);
    GradNode* node = as_grad_node(self);
    if (burying) {
        node->run = reinterpret_cast<Run*>(doomed);  // a dead node is in no run
        doomed = node;
        return;
    }
    burying = true;
    bury(node);
    while (GradNode* next = doomed) {
        doomed = reinterpret_cast<GradNode*>(next->run);
        bury(next);
    }
    burying = false;
}

int grad_node_traverse(PyObject* self, visitproc visit, void* arg) {
    GradNode* node = as_grad_node(self);
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(node->owner);
    Py_VISIT(node->dict);
    for (Py_ssize_t i = 0; i < edge_count(node); ++i) Py_VISIT(node->edges[i].node);
    for (uint32_t i = 0; i < node->output_count; ++i) Py_VISIT(node->outputs[i].gradient);
    if (int stop = saved_traverse(node->saved, visit, arg)) return stop;
    if (NodeExtra* extra = node->extra) {
        for (OutputHook& hook : extra->output_hooks) {
            Py_VISIT(hook.hooks);
            Py_VISIT(hook.retained);
        }
        for (PyObject* o : {extra->prehooks, extra->posthooks, extra->metadata, extra->tree, extra->tangents})
            Py_VISIT(o);
    }
    return 0;
}

int grad_node_clear(PyObject* self) {
    // The class stays: what is left of the node can still say its name.
    drop_contents(as_grad_node(self));
    return 0;
}

GradNode* grad_node_new(GradNodeKind kind, Py_ssize_t edges) {
    GradNode* node = PyObject_GC_NewVar(GradNode, grad_node_type, edges);
    if (!node) return nullptr;
    node->weakrefs = nullptr;
    node->dict = nullptr;
    node->owner = nullptr;
    node->saved = nullptr;
    node->extra = nullptr;
    node->call = nullptr;
    node->sequence = 0;
    node->outputs = &node->first;
    node->first = {nullptr, nullptr, false};
    node->output_count = 0;
    node->kind = kind;
    node->materialize = true;
    node->materialize_non_diff = true;
    node->pure_view = false;
    node->freed = false;
    node->executable = false;
    node->state = {};
    node->run = nullptr;
    for (Py_ssize_t i = 0; i < edges; ++i) node->edges[i] = {nullptr, nullptr, 0, ArgumentKind::Other};
    return node;
}

void grad_node_finish(GradNode* node) {
    node->sequence = next_sequence++;
    if (!PyObject_GC_IsTracked(as_object(node))) PyObject_GC_Track(node);
}

int grad_node_set_outputs(GradNode* node, uint32_t count) {
    if (count > 1) {
        auto* outputs = static_cast<GradOutput*>(PyMem_Malloc(sizeof(GradOutput) * count));
        if (!outputs) {
            PyErr_NoMemory();
            return -1;
        }
        for (uint32_t i = 0; i < count; ++i) outputs[i] = {nullptr, nullptr, false};
        node->outputs = outputs;
    }
    node->output_count = count;
    return 0;
}

NodeExtra* grad_node_extra(GradNode* node) {
    if (!node->extra) node->extra = new (std::nothrow) NodeExtra;
    if (!node->extra) PyErr_NoMemory();
    return node->extra;
}

GradNode* gradient_target_new(TensorObject* t) {
    if (t->grad_fn) {
        Py_INCREF(as_object(t->grad_fn));
        return t->grad_fn;
    }
    if (GradNode* node = sink_new(t)) return node;
    ArrayInfo* info = tensor_info(t);
    GradNode* node = info ? grad_node_new(GradNodeKind::Accumulate, 0) : nullptr;
    if (!node) return nullptr;
    node->owner = Py_NewRef(as_object(t));
    node->output_count = 1;
    node->first = {share(info), nullptr, true};
    node->executable = true;
    grad_node_finish(node);
    node->sequence = UINT64_MAX;  // gradients of leaves are added as soon as they are complete
    enable_try_incref(as_object(node));
    t->sink = node;
    return node;
}

GradNode* sink_new(TensorObject* t) { return t->sink && try_incref(as_object(t->sink)) ? t->sink : nullptr; }

GradNode* error_node_new(PyObject* message, const GradNode* model, PyObject* const* more, size_t n,
                         TensorObject* like) {
    Ref text = Ref::steal(message);
    ArrayInfo* info = text ? tensor_info(like) : nullptr;
    if (!info) return nullptr;
    const Py_ssize_t from_model = model ? edge_count(model) : 0;
    GradNode* node = grad_node_new(GradNodeKind::Error, from_model + static_cast<Py_ssize_t>(n));
    if (!node || !grad_node_extra(node)) {
        Py_XDECREF(as_object(node));
        return nullptr;
    }
    node->extra->message = text.release();
    node->output_count = 1;
    node->first = {share(info), nullptr, true};
    node->executable = true;
    for (Py_ssize_t i = 0; i < from_model; ++i) {
        const GradEdge& edge = model->edges[i];
        Py_XINCREF(as_object(edge.node));
        node->edges[i] = {edge.node, edge.info ? share(edge.info) : nullptr, edge.output, edge.kind};
    }
    for (size_t i = 0; i < n; ++i) {
        if (!is_tensor(more[i]) || !as_tensor(more[i])->requires_grad) continue;
        TensorObject* t = as_tensor(more[i]);
        ArrayInfo* its = tensor_info(t);
        GradNode* target = its ? gradient_target_new(t) : nullptr;
        if (!target) {
            Py_DECREF(as_object(node));
            return nullptr;
        }
        node->edges[from_model + static_cast<Py_ssize_t>(i)] = {target, share(its), t->output, ArgumentKind::Tensor};
    }
    grad_node_finish(node);
    return node;
}

Ref grad_node_name(const GradNode* node) {
    if (node->kind == GradNodeKind::Accumulate) return Ref::steal(PyUnicode_FromString("AccumulateGrad"));
    if (node->kind == GradNodeKind::Error) return Ref::steal(PyUnicode_FromString("NotDifferentiable"));
    return Ref::steal(PyUnicode_FromFormat("%UBackward", as_function_class(node->owner)->name));
}

void grad_node_release(GradNode* node) {
    node->freed = true;
    saved_free(std::exchange(node->saved, nullptr));
}

}  // namespace pyop
