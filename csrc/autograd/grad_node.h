// autograd/grad_node.h: hold one step of a recorded computation, which is also the `ctx` of a Function (GradNode).
//
// One heap type, owned by Python's reference count alone:
//
//     Tensor ──grad_fn──► node ──edges──► nodes of the inputs ──► … ──► accumulating nodes ──owner──► leaves
//                          └─saved──► input Tensors, arrays; outputs without their history, so that no cycle arises
//
// Kinds: Function (made by Function.apply, and for every recorded call of a NumPy function), Accumulate (the end of
// every path: adds to .grad of the leaf it owns), Error (refuses to be differentiated again).
//
// The collector knows every node, because a user may store anything on a ctx. Destruction of long chains is iterative:
// see grad_node.cpp.
//
// The fields `run` and `state`, and the gradients of the outputs, belong to the backward run that is passing through; a
// second run that meets the node meanwhile (nested, or on another thread) keeps its state elsewhere: see engine.h.
#pragma once

#include <vector>

#include "autograd/array_info.h"
#include "autograd/saved.h"
#include "autograd/state.h"
#include "autograd/tensor.h"

namespace pyop {

class Run;

enum class GradNodeKind : uint8_t { Function, Accumulate, Error };

enum class ArgumentKind : uint8_t { Other, Array, Tensor };

// One for every argument of the operation (for every leaf, where arguments are trees).
struct GradEdge {
    GradNode* node;  // owned; null when no gradient is wanted
    ArrayInfo* info;  // owned; null unless the argument is a Tensor that requires a gradient
    uint32_t output;  // of `node`
    ArgumentKind kind;
};

// What a run knows of a node.
struct NodeState {
    uint32_t pending = 0;  // edges that a gradient is still to come by
    bool leads = false;  // on the way to a requested input
    bool captured = false;  // a gradient that arrives here was asked for
    bool counted = false;
};

struct GradOutput {
    ArrayInfo* info;  // owned; null when the output is not an array
    PyObject* gradient;  // owned: what arrived so far, in the run that owns the node
    bool differentiable;
};

struct OutputHook {
    uint32_t output;
    PyObject* hooks;  // dict id -> callable, or null
    PyObject* retained;  // weak reference to the Tensor that wants its gradient kept, or null
};

// What few nodes have.
struct NodeExtra {
    std::vector<OutputHook> output_hooks;
    PyObject* prehooks = nullptr;  // dict id -> callable
    PyObject* posthooks = nullptr;
    PyObject* metadata = nullptr;  // dict
    PyObject* tree = nullptr;  // TreeDef of the arguments, when some are containers
    PyObject* message = nullptr;  // of an Error node: what it raises
    // Forward mode: a tuple, the tangent of each output or None, if some argument has one. Until the run forward is
    // over (forward.h): a tangent may have a history that leads back here.
    PyObject* tangents = nullptr;
    ForwardRun* run = nullptr;
};

struct FunctionCall;

struct GradNode {
    PyObject_VAR_HEAD  // the size is the number of edges
        PyObject* weakrefs;
    PyObject* dict;  // attributes the user sets on ctx
    PyObject* owner;  // Function: its FunctionClass; Accumulate: the leaf
    SavedArrays* saved;
    NodeExtra* extra;
    FunctionCall* call;  // the call that is making the node: during forward and setup_context
    uint64_t sequence;  // newest first
    GradOutput* outputs;  // &first, or an array
    GradOutput first;
    uint32_t output_count;
    GradNodeKind kind;
    bool materialize;  // zeros instead of None for gradients that did not arrive
    bool materialize_non_diff;
    bool pure_view;
    bool freed;  // what was saved is gone
    bool executable;  // recorded: some edge leads on
    NodeState state;  // in the run
    Run* run;  // the run these belong to; borrowed
    GradEdge edges[1];
};

extern PyTypeObject* grad_node_type;
int grad_node_init(PyObject* module);

PYOP_INLINE bool is_grad_node(PyObject* o) { return Py_IS_TYPE(o, grad_node_type); }
PYOP_INLINE GradNode* as_grad_node(PyObject* o) { return reinterpret_cast<GradNode*>(o); }
PYOP_INLINE PyObject* as_object(GradNode* n) { return reinterpret_cast<PyObject*>(n); }
PYOP_INLINE Py_ssize_t edge_count(const GradNode* n) { return n->ob_base.ob_size; }

// With `edges` empty edges and no outputs; not yet known to the collector. New reference.
GradNode* grad_node_new(GradNodeKind kind, Py_ssize_t edges);
// Numbers the node, so that it comes before all older ones, and shows it to the collector.
void grad_node_finish(GradNode* node);
int grad_node_set_outputs(GradNode* node, uint32_t count);
NodeExtra* grad_node_extra(GradNode* node);

// Where the gradient of `t`, which requires one, goes: its node, or the accumulating node of a leaf. New reference.
GradNode* gradient_target_new(TensorObject* t);
// The accumulating node that a leaf has, or null, which is no error. New reference.
GradNode* sink_new(TensorObject* t);

// A node that raises `message` (stolen, may be null: then an error is set) when a gradient arrives; output 0 has the
// shape of `like`. Its edges are those of `model` and one for each of `more` that is a Tensor requiring a gradient, so
// that whoever looks for an input finds the way to it.
GradNode* error_node_new(PyObject* message, const GradNode* model, PyObject* const* more, size_t n, TensorObject* like);

// "MulBackward". New reference.
Ref grad_node_name(const GradNode* node);

// Whether tangents pass through the node in the run forward that is going on.
PYOP_INLINE bool is_moving(const GradNode* node) {
    return PYOP_UNLIKELY(node->extra != nullptr) && node->extra->tangents && is_moving(node->extra->run);
}

// Drops what is only needed to run the node once more.
void grad_node_release(GradNode* node);

// Parts of the type, in files of their own.
extern PyMethodDef grad_node_context_methods[];
extern PyGetSetDef grad_node_context_getset[];

}  // namespace pyop
