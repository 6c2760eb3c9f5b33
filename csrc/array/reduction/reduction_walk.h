// array/reduction/reduction_walk.h: visit the elements to reduce in NumPy's order (ReductionWalk).
//
// Sums depend on the order. NumPy's iterator sorts the axes by stride, joins those that lie behind each other in
// memory, and lays the result out in the order of the axes that are left; so does this.
#pragma once

#include "array/numpy.h"

namespace pyop {

struct ReductionWalk {
    static constexpr int kMaxDims = 8;

    // `axes`: bit d is set if axis d is reduced. False for too many dimensions, or none.
    bool plan(PyArrayObject* a, uint32_t axes, bool keepdims, npy_intp result_itemsize);

    // Innermost first. The stride of the result is 0 along reduced axes.
    int ndim;
    npy_intp dims[kMaxDims], in_strides[kMaxDims], out_strides[kMaxDims];
    npy_intp size;            // elements visited
    // The result array.
    int result_ndim;
    npy_intp result_dims[kMaxDims], result_strides[kMaxDims];
    npy_intp result_size;
};

}  // namespace pyop
