// plan/beside.h: compute a value of a graph concretely, while the graph is written.
//
// A function under trace asks for a number (python/pyop/graph/deciding.py), and the call that it is traced for has
// arrays. The functions of the nodes that lead there are called on them one by one, as a plan without passes would: the
// same bits. What was computed once is kept by the caller, so that a loop of many questions computes each node once.
#pragma once

#include "runtime/python.h"

namespace pyop {

// Adds evaluate_beside(graph, node, known) to the module.
int beside_init(PyObject* module);

}  // namespace pyop
