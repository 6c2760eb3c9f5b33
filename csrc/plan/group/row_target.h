// plan/group/row_target.h: place the rows of a result that is computed row by row (RowTarget).
//
//     what is read:   a row  gap  a row  gap  a row
//     result:         row --> its memory
//
// Nothing is computed between rows, and nothing copied out of a block.
#pragma once

#include "array/numpy.h"
#include "plan/group/lines.h"

namespace pyop {

class RowTarget {
  public:
    // False if the array, of so many dimensions, does not lie by the axes of the lines with its elements side by side.
    bool find(const Lines& lines, PyArrayObject* a) {
        const int ndim = PyArray_NDIM(a);
        int d = ndim;
        for (int axis = lines.ndim; axis-- > 0;) {
            npy_intp left = lines.shape[axis], next = 0;  // the stride that goes on with this axis
            strides_[axis] = 0;
            while (left > 1) {
                if (d == 0) return false;
                --d;
                const npy_intp n = PyArray_DIM(a, d), stride = PyArray_STRIDE(a, d);
                if (n == 1) continue;
                if (left % n != 0 || (next != 0 && stride != next)) return false;
                if (next == 0) strides_[axis] = stride;
                next = stride * n;
                left /= n;
            }
        }
        while (d > 0)
            if (PyArray_DIM(a, --d) != 1) return false;
        data_ = PyArray_BYTES(a);
        itemsize_ = PyArray_ITEMSIZE(a);
        inner_ = lines.ndim - 1;
        return strides_[inner_] == itemsize_ || lines.shape[inner_] == 1;
    }

    bool found() const { return data_ != nullptr; }

    // From a row to the next one.
    npy_intp pitch() const { return inner_ > 0 ? strides_[inner_ - 1] : 0; }

    char* at(const npy_intp* index, npy_intp within) const {
        char* to = data_ + within * itemsize_;
        for (int axis = 0; axis < inner_; ++axis) to += index[axis] * strides_[axis];
        return to;
    }

  private:
    char* data_ = nullptr;
    npy_intp itemsize_ = 0;
    int inner_ = 0;
    npy_intp strides_[NPY_MAXDIMS];
};

}  // namespace pyop
