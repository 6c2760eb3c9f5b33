// plan/disabled.h: tell whether compiled functions run plainly, as `with pyop.disable():` and PYOP_DISABLE ask for.
//
// The mode is one of a context (PEP 567): a thread has its own, and so has a task of asyncio. Its object is C++ for one
// reason: a KeyboardInterrupt may land before the first line of a Python `__exit__`, and the mode would then stay on.
//
// Threads: attached only; the count is a Tally.
#pragma once

#include "runtime/python.h"
#include "runtime/tally.h"

namespace pyop {

// How many `with pyop.disable():` are entered on all threads, and one for PYOP_DISABLE: what a call looks at first.
inline constinit Tally disabled_anywhere;

// Whether it is on here. -1 with the error set. Worth asking only where it is on anywhere.
PYOP_COLD int is_disabled();

int disabled_init(PyObject* module);

}  // namespace pyop
