// plan/passes/views.h: leave out a view that only one other view reads, or only one group: that one shows the base
// directly.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "plan/group/fuse.h"
#include "plan/native_step.h"
#include "plan/steps/view_reading.h"
#include "plan/steps/view_step.h"

namespace pyop {

class ViewChains {
  public:
    // Looks for them among the nodes of a schedule.
    void find(const Rewrite& r, const std::vector<uint32_t>& schedule, const Fusion& fusion);

    // Whether the only reader of a node, a view or a group, shows what the node would have been a view of.
    bool forwarded(uint32_t node) const { return !next_.empty() && next_.count(node); }
    // That reader; of a group, the last of its members.
    uint32_t next(uint32_t node) const { return next_.at(node); }
    // A step for a node and the views before it, of which `base` is the input; null for a node that is in no chain.
    std::unique_ptr<ViewStep> make(const Rewrite& r, uint32_t node, Edge& base) const;

  private:
    void find_shown(const Rewrite& r, const std::vector<uint32_t>& schedule, const Fusion& fusion,
                    const std::vector<uint32_t>& reads);
    bool always_view(uint32_t node) const;

    std::unordered_map<uint32_t, uint32_t> next_, previous_;  // by node
    std::unordered_map<uint32_t, ViewCall> views_;  // of the nodes in chains
};

}  // namespace pyop
