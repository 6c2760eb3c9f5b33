// plan/passes/schedule.h: order a program's instructions.
//
// Creation order is one that works. Another is taken if less memory is held at once that way: depth-first from what
// nobody reads, each instruction right after the last of its producers, and first the producer that needs most while
// it works. Stateful nodes keep the order they were written in, and
// nothing runs before a guard (plan/steps/guard_step.h) that was written behind it. The same graph gives the same order
// every time.
#pragma once

#include <vector>

#include "graph/passes/rewrite.h"

namespace pyop {

// The nodes that become one instruction are a unit.
struct Units {
    static constexpr uint32_t kNone = UINT32_MAX;
    std::vector<uint32_t> heads;  // by unit: the last of its nodes; ascending
    std::vector<uint32_t> unit_of;  // by node; kNone if it is not executed
};

// The heads in the order of execution. `nodes`: those of all units, in creation order. Takes time and memory in
// proportion to the nodes and what they read.
std::vector<uint32_t> scheduled(const Rewrite& r, const std::vector<uint32_t>& nodes, const Units& units);

}  // namespace pyop
