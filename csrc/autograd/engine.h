// autograd/engine.h: run the backward pass.
//
// A Run walks the nodes that its roots lead to, on the thread that asked, newest first. It holds no lock and starts no
// thread; another run may begin at any call of Python code, nested in this one or on another thread.
//
// State of a run at a node (gradients that arrived, how many are still to come) is kept in the node itself, and
// `node->run` says whose it is. A run that finds a node taken keeps its state for that node in a map of its own. A node
// is given back when it has run; when a run ends early, a walk from the roots gives back the rest. The roots keep every
// node of the walk alive, since edges never change.
//
// Gradients are arrays, or with create_graph Tensors.
#pragma once

#include <unordered_map>
#include <vector>

#include "autograd/grad_node.h"
#include "runtime/ref.h"

namespace pyop {

struct RunOptions {
    bool retain_graph = false;
    bool create_graph = false;
    bool accumulate = true;  // into .grad of leaves; else the gradients of `inputs` are returned
    bool allow_unused = false;
    bool zeros_for_unused = false;
    bool arrays = false;  // are returned, and no Tensors; not with create_graph
};

class Run {
  public:
    Run(const RunOptions& options, bool narrowed) : options_(options), narrowed_(narrowed) {}
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;
    ~Run();

    int add_root(TensorObject* output, Ref seed);
    int add_input(TensorObject* input, size_t index);
    int execute();
    Ref take_captured(size_t index);
    // Whether the run wants a gradient to go along this edge.
    bool wants(const GradEdge& edge) const;

  private:
    struct Elsewhere {  // what is kept of a node that another run holds
        NodeState state;
        std::vector<Ref> gradients;
    };
    bool visit(GradNode* node);
    NodeState& state(GradNode* node);
    const NodeState* find_state(const GradNode* node) const;
    int add_gradient(GradNode* node, uint32_t output, Ref gradient);
    Ref take_gradient(GradNode* node, uint32_t output);
    void give_back(GradNode* node);
    void push_ready(GradNode* node);
    void mark_leading();
    void count_all();
    void count_leading();
    int run_node(GradNode* node);
    int run_leaf(GradNode* node, Ref gradient);
    int distribute(GradNode* node, PyObject** gradients);
    int capture(GradNode* node, PyObject** arrived);

    struct Seed {
        Ref node;
        uint32_t output;
        Ref gradient;
    };
    struct Capture {
        uint32_t output;
        size_t index;
    };
    RunOptions options_;
    bool narrowed_;  // only `inputs` get gradients
    std::vector<Seed> roots_;
    std::vector<GradNode*> visited_;  // kept alive by the roots
    std::vector<GradNode*> ready_;  // a heap, newest first
    std::unordered_map<GradNode*, std::vector<Capture>> captures_;
    std::unordered_map<const GradNode*, Elsewhere> elsewhere_;
    std::vector<Ref> captured_;
    std::vector<Ref> wanted_;  // the nodes of the inputs
};

// `outputs`: Tensors; `seeds`: arrays, Tensors or None, as many; `inputs`: a tuple of Tensors, or null for all leaves.
// Returns None, or a tuple of Tensors when not accumulating. Null with the error set.
PyObject* run_backward(PyObject* const* outputs, PyObject* const* seeds, size_t n, PyObject* inputs,
                       const RunOptions& options);

// A gradient for something of dtype and shape `info`, made to fit: summed over what was broadcast, cast to its dtype.
// `index` and `name` are for messages. Empty with the error set.
Ref fit_gradient(Ref gradient, const ArrayInfo& info, bool tensors, bool take_real, const char* what, PyObject* name,
                 Py_ssize_t index);

// a + b, in place where nobody else can see it. Empty with the error set.
Ref add_gradients(Ref a, PyObject* b);

// Adds `gradient` to t.grad. -1 with the error set.
int accumulate_gradient(TensorObject* t, Ref gradient, bool tensors);

Ref zeros_like_info(const ArrayInfo& info);

}  // namespace pyop
