// array/loop/ufunc_errors.h: floating-point errors reported as NumPy's ufuncs report them.
#pragma once

namespace pyop {

// What np.errstate asks for: nothing, a RuntimeWarning, FloatingPointError, a call … in the name of a ufunc. `flags` as
// in fp_flags.h. 0, or -1 with the error set. Attached threads.
int report_fp_errors(const char* ufunc_name, int flags);

}  // namespace pyop
