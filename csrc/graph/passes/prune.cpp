// graph/passes/prune.cpp: eliminate dead code: leave out what neither the fetches nor a stateful node need.
#include "graph/passes/rewrite.h"

#include <algorithm>  // std::all_of
#include <numeric>  // std::iota

namespace pyop {

Rewrite::Rewrite(PyObject* graph_object, const Request& r)
    : graph(graph_object),
      g(graph_of(graph_object)),
      request(r),
      n_nodes(static_cast<uint32_t>(g.size())),
      live(n_nodes),
      same_as(n_nodes),
      node_is_fed(n_nodes) {
    std::iota(same_as.begin(), same_as.end(), 0u);
    for (const Edge e : r.feeds) {
        fed.insert(key(e));
        node_is_fed[e.node] = g.node(e.node).n_outputs() == 1 ? kAll : kSome;
    }
    const auto is_input = [&](Edge e) { return g.node(e.node).kind() == NodeKind::Input; };
    if (std::all_of(r.feeds.begin(), r.feeds.end(), is_input)) return;
    after_feed.resize(n_nodes);
    for (uint32_t i = 0; i < n_nodes; ++i)
        for (const Edge e : g.node(i).inputs())
            if (is_fed(e) || after_feed[e.node]) after_feed[i] = true;
}

PyObject* Rewrite::known(Edge e) const {
    if (is_fed(e)) return nullptr;
    if (g.node(e.node).kind() == NodeKind::Constant) return g.node_as<ConstantNode>(e.node).array();
    PyObject* results = folded_results(e.node);
    return results && request.passes.has(Pass::Fold) ? PyTuple_GET_ITEM(results, e.output) : nullptr;
}

void prune(Rewrite& r) {
    Flags live(r.n_nodes);
    std::vector<uint32_t> pending;
    const auto need = [&](Edge e) {
        e = r.resolve(e);
        if (!r.is_fed(e) && !live[e.node]) {
            live[e.node] = true;
            pending.push_back(e.node);
        }
    };
    for (const Edge e : r.request.fetches) need(e);
    for (const uint32_t node : r.request.run_nodes) need({node, 0});
    if (r.request.whole)
        for (uint32_t i = 0; i < r.n_nodes; ++i)
            if (r.g.node(i).stateful()) need({i, 0});
    while (!pending.empty()) {
        const uint32_t node = pending.back();
        pending.pop_back();
        if (r.request.passes.has(Pass::Fold) && r.folded_results(node) && !r.g.node(node).stateful()) continue;
        for (const Edge e : r.g.node(node).inputs()) need(e);
    }
    r.live = std::move(live);
}

}  // namespace pyop
