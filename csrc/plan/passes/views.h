// plan/passes/views.h: a view that only one other view reads is never made: that one shows the base directly.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "plan/native_step.h"
#include "plan/steps/view_reading.h"

namespace pyop {

class ViewChains {
  public:
    // Looks for them among the nodes of a schedule.
    void find(const Rewrite& r, const std::vector<uint32_t>& schedule);

    // Whether the only reader of a node shows what the node would have been a view of.
    bool forwarded(uint32_t node) const { return !next_.empty() && next_.count(node); }
    // That reader.
    uint32_t next(uint32_t node) const { return next_.at(node); }
    // A step for a node and the views before it, of which `base` is the input; null where there are none before it.
    std::unique_ptr<NativeStep> make(const Rewrite& r, uint32_t node, Edge& base) const;

  private:
    std::unordered_map<uint32_t, uint32_t> next_, previous_;  // by node
    std::unordered_map<uint32_t, ViewCall> views_;            // of the nodes in chains
};

}  // namespace pyop
