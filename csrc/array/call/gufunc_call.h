// array/call/gufunc_call.h: call a function declared on core dimensions once for every index of the leading ones.
#pragma once

#include "array/call/checked_call.h"
#include "array/contract/match.h"

namespace pyop {

// As checked_call, for inputs that match_gufunc() has accepted with a loop of at least one dimension.
int gufunc_call(const Callee& callee, PyObject* const* arrays, Py_ssize_t n, Bindings& b, const LoopShape& loop,
                PyObject** outs, PyObject* const* out, const Caller& caller);

}  // namespace pyop
