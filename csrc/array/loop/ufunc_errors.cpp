// array/loop/ufunc_errors.cpp: hand flags to the function of NumPy's C API that reports them.
#include "array/loop/ufunc_errors.h"

#include "array/loop/fp_flags.h"
#include "array/numpy.h"

#include <numpy/ufuncobject.h>

namespace pyop {

namespace {

int import_ufunc_api() {
    import_umath1(-1);
    return 0;
}

}  // namespace

thread_local Trial* Trial::current_ = nullptr;

int Trial::leave() {
    current_->left_ = true;
    PyErr_SetString(PyExc_FloatingPointError, "a trial was left");
    return -1;
}

int report_fp_errors(const char* ufunc_name, int flags) {
    if (PYOP_UNLIKELY(Trial::running())) return Trial::leave();
    static const int imported = import_ufunc_api();
    if (imported < 0) return -1;
    int errors = 0;
    if (flags & FE_DIVBYZERO) errors |= NPY_FPE_DIVIDEBYZERO;
    if (flags & FE_OVERFLOW) errors |= NPY_FPE_OVERFLOW;
    if (flags & FE_UNDERFLOW) errors |= NPY_FPE_UNDERFLOW;
    if (flags & FE_INVALID) errors |= NPY_FPE_INVALID;
    return PyUFunc_GiveFloatingpointErrors(ufunc_name, errors);
}

}  // namespace pyop
