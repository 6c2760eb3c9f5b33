// plan/last_uses.h: find when a value is read for the last time, so that its memory may go or be written over.
#pragma once

#include "plan/program.h"

namespace pyop {

// Marks the operands that are read last, lets go of results that nobody reads, and numbers the slots so that a frame is
// as large as what is alive at once, not as the graph. Of a program that one thread executes in order.
void mark_last_uses(Program& p);

}  // namespace pyop
