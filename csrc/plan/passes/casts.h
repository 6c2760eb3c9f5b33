// plan/passes/casts.h: leave out conversions and copies that change nothing.
//
// A conversion to the dtype that the elements have, one there and back that loses nothing, a copy: they make an array
// of its own, and the same elements. Where nobody sees the result but what computes fresh arrays of it, nobody can
// tell it from the array it was made of. The order of elements in memory must be that of the copy as well, because
// NumPy's sums depend on it. So a conversion is left out of the plan where what it converts was computed element by
// element, in the order that a copy keeps; for all other arrays that is looked at when they come (SameArrays).
#pragma once

#include <memory>
#include <unordered_set>
#include <vector>

#include "graph/passes/rewrite.h"
#include "plan/native_step.h"

namespace pyop {

// Lets what they convert stand for conversions that change nothing. After merging.
void leave_out_casts(Rewrite& r);

// Nodes whose result may be the array itself, if that lies in memory as the copy would.
class SameArrays {
  public:
    // Looks for them among the nodes of a schedule.
    void find(const Rewrite& r, const std::vector<uint32_t>& schedule);
    bool same(uint32_t node) const { return !nodes_.empty() && nodes_.count(node); }
    std::unique_ptr<NativeStep> make(const Rewrite& r, uint32_t node) const;

  private:
    std::unordered_set<uint32_t> nodes_;
};

}  // namespace pyop
