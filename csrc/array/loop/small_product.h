// array/loop/small_product.h: compute NumPy's matmul of small matrices by a kernel of pyop's.
//
// A call of BLAS for two matrices of 4 by 4 takes some 100 ns, ten times as long as its arithmetic. In which order that
// arithmetic goes BLAS chooses by sizes and strides, not by what the matrices hold: so whether a kernel gives the same
// bits, and raises the same flags, is tried once for each of these. That is so of finite results: where others come
// BLAS also raises flags for what it computes beside them, so then its loop is called.
#pragma once

#include "array/loop/strided_loop.h"
#include "kernels/kernel.h"

namespace pyop {

// `sizes`: rows, inner, columns; `strides`: of the two operands and the result along their core dimensions. Null if
// there is no such kernel. Attached threads.
ProductKernel find_small_product(const StridedLoop& loop, const npy_intp* sizes, const npy_intp* strides);

// Whether that kernel has done it. A matrix by its own transpose NumPy multiplies in another way. Any thread.
inline bool multiply_small(ProductKernel kernel, const npy_intp* sizes, const npy_intp* strides, char* const* data) {
    return data[0] != data[1] &&
           kernel({data[0], strides[0], strides[1], data[1], strides[2], strides[3], data[2], sizes[0], sizes[1]});
}

}  // namespace pyop
