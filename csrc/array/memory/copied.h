// array/memory/copied.h: count the bytes that were copied or converted, for profiles.
#pragma once

#include "array/numpy.h"
#include "runtime/meter.h"

namespace pyop {

// Hands `copy` on (null: an error), which was made from something else, if it is not that itself or a view of it.
PYOP_INLINE PyObject* counted(PyObject* copy) {
    if (profiling() && copy && uniquely_owned(copy) && PyArray_CHKFLAGS(as_array(copy), NPY_ARRAY_OWNDATA))
        meter.copied += static_cast<uint64_t>(PyArray_NBYTES(as_array(copy)));
    return copy;
}
PYOP_INLINE PyArrayObject* counted(PyArrayObject* copy) { return as_array(counted(as_object(copy))); }

// For PyArray_CopyInto(to, …): hands its status on.
PYOP_INLINE int counted(int status, PyArrayObject* to) {
    if (profiling() && status == 0) meter.copied += static_cast<uint64_t>(PyArray_NBYTES(to));
    return status;
}

}  // namespace pyop
