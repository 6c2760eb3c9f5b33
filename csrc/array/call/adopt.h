// array/call/adopt.h: turn what a function returned into the arrays it declared.
//
// An ndarray is adopted as it is: zero-copy, at any alignment and stride, never written into. Scalars and
// nested lists become arrays by NumPy's own rules; foreign byte order is converted; nothing else is cast.
// The text of the errors follows TensorFlow's py_func ("k-th value returned by NAME is A, but expects B").
#pragma once

#include "array/call/caller.h"
#include "array/contract/match.h"
#include "runtime/ref.h"

namespace pyop {

// The k-th result as an ndarray that fits output spec k. New reference, or nullptr with OutputError set.
// `inputs` are the arguments, for `like`. `owner` of the spec may be null: then anything goes.
PyArrayObject* adopt_new(const Contract* c, Py_ssize_t k, PyObject* value, Bindings& b, const Caller& caller);

// Splits a function's result into one object an output, as the contract's form says. Returns a tuple of
// exactly n_out() objects, or an empty Ref with OutputError set. Steals `result`.
Ref split_result(const Contract& c, Ref result, const Caller& caller);

// An array from any object, without a declared dtype: the rules for scalars and lists.
PyArrayObject* to_array_new(PyObject* value);

}  // namespace pyop
