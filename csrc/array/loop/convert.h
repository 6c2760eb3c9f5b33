// array/loop/convert.h: write elements of any stride side by side in another dtype.
#pragma once

#include "array/numpy.h"

namespace pyop {

// Reads n aligned elements `stride` bytes apart and writes them to `to`. Any thread.
using Convert = void (*)(char* to, const char* from, npy_intp stride, npy_intp n);

// Between NumPy's own booleans, integers, float32 and float64, in native byte order: to the same dtype, to a wider one
// of the same kind, from booleans and integers to floating point, and to bool. What NumPy's cast gives, and no
// floating-point error. Null for any other pair.
Convert find_convert(int from_type, int to_type);

}  // namespace pyop
