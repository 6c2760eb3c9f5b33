// array/loop/error_policy.h: ask, before a computation begins, whether a floating-point error could end it.
#pragma once

namespace pyop {

// True if NumPy would ignore each floating-point error on this thread, or warn of it in a way that cannot raise: no
// filter turns such a warning into an error, and it is shown by Python's own functions on the process's own stderr.
// Attached threads; sets no error, and runs no code of users.
bool fp_errors_cannot_raise();

}  // namespace pyop
