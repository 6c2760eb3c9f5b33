// array/call/tree_layout.h: plan how a CallOnTree puts its arguments together, once for all calls.
#pragma once

#include "array/call/tree_call.h"

namespace pyop {

// The object that stands for an array among the leaves of a CallOnTree. Empty with the error set on failure.
Ref array_mark();

// Reads a pattern of (args, kwargs) in which the objects of `places` stand for the arrays. `carriers` says where the
// numbers of symbolic sizes are found: name to (place, axis). 0, or -1 with the error set.
int lay_out_tree(PyObject* pattern, PyObject* places, PyObject* carriers, TreeCallObject::Layout& layout);

}  // namespace pyop
