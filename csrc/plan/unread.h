// plan/unread.h: run what nobody reads, because it may raise.
//
// Where a function writes into its arguments, all of that does: the arrays are left as they are when NumPy raises. In
// other functions it is what raises where one would not expect it of code that is not needed: a write out of bounds, or
// a number that an array of integers cannot hold, written into it or beside it in a ufunc. Floating-point errors of
// what nobody reads are not heard of.
#pragma once

#include "graph/passes/rewrite.h"

namespace pyop {

// Adds the nodes to request.run_nodes. 0, or -1 with the error set. Attached.
int run_unread(PyObject* graph, Request& request);

}  // namespace pyop
