// array/call/remedy.h: tell what to do about an argument of another dtype, in the words of the library that it is
// from. Cold.
#pragma once

#include <string>

#include "array/numpy.h"

namespace pyop {

// "pass x.to(torch.float64)": how `given` (null: an ndarray), an array of dtype `have`, is made one of dtype `want`.
PYOP_COLD std::string cast_remedy(PyObject* given, PyArray_Descr* have, PyArray_Descr* want);

}  // namespace pyop
