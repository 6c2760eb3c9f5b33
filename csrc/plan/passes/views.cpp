// plan/passes/views.cpp: finds chains of views, each read by the next alone.
#include "plan/passes/views.h"

#include <algorithm>

#include "plan/steps/view_step.h"

namespace pyop {

void ViewChains::find(const Rewrite& r, const std::vector<uint32_t>& schedule) {
    const auto may_chain = [&](uint32_t i) {
        return r.g.node(i).inputs().size() == 1 && !r.node_is_fed[i] && makes_view(r, i);
    };
    bool any = false;
    for (const uint32_t i : schedule) any = any || may_chain(i);
    if (!any) return;
    std::vector<uint32_t> reads(r.n_nodes);
    for (const uint32_t i : schedule)
        for (const Edge e : r.g.node(i).inputs()) ++reads[r.resolve(e).node];
    for (const Edge e : r.request.fetches) reads[r.resolve(e).node] += 2;
    Flags scheduled(r.n_nodes);
    for (const uint32_t i : schedule) {
        scheduled[i] = true;
        const Node& node = r.g.node(i);
        if (!may_chain(i)) continue;
        const Edge e = r.resolve(node.inputs()[0]);
        if (!scheduled[e.node] || reads[e.node] != 1 || r.g.node(e.node).n_outputs() != 1 || !may_chain(e.node))
            continue;
        ViewCall view, before;
        if (!read_view(r, i, view) || !read_view(r, e.node, before) || before.recipes[0].copies_item) continue;
        next_.emplace(e.node, i);
        previous_.emplace(i, e.node);
        views_.insert_or_assign(i, std::move(view));
        views_.insert_or_assign(e.node, std::move(before));
    }
}

std::unique_ptr<NativeStep> ViewChains::make(const Rewrite& r, uint32_t node, Edge& base) const {
    std::vector<uint32_t> chain{node};
    for (auto it = previous_.find(node); it != previous_.end(); it = previous_.find(it->second))
        chain.push_back(it->second);
    if (chain.size() == 1) return nullptr;
    std::reverse(chain.begin(), chain.end());
    Fallback fallback;
    std::vector<ViewRecipe> before;
    for (uint32_t m = 0; m < chain.size(); ++m) {
        fallback.nodes.push_back(chain[m]);
        fallback.sources.push_back({m == 0 ? Fallback::Source{true, 0} : Fallback::Source{false, m - 1, 0}});
        if (chain[m] != node) before.push_back(views_.at(chain[m]).recipes[0]);
    }
    const auto last = static_cast<uint32_t>(chain.size() - 1);
    for (uint32_t k = 0; k < r.g.node(node).n_outputs(); ++k) fallback.outputs.emplace_back(last, k);
    base = r.resolve(r.g.node(chain[0]).inputs()[0]);
    return std::make_unique<ViewStep>(std::move(fallback), views_.at(node), std::move(before));
}

}  // namespace pyop
