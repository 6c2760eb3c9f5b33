// plan/steps/part.h: hold a part of a plan that is a program of its own: the body of a loop, one of two branches.
#pragma once

#include "graph/passes/rewrite.h"
#include "plan/program.h"

namespace pyop {

// A program and its graph; the callable of the node keeps the plan that owns them. Empty: there is none.
struct Part {
    const Program* program = nullptr;
    PyObject* graph = nullptr;
};

// The tuple that the callable of a node gives for the passes of a request: its plans, and numbers. Null with an error
// set.
Ref plans_of_parts(const Rewrite& r, PyObject* callable);

// Reads a Plan, or None. False if it is neither.
bool read_part(PyObject* plan, Part& part);

// Whether the program calls Python, which may keep what it returns.
bool has_python(const Program& p);

// What a part has computed, as a result in memory of its own: itself, or a copy that lies as it does. `seen`: somebody
// else holds the same array.
PyObject* own_result_new(PyObject* value, bool seen, bool by_python);

}  // namespace pyop
