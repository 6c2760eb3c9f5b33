// array/view/strided_walk.h: walk the elements of any array, by blocks, in C order of its broadcast shape.
#pragma once

#include <vector>

#include "array/numpy.h"

namespace pyop {

class StridedWalk {
  public:
    // `strides` in bytes, 0 where the array is repeated.
    StridedWalk(const char* data, int ndim, const npy_intp* dims, const npy_intp* strides, npy_intp itemsize);

    // Copies elements start … start + count - 1 to `to`, side by side. Any thread.
    void read(npy_intp start, npy_intp count, char* to) const;

    // From an element to the next, mostly.
    npy_intp inner_stride() const { return strides_.back(); }

    // The elements repeat after so many; 0 if they do not.
    npy_intp period() const { return period_; }

  private:
    const char* data_;
    npy_intp itemsize_;
    npy_intp period_ = 0;
    std::vector<npy_intp> dims_, strides_;  // axes that lie behind each other in memory are one
};

}  // namespace pyop
