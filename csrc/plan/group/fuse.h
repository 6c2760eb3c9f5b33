// plan/group/fuse.h: choose which nodes run as native loops, and which of these run together.
#pragma once

#include <memory>
#include <vector>

#include "plan/group/elementwise.h"
#include "plan/steps/reduce.h"

namespace pyop {

// Nodes whose loops run one after the other on a block of elements while it is in cache. They have one shape,
// known or symbolic (one that is neither has a group of its own), and follow each other in `members` as in the
// schedule; the group runs where its last member stood.
struct FusedNodes {
    std::vector<uint32_t> members;
};

// A reduction over the last axes of a value, which can be done block by block.
struct RowsReduced {
    ReductionCall call;
    int n_axes = 0;      // all of them, or this many at the end
    bool mean = false;   // np.mean: the sums are divided
    const char* initial() const { return call.reduction.has_initial ? call.reduction.initial.data() : nullptr; }
};

struct Fusion {
    std::vector<std::shared_ptr<const RowsReduced>> reductions;  // by node; null: none that may end a group
    std::vector<std::shared_ptr<const ElementwiseCall>> calls;  // by node; null: not elementwise
    std::vector<FusedNodes> groups;
    std::vector<int32_t> group_of;                          // by node; -1: in none. Empty if there are no groups
};

// Groups the elementwise ufuncs of `schedule` (nodes in execution order). 0, or -1 with an error set.
int fuse(const Rewrite& r, const std::vector<uint32_t>& schedule, Fusion& fusion);

}  // namespace pyop
