// array/protocol/scalar_operator.h: apply Python's operators between NumPy's scalars.
//
// NumPy computes `x[0] ** p` not with np.power but with arithmetic of its own for scalars: other functions for some
// operators (libm's pow instead of a vectorised loop), a warning where integers overflow, other words in warnings.
// Plans hold scalars as arrays of no dimension; the functions here make scalars of them, and then use the operator.
#pragma once

#include "array/numpy.h"

namespace pyop {

// What a scalar operator says in warnings, for the ufunc that does the same to arrays.
inline constexpr const char* kScalarPrefix = "scalar ";

// The operator that is `ufunc` on arrays, for scalars; borrowed, lives for ever. Null, with no error, if there is none.
PyObject* scalar_operator(PyObject* ufunc);

}  // namespace pyop
