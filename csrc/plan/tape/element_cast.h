// plan/tape/element_cast.h: convert one number to another dtype, on a tape or off it.
//
// The results are NumPy's; where they depend on the processor or come with a warning (a float that is no number of an
// integer's type, an int that does not fit), the function answers false, and NumPy does it. Overflow raises its flag.
#pragma once

#include "array/numpy.h"
#include "plan/tape/tape.h"

namespace pyop {

// As `astype` does it, by type numbers. Null if NumPy must: a complex number as a real one, and what is no number.
// Attached threads; the function runs anywhere.
TapeCall::Function* find_element_cast(int from, int to);

// As an operation does it with a Python number: an int64, float64, complex128 or bool. An int must fit; it becomes
// what is narrower than a double by way of one.
TapeCall::Function* find_number_cast(int from, int to);

// As a write into an array does it, of a scalar of NumPy, an array of no dimension or a Python number: where these
// differ, the function answers false.
TapeCall::Function* find_store_cast(int from, int to);

}  // namespace pyop
