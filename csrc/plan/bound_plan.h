// plan/bound_plan.h: define BoundPlan, what plan.into(buffers) returns: the plan as a callable that writes its results
// into these arrays and returns them, so that a loop of calls allocates nothing.
//
// The buffers are looked at once, when they are bound. Each call is that of the plan with out=, or a shorter one
// (plan/quick/). Threads: attached only. Calls of one BoundPlan on several threads write into the same arrays.
#pragma once

#include "runtime/python.h"

namespace pyop {

// Plan.into.
PyObject* plan_into(PyObject* plan, PyObject* const* buffers, Py_ssize_t n);

// Adds BoundPlan to the module.
int bound_plan_init(PyObject* module);

}  // namespace pyop
