// plan/group/strided_target.h: write the elements of a result into part of an array, block by block (StridedTarget).
#pragma once

#include <algorithm>
#include <cstring>

#include "array/numpy.h"

namespace pyop {

class StridedTarget {
  public:
    // False if its elements do not come one behind the other in memory, in C order.
    bool find(PyArrayObject* a) {
        data_ = PyArray_BYTES(a);
        itemsize_ = PyArray_ITEMSIZE(a);
        ndim_ = 0;
        for (int d = 0; d < PyArray_NDIM(a); ++d) {
            const npy_intp n = PyArray_DIM(a, d), stride = PyArray_STRIDE(a, d);
            if (n == 1) continue;
            if (ndim_ > 0 && strides_[ndim_ - 1] == stride * n) {
                dims_[ndim_ - 1] *= n;
            } else {
                if (ndim_ == kMostAxes) return false;
                dims_[ndim_++] = n;
            }
            strides_[ndim_ - 1] = stride;
        }
        npy_intp extent = itemsize_;
        for (int d = ndim_; d-- > 0; extent += (dims_[d] - 1) * strides_[d])
            if (strides_[d] < extent) return false;
        return ndim_ > 0;
    }

    bool found() const { return ndim_ > 0; }

    // Elements from `element` on, which lie side by side. Any thread.
    void write(npy_intp element, npy_intp count, const char* from) const {
        const int inner = ndim_ - 1;
        const npy_intp line = dims_[inner], stride = strides_[inner];
        npy_intp row = element / line, within = element % line;
        while (count > 0) {
            char* to = data_ + within * stride;
            npy_intp rest = row;
            for (int d = inner - 1; d > 0; rest /= dims_[d--]) to += rest % dims_[d] * strides_[d];
            if (inner > 0) to += rest * strides_[0];
            const npy_intp n = std::min(line - within, count);
            if (stride == itemsize_)
                std::memcpy(to, from, static_cast<size_t>(n * itemsize_));
            else if (itemsize_ == sizeof(double))
                for (npy_intp i = 0; i < n; ++i) std::memcpy(to + i * stride, from + i * 8, sizeof(double));
            else
                for (npy_intp i = 0; i < n; ++i)
                    std::memcpy(to + i * stride, from + i * itemsize_, static_cast<size_t>(itemsize_));
            from += n * itemsize_;
            count -= n;
            within = 0;
            ++row;
        }
    }

  private:
    static constexpr int kMostAxes = 4;  // that are not one with the next

    char* data_ = nullptr;
    npy_intp itemsize_ = 0;
    int ndim_ = 0;
    npy_intp dims_[kMostAxes], strides_[kMostAxes];
};

}  // namespace pyop
