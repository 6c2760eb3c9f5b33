// array/memory/overlap.h: test whether two arrays may share memory, by the bounds of their memory: "no" is certain.
#pragma once

#include "array/numpy.h"

namespace pyop {

struct MemoryBounds {
    const char *low, *high;
};

inline MemoryBounds memory_bounds(PyArrayObject* a) {
    MemoryBounds m{PyArray_BYTES(a), PyArray_BYTES(a) + PyArray_ITEMSIZE(a)};
    for (int d = 0; d < PyArray_NDIM(a); ++d) {
        if (PyArray_DIM(a, d) == 0) return {m.low, m.low};
        const npy_intp extent = (PyArray_DIM(a, d) - 1) * PyArray_STRIDE(a, d);
        (extent < 0 ? m.low : m.high) += extent;
    }
    return m;
}

inline bool may_overlap(PyArrayObject* a, PyArrayObject* b) {
    const MemoryBounds x = memory_bounds(a), y = memory_bounds(b);
    return x.low < y.high && y.low < x.high;
}

}  // namespace pyop
