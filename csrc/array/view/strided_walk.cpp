// array/view/strided_walk.cpp: reads a stretch of elements, as many at once as lie evenly.
#include "array/view/strided_walk.h"

#include <algorithm>

#include "kernels/kernel.h"
#include "runtime/stack_array.h"

namespace pyop {

StridedWalk::StridedWalk(const char* data, int ndim, const npy_intp* dims, const npy_intp* strides, npy_intp itemsize)
    : data_(data), itemsize_(itemsize) {
    for (int d = 0; d < ndim; ++d) {
        if (dims[d] == 1) continue;
        if (!dims_.empty() && strides_.back() == strides[d] * dims[d]) {
            dims_.back() *= dims[d];
            strides_.back() = strides[d];
        } else {
            dims_.push_back(dims[d]);
            strides_.push_back(strides[d]);
        }
    }
    if (dims_.empty()) {
        dims_.push_back(1);
        strides_.push_back(0);
    }
    if (strides_[0] == 0) {
        period_ = 1;
        for (size_t d = 1; d < dims_.size(); ++d) period_ *= dims_[d];
    }
}

void StridedWalk::read(npy_intp start, npy_intp count, char* to) const {
    const size_t inner = dims_.size() - 1;
    StackArray<npy_intp, 8> index(dims_.size());
    const char* from = data_;
    for (size_t d = dims_.size(); d-- > 0; start /= dims_[d]) {
        index[d] = start % dims_[d];
        from += index[d] * strides_[d];
    }
    while (count > 0) {
        const npy_intp run = std::min(count, dims_[inner] - index[inner]);
        gather(to, from, strides_[inner], run, static_cast<size_t>(itemsize_));
        to += run * itemsize_;
        count -= run;
        from -= index[inner] * strides_[inner];
        index[inner] = 0;
        for (size_t d = inner; d-- > 0;) {
            from += strides_[d];
            if (++index[d] < dims_[d]) break;
            from -= dims_[d] * strides_[d];
            index[d] = 0;
        }
    }
}

}  // namespace pyop
