// plan/group/lines.cpp: find which strides are those of lines.
#include "plan/group/lines.h"

namespace pyop {

bool Lines::find(int n, const npy_intp* dims, const npy_intp* strides, npy_intp itemsize) {
    ndim = 0;
    elements = 1;
    places = 1;
    npy_intp below = 0;  // the places that what is behind an axis takes
    for (int d = 0; d < n; ++d) {
        if (dims[d] == 1) continue;
        if (strides[d] <= 0 || strides[d] % itemsize != 0) return false;
        const npy_intp step = strides[d] / itemsize;
        if (ndim > 0 && pitch[ndim - 1] == step * dims[d]) {
            shape[ndim - 1] *= dims[d];
            pitch[ndim - 1] = step;
        } else {
            shape[ndim] = dims[d];
            pitch[ndim++] = step;
        }
        elements *= dims[d];
        places += (dims[d] - 1) * step;
    }
    for (int d = ndim; d-- > 0;) {
        if (pitch[d] < std::max<npy_intp>(below, 1)) return false;
        below = (shape[d] - 1) * pitch[d] + std::max<npy_intp>(below, 1);
    }
    return ndim > 1 && pitch[ndim - 1] == 1;
}

void Lines::of_shape(int n, const npy_intp* dims) {
    ndim = 0;
    elements = 1;
    for (int d = 0; d < n; ++d) {
        if (dims[d] != 1) shape[ndim++] = dims[d];
        elements *= dims[d];
    }
    if (ndim == 0) shape[ndim++] = 1;
    places = elements;
    npy_intp step = 1;
    for (int d = ndim; d-- > 0; step *= shape[d]) pitch[d] = step;
}

bool Lines::same(int n, const npy_intp* dims, const npy_intp* strides, npy_intp itemsize) const {
    Lines other;
    return other.find(n, dims, strides, itemsize) && other.ndim == ndim &&
           std::equal(shape, shape + ndim, other.shape) && std::equal(pitch, pitch + ndim, other.pitch);
}

}  // namespace pyop
