// autograd/numbers.h: apply ufuncs to the arrays of Tensors.
//
// A ufunc called through NumPy spends most of its time on its arguments when they are small. Where they are plain
// (float64 or float32 in C order, all of one shape, single numbers among them), NumPy's own inner loop is called
// instead: the same bits, and floating-point errors reported as np.errstate asks. Everything else goes to the ufunc.
#pragma once

#include "array/loop/strided_loop.h"

namespace pyop {

struct Ufunc {
    struct Loop {
        StridedLoop loop;
        enum : uint8_t { Unknown, Found, None } state = Unknown;
    };
    const char* name = nullptr;
    PyObject* object = nullptr;  // for the life of the process
    int inputs = 0;
    Loop loops[2];               // of float64 and float32; asked for on first use
};

// Finds `name` in NumPy. -1 with the error set.
int ufunc_find(Ufunc& u, PyObject* numpy, const char* name);

// The ufunc of arrays and numbers; `b` is null if it takes one. If nobody else has `a`, its memory may be the result's.
// `scalars`: it was written as an operator between scalars. An exact ndarray or a NumPy scalar; empty with the error
// set.
Ref ufunc_call(Ufunc& u, Ref a, PyObject* b, bool scalars = false);

// Nobody else can see the memory of `array`, a reference we own.
PYOP_INLINE bool is_ours_alone(PyObject* array) {
    if (!is_exact_array(array) || !uniquely_owned(array)) return false;
    PyArrayObject* a = as_array(array);
    return !PyArray_BASE(a) && PyArray_CHKFLAGS(a, NPY_ARRAY_OWNDATA | NPY_ARRAY_WRITEABLE);
}

}  // namespace pyop
