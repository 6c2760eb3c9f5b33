// autograd/engine.cpp: collect the nodes of a run, order them, and clean up after it.
#include "autograd/engine.h"

#include <algorithm>  // std::push_heap

#include "array/memory/array_bytes.h"
#include "autograd/function.h"
#include "autograd/hooks.h"
#include "autograd/state.h"
#include "profile/scope.h"
#include "runtime/errors.h"
#include "runtime/stack_array.h"
#include "runtime/stack_limit.h"

namespace pyop {

namespace {

constexpr uint32_t kNodesBetweenSignals = 1024;

struct Older {
    bool operator()(const GradNode* a, const GradNode* b) const { return a->sequence < b->sequence; }
};

// The innermost run of the thread, for a scope.
class Current {
  public:
    explicit Current(Run* run) : run_(std::exchange(autograd_state.run, run)), node_(autograd_state.node) {}
    ~Current() {
        autograd_state.run = run_;
        autograd_state.node = node_;
    }

  private:
    Run* run_;
    GradNode* node_;
};

class RecursionGuard {
  public:
    RecursionGuard()
        : entered_(stack_is_low() ? no_stack_left(" in a backward pass") != nullptr
                                  : Py_EnterRecursiveCall(" in a backward pass") == 0) {}
    ~RecursionGuard() {
        if (entered_) Py_LeaveRecursiveCall();
    }
    explicit operator bool() const { return entered_; }

  private:
    bool entered_;
};

uint64_t bytes_in_values(PyObject* const* values, size_t n) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < n; ++i) {
        PyObject* const value = values[i];
        if (value) bytes += bytes_in_arrays(is_tensor(value) ? as_object(as_tensor(value)->data) : value);
    }
    return bytes;
}

template <typename Step>
PYOP_COLD int step_profiled(const GradNode* node, StackRefs<4>& arrived, StackRefs<8>& gradients, const Step& step) {
    FunctionClass* const function = as_function_class(node->owner);
    Scope scope(function->profile_id, function->name, kWholeCall);
    scope.bytes_in = bytes_in_values(arrived.data(), arrived.size());
    if (step() < 0) return -1;
    scope.succeeded(bytes_in_values(gradients.data(), gradients.size()));
    return 0;
}

}  // namespace

bool Run::visit(GradNode* node) {
    if (node->run == this) return false;
    if (node->run) {
        if (!elsewhere_.try_emplace(node).second) return false;
        elsewhere_[node].gradients.resize(node->output_count);
        return true;
    }
    // A node given back by this run while it went on elsewhere does not occur: all visits precede the first call.
    node->run = this;
    node->state = {};
    visited_.push_back(node);
    return true;
}

NodeState& Run::state(GradNode* node) { return node->run == this ? node->state : elsewhere_.find(node)->second.state; }

const NodeState* Run::find_state(const GradNode* node) const {
    if (node->run == this) return &node->state;
    auto found = elsewhere_.find(node);
    return found == elsewhere_.end() ? nullptr : &found->second.state;
}

bool Run::wants(const GradEdge& edge) const {
    if (!edge.node || !narrowed_) return edge.node != nullptr;
    const NodeState* known = find_state(edge.node);
    return known && (known->leads || known->captured);
}

int Run::add_gradient(GradNode* node, uint32_t output, Ref gradient) {
    if (node->run != this) {
        Ref& slot = elsewhere_.find(node)->second.gradients[output];
        slot = slot ? add_gradients(std::move(slot), gradient.get()) : std::move(gradient);
        return slot ? 0 : -1;
    }
    PyObject*& slot = node->outputs[output].gradient;
    if (!slot) {
        slot = gradient.release();
        return 0;
    }
    Ref sum = add_gradients(Ref::steal(std::exchange(slot, nullptr)), gradient.get());
    slot = sum.release();
    return slot ? 0 : -1;
}

Ref Run::take_gradient(GradNode* node, uint32_t output) {
    if (node->run != this) return std::move(elsewhere_.find(node)->second.gradients[output]);
    return Ref::steal(std::exchange(node->outputs[output].gradient, nullptr));
}

void Run::give_back(GradNode* node) {
    if (node->run != this) {
        elsewhere_.erase(node);
        return;
    }
    node->run = nullptr;
    for (uint32_t i = 0; i < node->output_count; ++i) {
        if (PyObject* g = std::exchange(node->outputs[i].gradient, nullptr)) decref(g);
    }
}

Run::~Run() {
    // Dropping may run Python code, which must neither see nor lose a pending error.
    SavedError keep;
    for (GradNode* node : visited_) {
        if (node->run == this) give_back(node);
    }
    elsewhere_.clear();
}

int Run::add_root(TensorObject* output, Ref seed) {
    if (check_view(output) < 0) return -1;
    GradNode* node = gradient_target_new(output);
    if (!node) return -1;
    roots_.push_back({Ref::steal(as_object(node)), output->grad_fn ? output->output : 0, std::move(seed)});
    return 0;
}

int Run::add_input(TensorObject* input, size_t index) {
    if (check_view(input) < 0) return -1;
    if (captured_.size() <= index) captured_.resize(index + 1);
    Ref held = input->grad_fn ? Ref::borrow(as_object(input->grad_fn)) : Ref::steal(as_object(sink_new(input)));
    if (!held) return 0;  // nothing was ever computed from it
    GradNode* node = as_grad_node(held.get());
    captures_[node].push_back({input->grad_fn ? input->output : 0, index});
    wanted_.push_back(std::move(held));
    return 0;
}

Ref Run::take_captured(size_t index) { return index < captured_.size() ? std::move(captured_[index]) : Ref(); }

void Run::push_ready(GradNode* node) {
    ready_.push_back(node);
    std::push_heap(ready_.begin(), ready_.end(), Older());
}

// Every node that the roots lead to, and by how many edges gradients will come.
void Run::count_all() {
    std::vector<GradNode*> stack;
    for (const Seed& root : roots_) {
        if (visit(as_grad_node(root.node.get()))) stack.push_back(as_grad_node(root.node.get()));
    }
    while (!stack.empty()) {
        GradNode* node = stack.back();
        stack.pop_back();
        for (Py_ssize_t i = 0; i < edge_count(node); ++i) {
            GradNode* next = node->edges[i].node;
            if (!next) continue;
            if (visit(next)) stack.push_back(next);
            ++state(next).pending;
        }
    }
}

// Which nodes lead to an input: in post-order, so that the answer for a node is known before those that read it.
void Run::mark_leading() {
    struct Frame {
        GradNode* node;
        Py_ssize_t next;
    };
    std::vector<Frame> stack;
    auto enter = [&](GradNode* node) {
        if (!visit(node)) return;
        state(node).captured = captures_.contains(node);
        stack.push_back({node, 0});
    };
    for (const Seed& root : roots_) {
        enter(as_grad_node(root.node.get()));
        while (!stack.empty()) {
            Frame& frame = stack.back();
            GradNode* node = frame.node;
            if (frame.next == edge_count(node)) {
                stack.pop_back();
                NodeState& own = state(node);
                for (Py_ssize_t i = 0; i < edge_count(node) && !own.leads; ++i) {
                    GradNode* next = node->edges[i].node;
                    own.leads = next && (state(next).leads || state(next).captured);
                }
                continue;
            }
            GradNode* next = node->edges[frame.next++].node;
            if (next) enter(next);
        }
    }
}

void Run::count_leading() {
    std::vector<GradNode*> stack;
    auto enter = [&](GradNode* node) {
        NodeState& own = state(node);
        if (own.counted || !own.leads) return;
        own.counted = true;
        stack.push_back(node);
    };
    for (const Seed& root : roots_) enter(as_grad_node(root.node.get()));
    while (!stack.empty()) {
        GradNode* node = stack.back();
        stack.pop_back();
        for (Py_ssize_t i = 0; i < edge_count(node); ++i) {
            if (!wants(node->edges[i])) continue;
            ++state(node->edges[i].node).pending;
            enter(node->edges[i].node);
        }
    }
}

int Run::execute() {
    RecursionGuard guard;
    if (!guard) return -1;
    if (narrowed_) {
        mark_leading();
        count_leading();
    } else {
        count_all();
    }
    for (Seed& root : roots_) {
        GradNode* node = as_grad_node(root.node.get());
        if (!node->run && !elsewhere_.contains(node)) continue;
        const NodeState& known = state(node);
        if (narrowed_ && !known.leads && !known.captured) continue;
        if (add_gradient(node, root.output, std::move(root.gradient)) < 0) return -1;
    }
    for (const Seed& root : roots_) {
        GradNode* node = as_grad_node(root.node.get());
        NodeState& known = state(node);
        if (known.pending > 0 || (narrowed_ && !known.leads && !known.captured)) continue;
        known.pending = UINT32_MAX;  // a Tensor may be given as root twice
        push_ready(node);
    }
    Current current(this);
    Recording recording(options_.create_graph);
    uint32_t until_signals = kNodesBetweenSignals;
    while (!ready_.empty()) {
        std::pop_heap(ready_.begin(), ready_.end(), Older());
        GradNode* node = ready_.back();
        ready_.pop_back();
        autograd_state.node = node;
        if (run_node(node) < 0) return -1;
        if (--until_signals == 0) {
            until_signals = kNodesBetweenSignals;
            if (survive([] { return PyErr_CheckSignals(); }) < 0) return -1;
        }
    }
    return 0;
}

int Run::capture(GradNode* node, PyObject** arrived) {
    for (const Capture& c : captures_.find(node)->second) {
        if (arrived[c.output]) captured_[c.index] = Ref::borrow(arrived[c.output]);
    }
    return 0;
}

int Run::run_leaf(GradNode* node, Ref gradient) {
    TensorObject* leaf = as_tensor(node->owner);
    if (!gradient) return 0;
    if (leaf->extra && run_hooks(leaf->extra->hooks, gradient, *node->first.info, options_.create_graph) < 0) return -1;
    if (run_output_hooks(node, 0, gradient, options_.create_graph) < 0) return -1;
    PyObject* arrived = gradient.get();
    if (narrowed_ && !options_.accumulate) return capture(node, &arrived);
    arrived = gradient.release();
    const int status = run_prehooks(node, &arrived, options_.create_graph);
    gradient = Ref::steal(arrived);
    if (status < 0) return -1;
    if (!gradient) return 0;
    Ref given = node->extra && node->extra->posthooks ? Ref::steal(PyTuple_Pack(1, gradient.get())) : Ref();
    if (accumulate_gradient(leaf, std::move(gradient), options_.create_graph) < 0) return -1;
    if (run_posthooks(node, nullptr, given.get()) < 0) return -1;
    return run_post_accumulate_hooks(leaf);
}

int Run::run_node(GradNode* node) {
    const NodeState known = state(node);
    const bool tensors = options_.create_graph;
    if (node->kind == GradNodeKind::Accumulate) {
        Ref gradient = take_gradient(node, 0);
        give_back(node);
        return run_leaf(node, std::move(gradient));
    }
    StackRefs<4> arrived(node->output_count);
    for (uint32_t i = 0; i < node->output_count; ++i) {
        Ref gradient = take_gradient(node, i);
        if (node->extra && run_output_hooks(node, i, gradient, tensors) < 0) return -1;
        arrived[i] = gradient.release();
    }
    if (known.captured && capture(node, arrived.data()) < 0) return -1;
    if (narrowed_ && !known.leads) {
        give_back(node);
        return 0;
    }
    if (node->kind == GradNodeKind::Error) {
        PyErr_SetObject(PyExc_RuntimeError, node->extra ? node->extra->message : Py_None);
        return -1;
    }
    if (node->extra && run_prehooks(node, arrived.data(), tensors) < 0) return -1;
    StackRefs<8> gradients(static_cast<size_t>(edge_count(node)));
    const bool shown = node->extra && node->extra->posthooks;
    const auto step = [&] { return function_backward(node, arrived.data(), gradients.data(), tensors, shown); };
    if ((PYOP_LIKELY(!profiling()) ? step() : step_profiled(node, arrived, gradients, step)) < 0) return -1;
    if (shown) {
        Ref given = Ref::steal(PyTuple_New(node->output_count));
        if (!given) return -1;
        for (uint32_t i = 0; i < node->output_count; ++i)
            PyTuple_SET_ITEM(given.get(), static_cast<Py_ssize_t>(i), Py_NewRef(arrived[i] ? arrived[i] : Py_None));
        if (run_posthooks(node, gradients.data(), given.get()) < 0) return -1;
    }
    for (uint32_t i = 0; i < node->output_count; ++i) {
        if (PyObject* g = std::exchange(arrived[i], nullptr)) decref(g);
    }
    if (!options_.retain_graph) grad_node_release(node);
    if (distribute(node, gradients.data()) < 0) return -1;
    give_back(node);
    return 0;
}

int Run::distribute(GradNode* node, PyObject** gradients) {
    for (Py_ssize_t i = 0; i < edge_count(node); ++i) {
        const GradEdge& edge = node->edges[i];
        if (!wants(edge)) continue;
        if (gradients[i] && add_gradient(edge.node, edge.output, Ref::steal(std::exchange(gradients[i], nullptr))) < 0)
            return -1;
        if (--state(edge.node).pending == 0) push_ready(edge.node);
    }
    return 0;
}

}  // namespace pyop
