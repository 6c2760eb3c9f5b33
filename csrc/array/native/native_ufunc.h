// array/native/native_ufunc.h: make a ufunc of NumPy of a NativeCode.
//
// The ufunc owns the code. It has the one loop, for the code's dtypes, and NumPy casts to these what may be cast.
#pragma once

#include "array/native/native_code.h"
#include "runtime/ref.h"

namespace pyop {

// New reference, or empty with the error set. Attached threads.
Ref native_ufunc_new(NativeCode& code);

}  // namespace pyop
