// plan/passes/views.cpp: find chains of views, each read by the next alone, and views that a group alone reads.
#include "plan/passes/views.h"

#include <algorithm>

#include "plan/steps/view_step.h"

namespace pyop {

namespace {

bool may_chain(const Rewrite& r, uint32_t i) {
    return r.g.node(i).inputs().size() == 1 && r.g.node(i).n_outputs() == 1 && !r.node_is_fed[i] && makes_view(r, i);
}

}  // namespace

void ViewChains::find(const Rewrite& r, const std::vector<uint32_t>& schedule, const Fusion& fusion) {
    const auto last_of_chain = [&](uint32_t i) {
        return r.g.node(i).inputs().size() == 1 && !r.node_is_fed[i] && makes_view(r, i);
    };
    if (std::none_of(schedule.begin(), schedule.end(), last_of_chain)) return;
    std::vector<uint32_t> reads(r.n_nodes);
    for (const uint32_t i : schedule)
        for (const Edge e : r.g.node(i).inputs()) ++reads[r.resolve(e).node];
    for (const Edge e : r.request.fetches) reads[r.resolve(e).node] += 2;
    Flags scheduled(r.n_nodes);
    for (const uint32_t i : schedule) {
        scheduled[i] = true;
        const Node& node = r.g.node(i);
        if (!last_of_chain(i)) continue;
        const Edge e = r.resolve(node.inputs()[0]);
        if (!scheduled[e.node] || reads[e.node] != 1 || !may_chain(r, e.node)) continue;
        ViewCall view, before;
        if (!read_view(r, i, view) || !read_view(r, e.node, before) || before.recipes[0].copies_item) continue;
        next_.emplace(e.node, i);
        previous_.emplace(i, e.node);
        views_.insert_or_assign(i, std::move(view));
        views_.insert_or_assign(e.node, std::move(before));
    }
    if (!fusion.groups.empty()) find_shown(r, schedule, fusion, reads);
}

void ViewChains::find_shown(const Rewrite& r, const std::vector<uint32_t>& schedule, const Fusion& fusion,
                            const std::vector<uint32_t>& reads) {
    struct Reader {
        int32_t group = -1;
        uint32_t reads = 0;
    };
    std::vector<Reader> readers(r.n_nodes);
    for (const uint32_t i : schedule) {
        const int32_t group = fusion.group_of[i];
        if (group < 0) continue;
        for (const Edge e : r.g.node(i).inputs()) {
            Reader& reader = readers[r.resolve(e).node];
            if (reader.reads == 0) reader.group = group;
            if (reader.group == group) ++reader.reads;
        }
    }
    for (const uint32_t i : schedule) {
        if (readers[i].group < 0 || readers[i].reads != reads[i] || fusion.group_of[i] >= 0 || !may_chain(r, i))
            continue;
        if (views_.count(i) == 0) {
            ViewCall view;
            if (!read_view(r, i, view)) continue;
            views_.emplace(i, std::move(view));
        }
        if (always_view(i)) next_.emplace(i, fusion.groups[static_cast<size_t>(readers[i].group)].members.back());
    }
}

// Whether a view and those before it are never a copy, nor a number, and need no sizes.
bool ViewChains::always_view(uint32_t node) const {
    for (auto it = previous_.find(node);; it = previous_.find(it->second)) {
        const ViewCall& view = views_.at(node);
        if (view.sizes) return false;
        for (const ViewRecipe& recipe : view.recipes) {
            if (recipe.copies_item) return false;
            for (const ViewOp& op : recipe.ops)
                if (op.kind != ViewOp::Axes && op.kind != ViewOp::Expand && op.kind != ViewOp::Squeeze &&
                    op.kind != ViewOp::Broadcast && op.kind != ViewOp::Same)
                    return false;
        }
        if (it == previous_.end()) return true;
        node = it->second;
    }
}

std::unique_ptr<ViewStep> ViewChains::make(const Rewrite& r, uint32_t node, Edge& base) const {
    std::vector<uint32_t> chain{node};
    for (auto it = previous_.find(node); it != previous_.end(); it = previous_.find(it->second))
        chain.push_back(it->second);
    if (chain.size() == 1 && !forwarded(node)) return nullptr;
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
