// graph/build.h: add nodes to a graph from arrays, Values and calls, and tell which graph is being built.
#pragma once

#include "graph/value.h"
#include "runtime/tally.h"

namespace pyop {

// The graph that `with graph:` or a trace on this thread is building; borrowed, null if none.
PyObject* graph_being_built();

// One test for the hot path: is any thread building a graph?
extern Tally graphs_being_built;

// Pushes / pops on this thread's stack of graphs being built. Null pushes "none" (while a plan runs).
void push_graph(PyObject* graph_or_null);
void pop_graph();
// Takes the innermost entry for this graph off the stack, wherever it is: a generator that builds a graph may end while
// another is being built. False if there is none.
bool pop_graph(PyObject* graph);

// While the functions of a plan run, what they call is not captured.
class NotBuilding {
  public:
    NotBuilding() : active_(graphs_being_built != 0) {
        if (active_) push_graph(nullptr);
    }
    ~NotBuilding() {
        if (active_) pop_graph();
    }
    NotBuilding(const NotBuilding&) = delete;
    NotBuilding& operator=(const NotBuilding&) = delete;

  private:
    bool active_;
};

// A constant node holding a read-only copy of `array` (or the array itself, if `share` says that it is
// nobody else's). Returns its index, or -1 with the error set.
int64_t add_constant(PyObject* graph, PyArrayObject* array, PyObject* name, bool share);

// The edges of call inputs that are Values of `graph` or arrays, which become constants. `c` (may be null)
// says how to convert them.
int edges_of(PyObject* graph, PyObject* const* inputs, Py_ssize_t n, const Contract* c, const Caller& caller,
             std::vector<Edge>& edges);

// The graph of the first Value among the objects, or the one being built; borrowed, null if none (no error).
PyObject* graph_among(PyObject* const* objects, Py_ssize_t n);

// Adds a PyNode. `specs` are ids of the graph's table. Returns its index, or -1 with the error set.
int64_t add_call(PyObject* graph, PyNode::Call call, std::span<const Edge> edges, std::span<const uint32_t> specs,
                 bool stateful, PyObject* name);

// What a contract promises of its outputs, given what is known of the inputs: ids for add_call. A provable
// mismatch is an InputError. `promised`, if not null, receives the contract that tells how the outputs come
// back: `c` itself, or for an abstract function what it made of these arguments.
int infer_outputs(PyObject* graph, const Contract& c, std::span<const Edge> edges, const CallForm* form,
                  std::vector<uint32_t>& specs, Ref* promised, const Caller& caller);

}  // namespace pyop
