// plan/steps/guard_step.h: check guards in a plan: a number that decided in the trace is the same.
#pragma once

#include "graph/graph.h"
#include "runtime/up_calls.h"

namespace pyop {

// Whether a node is one (Taken of python/pyop/graph/deciding.py). What was written behind it runs behind it.
PYOP_INLINE bool is_guard(const Node& node) {
    return node.stateful() && node.kind() == NodeKind::Py &&
           reinterpret_cast<PyObject*>(Py_TYPE(static_cast<const PyNode&>(node).fn())) == up_calls.taken;
}

// Whether a run computes again, and silently, what another path has computed.
bool runs_quietly();

// Adds count_quiet() to the module.
int guard_step_init(PyObject* module);

}  // namespace pyop
