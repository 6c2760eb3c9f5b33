// array/call/native_call.h: call compiled code whose arguments fit its declaration: its ufunc loops over leading
// dimensions itself, and writes into no argument, so that nothing is lent.
#pragma once

#include "array/call/checked_call.h"
#include "array/contract/match.h"

namespace pyop {

// As checked_call, with the inputs matched: their names are bound in `b`, their leading dimensions are `loop`.
int native_call(const Callee& callee, PyObject* const* arrays, Py_ssize_t n, Bindings& b, const LoopShape& loop,
                PyObject** outs, PyObject* const* out, const Caller& caller);

}  // namespace pyop
