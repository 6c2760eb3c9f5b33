// array/loop/one_element.h: find how NumPy calls its loops for a single number.
#pragma once

#include "array/loop/strided_loop.h"

namespace pyop {

// The strides of the operands of a call for numbers: to NumPy they do not move, but for results. By these some loops
// for complex numbers choose between instructions with other last bits. Newer releases have a way of their own for a
// single scalar, whose result does not move either; which way this one goes is tried out. Attached threads.
void strides_of_one(const StridedLoop& loop, bool of_scalar, npy_intp* strides);

}  // namespace pyop
