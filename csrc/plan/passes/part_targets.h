// plan/passes/part_targets.h: find which results of groups are written into part of an array by a later instruction,
// and may be computed there.
#pragma once

#include "plan/program.h"

namespace pyop {

void find_part_targets(Program& p);

}  // namespace pyop
