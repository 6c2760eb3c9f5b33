// graph/passes/rewrite.h: record what the passes decide about a graph for one plan, without touching the graph.
//
//     prune → merge → casts → fold → prune        then plan/ groups, orders and lays out what is left
//
// Creation order is a schedule: a node's inputs exist before it, and stateful nodes run in that order.
#pragma once

#include <unordered_set>
#include <vector>

#include "graph/graph.h"
#include "graph/passes/passes.h"

namespace pyop {

// What a plan is to compute.
struct Request {
    std::vector<Edge> fetches;        // those of the writes come last
    std::vector<uint32_t> writes;     // feeds that hold something else in the end
    std::vector<uint32_t> run_nodes;  // nodes that must run though nothing of them is fetched
    std::vector<Edge> feeds;          // values given by the caller, in the order of the plan's arguments
    bool whole = false;               // also every stateful node
    PassSet passes = PassSet::all();
    bool fast = false;                // results may differ in the last bits (precision="fast")
};

// A byte each: passes ask these at every edge, and bits would have to be shifted out.
using Flags = std::vector<uint8_t>;

struct Rewrite {
    Rewrite(PyObject* graph_object, const Request& r);

    PyObject* graph;  // borrowed
    Graph& g;
    const Request& request;
    const uint32_t n_nodes;             // when it began: folding runs user functions, which may add nodes
    Flags live;                         // is computed, or known
    std::vector<uint32_t> same_as;      // the node that computes the same; itself if not merged
    Flags node_is_fed;                  // some output of the node is given by the caller: kAll, or those in `fed`
    std::unordered_set<uint64_t> fed;
    Flags after_feed;                   // reads a fed edge other than an input; empty if none is fed
    std::unordered_set<uint32_t> left_out;  // conversions that change nothing: `same_as` what they convert
    size_t pruned = 0, merged = 0, folded = 0;

    static constexpr uint64_t key(Edge e) { return static_cast<uint64_t>(e.node) << 32 | e.output; }
    static constexpr uint8_t kSome = 1, kAll = 2;
    bool is_fed(Edge e) const {
        const uint8_t how = node_is_fed[e.node];
        return how && (how == kAll || fed.count(key(e)));
    }
    // The edge that stands for `e` after merging. Fed edges stand for themselves.
    Edge resolve(Edge e) const { return is_fed(e) ? e : Edge{same_as[e.node], e.output}; }
    // What folding computed, where it holds for this plan too; borrowed, null if it does not.
    PyObject* folded_results(uint32_t node) const {
        return after_feed.empty() || !after_feed[node] ? g.folded(node) : nullptr;
    }
    // The array of an edge that is known before the run; borrowed, null if it is computed or fed.
    PyObject* known(Edge e) const;
};

// Keeps what the request needs: the fetches, the nodes to run, all stateful nodes if the whole graph is
// wanted, and what these read. Called again after merging and folding.
void prune(Rewrite& r);

// Lets stateless nodes with the same function, inputs and static arguments be one, and equal small constants.
// Returns -1 with an error set if comparing static arguments raised.
int merge(Rewrite& r);

// Computes stateless nodes whose inputs are all known, once for the life of the graph. An exception of the
// user's function is an exception of compiling.
int fold(Rewrite& r);

}  // namespace pyop
