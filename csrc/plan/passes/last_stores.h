// plan/passes/last_stores.h: make writes by slices into arguments in the caller's arrays, when all is computed.
#pragma once

#include "plan/program.h"

namespace pyop {

// Takes such writes out of the instructions, where they are the last (WriteBack::store).
void take_last_stores(Program& p);

// Which of them may be computed where they go: by the last instruction, behind all others (WriteBack::by_last).
void find_direct_writes(Program& p);

}  // namespace pyop
