#include "graph/passes/rewrite.h"

#include <numeric>  // std::iota

namespace pyop {

Rewrite::Rewrite(PyObject* graph_object, const Request& r)
    : graph(graph_object), g(graph_of(graph_object)), request(r), live(g.size()), same_as(g.size()) {
    std::iota(same_as.begin(), same_as.end(), 0u);
    for (const Edge e : r.feeds) fed.insert(key(e));
}

PyObject* Rewrite::known(Edge e) const {
    if (is_fed(e)) return nullptr;
    if (g.node(e.node).kind() == NodeKind::Constant) return g.node_as<ConstantNode>(e.node).array();
    PyObject* results = g.folded(e.node);
    return results && request.optimize ? PyTuple_GET_ITEM(results, e.output) : nullptr;
}

void prune(Rewrite& r) {
    std::vector<bool> live(r.g.size());
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
        for (uint32_t i = 0; i < r.g.size(); ++i)
            if (r.g.node(i).stateful()) need({i, 0});
    while (!pending.empty()) {
        const uint32_t node = pending.back();
        pending.pop_back();
        if (r.request.optimize && r.g.folded(node) && !r.g.node(node).stateful()) continue;
        for (const Edge e : r.g.node(node).inputs()) need(e);
    }
    r.live = std::move(live);
}

}  // namespace pyop
