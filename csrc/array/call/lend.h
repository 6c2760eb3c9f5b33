// array/call/lend.h: hand an array to a function so that it can read but not write.
//
// A read-only array is lent as it is. For a writable one the function gets a read-only view. Views are
// recycled: when the call is over and nobody kept the view, its ndarray object goes to a small stack per
// rank and is pointed at other memory next time, which costs a few nanoseconds where NumPy's constructor
// costs thirty. A view that anybody kept (a reference, a weak reference, a buffer export) is theirs: it is
// an ordinary view that owns a reference to the array, so keeping an argument is always safe.
//
// Threads: attached only; the stacks are guarded by the GIL.
#pragma once

#include "array/numpy.h"

namespace pyop {

// A new reference to a read-only view of the writable array `a`; nullptr with the error set.
PyArrayObject* lend_view_new(PyArrayObject* a);

// Takes back a view from lend_view_new, stealing the reference.
void lend_return_steal(PyArrayObject* view);

// The same for memory that is no array's: a recycled object of this rank to be filled, or null if there is none.
inline constexpr int kMostSpareRank = 4;
PyArrayObject* take_spare(int ndim);
// Makes it show read-only memory that `base` keeps. Steals `descr` and `base`.
void fill_spare(PyArrayObject* spare, void* data, const npy_intp* dims, const npy_intp* strides, PyArray_Descr* descr,
                PyObject* base);

// Whether a lent view still shows what `a` is: the function may have assigned its shape or dtype.
PYOP_INLINE bool lend_unchanged(PyArrayObject* view, PyArrayObject* a) {
    if (PyArray_BASE(view) != as_object(a) || PyArray_DATA(view) != PyArray_DATA(a) ||
        PyArray_DESCR(view) != PyArray_DESCR(a) || PyArray_NDIM(view) != PyArray_NDIM(a))
        return false;
    if (PyArray_NDIM(a) == 1)  // most are; a loop takes longer to begin than to run
        return PyArray_DIMS(view)[0] == PyArray_DIMS(a)[0] && PyArray_STRIDES(view)[0] == PyArray_STRIDES(a)[0];
    for (int k = 0; k < PyArray_NDIM(a); ++k)
        if (PyArray_DIM(view, k) != PyArray_DIM(a, k) || PyArray_STRIDE(view, k) != PyArray_STRIDE(a, k)) return false;
    return true;
}

// What one call has lent: borrowed pointers for read-only arrays, owned views for the others.
struct Loan {
    PyObject* object;  // what the function gets
    bool owned;        // a view to take back
};

PYOP_INLINE Loan lend(PyArrayObject* a) {
    if (!(PyArray_FLAGS(a) & NPY_ARRAY_WRITEABLE)) return {as_object(a), false};
    return {as_object(lend_view_new(a)), true};
}

// A read-only array over the same memory, for values that outlive a call (constants, folded results):
// `a` itself if it is read-only already. Steals `a`.
PyArrayObject* freeze_steal(PyArrayObject* a);

}  // namespace pyop
