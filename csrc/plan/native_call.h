// plan/native_call.h: run nodes whose op is compiled code (array/native/).
#pragma once

#include "graph/graph.h"

namespace pyop {

// Whether arrays as the graph knows them fit what an elementwise op declares, results too: nothing is left to be
// checked when the plan runs.
bool is_kept(const Graph& g, const PyNode& node);

}  // namespace pyop
