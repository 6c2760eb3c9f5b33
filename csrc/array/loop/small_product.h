// array/loop/small_product.h: NumPy's matmul of small matrices by a kernel of pyop's.
//
// A call of BLAS for two matrices of 4 by 4 takes some 100 ns, ten times as long as its arithmetic. In which order that
// arithmetic goes BLAS chooses by sizes and strides, not by what the matrices hold: so whether a kernel gives the same
// bits, and raises the same flags, is tried once for each of these. That is so of finite results: where others come
// BLAS also raises flags for what it computes beside them, so then its loop is called.
#pragma once

#include "array/loop/strided_loop.h"
#include "kernels/kernel.h"

namespace pyop {

// For one call of matmul's loop with these sizes and strides (of StridedLoop::call_with_core). Null if there is no such
// kernel. Attached threads.
ProductKernel find_small_product(const StridedLoop& loop, const npy_intp* sizes, const npy_intp* strides);

// Whether that kernel has done it. A matrix by its own transpose NumPy multiplies in another way.
inline bool multiply_small(ProductKernel kernel, const npy_intp* sizes, const npy_intp* strides, char* const* data) {
    return data[0] != data[1] &&
           kernel({data[0], strides[3], strides[4], data[1], strides[5], strides[6], data[2], sizes[1], sizes[2]});
}

}  // namespace pyop
