// plan/finish.h: complete the facts of a Program once all its instructions are there.
#pragma once

#include "plan/program.h"

namespace pyop {

// Finds what is written where, what is lent anew, what memory results share, the order or the last uses, and which
// instructions may work in place. Outputs and instructions stand as `r` gave them.
void finish(const Rewrite& r, Program& p);

// Whether a plan may be left in its middle. That is for one thread: which warnings are another path's depends on how
// far the thread has come (python/pyop/graph/deciding.py).
bool has_guards(const Rewrite& r);

}  // namespace pyop
