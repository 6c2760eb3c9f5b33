// array/view/strided_walk.cpp: read a stretch of elements, as many at once as are evenly spaced.
//
// Short lines (three coordinates of many points, and a number for each point beside them) are read many at a time: a
// call of gather() for each would take longer than what is computed with them.
#include "array/view/strided_walk.h"

#include <algorithm>
#include <cstring>

#include "array/view/known_length.h"
#include "kernels/kernel.h"
#include "runtime/stack_array.h"

namespace pyop {

namespace {

constexpr npy_intp kShortLine = 16;  // elements, at most

// `length` if it is known while compiling, else 0.
template <size_t itemsize, npy_intp known>
void read_lines(char* to, const char* from, npy_intp pitch, npy_intp lines, npy_intp stride, npy_intp length) {
    const npy_intp n = known ? known : length;
    for (; lines > 0; --lines, from += pitch, to += n * static_cast<npy_intp>(itemsize)) {
        for (npy_intp i = 0; i < n; ++i)
            std::memcpy(to + i * static_cast<npy_intp>(itemsize), from + i * stride, itemsize);
    }
}

template <size_t itemsize>
void read_lines_of(char* to, const char* from, npy_intp pitch, npy_intp lines, npy_intp stride, npy_intp length) {
    with_known_length(length, [&](auto known) { read_lines<itemsize, known>(to, from, pitch, lines, stride, length); });
}

// Whether elements of that size can be read so.
bool read_short_lines(char* to, const char* from, npy_intp pitch, npy_intp lines, npy_intp stride, npy_intp length,
                      npy_intp itemsize) {
    switch (itemsize) {
        case 1:
            return read_lines_of<1>(to, from, pitch, lines, stride, length), true;
        case 2:
            return read_lines_of<2>(to, from, pitch, lines, stride, length), true;
        case 4:
            return read_lines_of<4>(to, from, pitch, lines, stride, length), true;
        case 8:
            return read_lines_of<8>(to, from, pitch, lines, stride, length), true;
        case 16:
            return read_lines_of<16>(to, from, pitch, lines, stride, length), true;
        default:
            return false;
    }
}

}  // namespace

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
    const npy_intp length = dims_[inner];
    while (count > 0) {
        const npy_intp run = std::min(count, length - index[inner]);
        npy_intp lines = 1;
        if (inner > 0 && run == length && length <= kShortLine)
            lines = std::min(count / length, dims_[inner - 1] - index[inner - 1]);
        if (lines == 1 || !read_short_lines(to, from, strides_[inner - 1], lines, strides_[inner], length, itemsize_)) {
            lines = 1;
            gather(to, from, strides_[inner], run, static_cast<size_t>(itemsize_));
        }
        to += lines * run * itemsize_;
        count -= lines * run;
        from -= index[inner] * strides_[inner];
        index[inner] = 0;
        for (size_t d = inner; d-- > 0; lines = 1) {
            from += lines * strides_[d];
            if ((index[d] += lines) < dims_[d]) break;
            from -= dims_[d] * strides_[d];
            index[d] = 0;
        }
    }
}

}  // namespace pyop
