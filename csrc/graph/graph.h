// graph/graph.h: hold the nodes of a computation in creation order (Graph). Append-only.
//
// The C++ class holds the data; GraphObject is its Python object (`pyop._core.GraphBase`, which
// python/pyop/graph/graph.py extends). Values, nodes' handles and plans keep the Python object alive, so that the
// cycle collector sees every edge: function → graph → node → function is collected.
//
// Threads: attached only. Several may add nodes at once: where there is no GIL a mutex guards the containers, and nodes
// and specs stay where they are. One that reads a graph while another adds to it sees it as it was at some moment.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "array/call/caller.h"
#include "graph/node.h"
#include "graph/value_spec.h"
#include "runtime/origin.h"
#include "runtime/stable_list.h"

namespace pyop {

class Graph {
  public:
    Graph() = default;
    ~Graph();
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;

    // Appends a node under a name made unique, created where the user's code now stands. `base` is a str.
    // Returns its index, or -1 with the error set.
    int64_t add(std::unique_ptr<Node> node, PyObject* base);

    size_t size() const { return nodes_.size(); }
    const Node& node(uint32_t i) const { return *nodes_[i]; }
    template <typename Kind>
    const Kind& node_as(uint32_t i) const {
        return static_cast<const Kind&>(*nodes_[i]);
    }
    std::vector<uint32_t> inputs() const {
        const BriefLock lock(mutex_);
        return inputs_;
    }

    SpecTable& specs() { return specs_; }
    uint64_t serial() const { return serial_; }  // of no other graph of the process
    uint32_t spec_number(Edge e) const { return nodes_[e.node]->output_specs()[e.output]; }
    const ValueSpec& spec(Edge e) const { return specs_[spec_number(e)]; }

    // So many nodes at most: one more ends the trace that adds it (RunItself of python/pyop/graph/deciding.py).
    void limit(size_t nodes) { most_ = nodes; }

    // From now on it is known whether a call was added where a context variable held something else than now: NumPy's
    // state of errors, which a plan knows nothing of. 0, or -1 with the error set.
    int watch(PyObject* variable);
    bool watches() const { return static_cast<bool>(watched_); }
    int look();  // before each call is added, once it watches
    bool crossed() const { return crossed_; }

    // From now on no node may be added. `when` (a str) says after what: "pyop.compile traced f".
    void finish(Ref when) { finished_ = std::move(when); }
    Ref kept_value_text(uint32_t i) const;  // the error of using a Value of node `i` then
    PyObject* finished() const { return finished_.get(); }  // borrowed; null if it is not

    Ref node_name(uint32_t i) const;  // str
    Origin node_origin(uint32_t i) const {
        const BriefLock lock(mutex_);
        return sites_[nodes_[i]->site];
    }
    // Of a copy: where the node was created that it is a copy of. `text` is an interned str.
    void set_origin(uint32_t i, PyObject* text) {
        const BriefLock lock(mutex_);
        nodes_[i]->site = intern_site({nullptr, 0, text});
    }

    // The nodes from `first` on have become the body of a loop: they have no effects here.
    void absorb(size_t first) {
        for (size_t i = first; i < nodes_.size(); ++i) nodes_[i]->absorb();
    }

    // What folding has computed, once for all plans: a tuple of read-only arrays, or null. Borrowed.
    PyObject* folded(uint32_t i) const;
    void keep_folded(uint32_t i, PyObject* results);  // unless it is known already

    int traverse(visitproc visit, void* arg) const;
    // Lets go of every Python object the nodes own, but keeps the nodes: see Node::drop.
    void drop();
    // Whether that has happened. What can still reach the graph then (a finalizer run by the cycle collector) must
    // not run it. 0, or -1 with GraphError set.
    int check_usable() const { return PYOP_LIKELY(!dropped_) ? 0 : not_usable(); }

  private:
    PYOP_COLD static int not_usable();
    PYOP_COLD int64_t no_more(const Node& node) const;
    PYOP_COLD int64_t too_many() const;

    struct Name {
        Ref text;
        uint32_t next_ordinal;
    };
#ifdef Py_GIL_DISABLED
    using Nodes = StableList<std::unique_ptr<Node>>;
#else
    using Nodes = std::vector<std::unique_ptr<Node>>;
#endif
    uint32_t intern_site(const Origin& origin);
    int name_node(Node& node, PyObject* base);
    bool taken(const std::string& text) const;

    mutable BriefMutex mutex_;
    Nodes nodes_;
    std::vector<uint32_t> inputs_;
    SpecTable specs_;
    static inline Relaxed<uint64_t> graphs_made_ = 0;
    const uint64_t serial_ = ++graphs_made_;
    std::vector<Origin> sites_;  // each owns a reference to its code
    std::unordered_map<size_t, uint32_t> site_ids_;
    std::vector<Name> names_;
    std::unordered_map<std::string, uint32_t> name_ids_;
    std::unordered_map<uint32_t, Ref> folded_;
    bool dropped_ = false;
    size_t most_ = UINT32_MAX;
    Ref finished_;  // str: when, for the error of adding a node later; null while nodes may be added
    SharedRef watched_, watched_value_;
    bool crossed_ = false;
    bool has_numbered_names_ = false;  // a given name ends like an ordinal: "f_1"
};

struct GraphObject {
    PyObject_HEAD
    Graph* graph;
};

extern PyTypeObject* graph_type;
int graph_init(PyObject* module);

inline bool is_graph(PyObject* o) { return PyObject_TypeCheck(o, graph_type); }
inline Graph& graph_of(PyObject* o) { return *reinterpret_cast<GraphObject*>(o)->graph; }

// A node in words, for errors.
class NodeCaller final : public Caller {
  public:
    NodeCaller(const Graph& graph, uint32_t node) : graph_(graph), node_(node) {}
    std::string name() const override;
    std::string description() const override;
    const Contract* declared() const override;

  private:
    const Graph& graph_;
    uint32_t node_;
};

}  // namespace pyop
