// plan/passes/in_place.h: find which instructions may write over what they read.
#pragma once

#include "plan/program.h"

namespace pyop {

// Keeps Instruction::in_place, set where an instruction could make use of it, only where some value is read for the
// last time, and by one operand only. Whether that is an array that nobody else holds is seen at run time. If the pass
// is switched off, nothing may.
void mark_in_place(Program& p, bool enabled);

}  // namespace pyop
