// array/view/view_reshape.cpp: compute strides for another shape by NumPy's rules, or report that elements must move.
#include "array/view/view_reshape.h"

#include <algorithm>
#include <numeric>

namespace pyop {

namespace {

using Made = ViewOp::Made;

// The new shape as it is given, -1 where a size is to be worked out.
bool wanted_shape(const ViewOp& op, const ArrayView& in, ArrayView& out, const npy_intp* sizes) {
    if (op.kind == ViewOp::Ravel) {
        out.ndim = 1;
        out.dims[0] = -1;
        return true;
    }
    if (op.kind == ViewOp::Expand) {
        out.ndim = in.ndim + static_cast<int>(op.axes.size());
        size_t next = 0;
        for (int d = 0, old = 0; d < out.ndim; ++d) {
            const bool added = next < op.axes.size() && op.axes[next] == d;
            next += added;
            out.dims[d] = added ? 1 : in.dims[old++];
        }
        return true;
    }
    out.ndim = static_cast<int>(op.shape.size());
    for (int d = 0; d < out.ndim; ++d) {
        out.dims[d] = op.shape[static_cast<size_t>(d)].get(sizes);
        if (out.dims[d] < -1) return false;
    }
    return true;
}

// Works out the -1. False where the sizes do not agree.
bool settle(const ArrayView& in, ArrayView& out) {
    npy_intp known = 1;
    int open = -1;
    for (int d = 0; d < out.ndim; ++d) {
        if (out.dims[d] >= 0) {
            if (__builtin_mul_overflow(known, out.dims[d], &known)) return false;
        } else if (open >= 0) {
            return false;
        } else {
            open = d;
        }
    }
    const npy_intp size = in.size();
    if (open < 0) return known == size;
    if (known == 0 || size % known) return false;
    out.dims[open] = size / known;
    return true;
}

void fill_strides(ArrayView& out, bool fortran) {
    npy_intp stride = out.itemsize;
    for (int k = 0; k < out.ndim; ++k) {
        const int d = fortran ? k : out.ndim - 1 - k;
        out.strides[d] = stride;
        if (out.dims[d]) stride *= out.dims[d];
    }
}

// Strides for out.dims over elements that do not lie one after the other. Both shapes are walked together: as few axes
// as possible that hold the same number of elements are matched, and those of the array must be evenly spaced as if
// they were one. False where they are not. No size is zero.
bool regroup(const ArrayView& in, ArrayView& out, bool fortran) {
    int old_axes[NPY_MAXDIMS], n_old = 0;  // axes of size 1 say nothing of how elements lie
    for (int i = 0; i < in.ndim; ++i)
        if (in.dims[i] != 1) old_axes[n_old++] = i;

    int old_end = 0, new_end = 0;
    for (int old_begin = 0, new_begin = 0; old_begin < n_old && new_begin < out.ndim;
         old_begin = old_end, new_begin = new_end) {
        npy_intp in_old = in.dims[old_axes[old_end++]], in_new = out.dims[new_end++];
        while (in_old != in_new) {
            if (in_new < in_old)
                in_new *= out.dims[new_end++];
            else
                in_old *= in.dims[old_axes[old_end++]];
        }
        for (int k = old_begin; k + 1 < old_end; ++k) {
            const int outer = old_axes[fortran ? k + 1 : k], inner = old_axes[fortran ? k : k + 1];
            if (in.strides[outer] != in.dims[inner] * in.strides[inner]) return false;
        }
        if (fortran) {
            npy_intp stride = in.strides[old_axes[old_begin]];
            for (int d = new_begin; d < new_end; stride *= out.dims[d++]) out.strides[d] = stride;
        } else {
            npy_intp stride = in.strides[old_axes[old_end - 1]];
            for (int d = new_end - 1; d >= new_begin; stride *= out.dims[d--]) out.strides[d] = stride;
        }
    }
    // Axes of size 1 that are left over at the end.
    npy_intp last = new_end > 0 ? out.strides[new_end - 1] : in.itemsize;
    if (fortran && new_end > 0) last *= out.dims[new_end - 1];
    std::fill(out.strides + new_end, out.strides + out.ndim, last);
    return true;
}

}  // namespace

ViewOp::Made apply_reshape(const ViewOp& op, const ArrayView& in, ArrayView& out, const npy_intp* sizes) {
    if (!wanted_shape(op, in, out, sizes)) return Made::No;
    out.data = in.data;
    out.descr = in.descr;
    out.itemsize = in.itemsize;
    out.writeable = in.writeable;
    if (op.kind != ViewOp::Ravel && out.ndim == in.ndim && std::equal(in.dims, in.dims + in.ndim, out.dims)) {
        std::copy_n(in.strides, in.ndim, out.strides);
        return Made::View;
    }
    if (!settle(in, out)) return Made::No;
    if (in.contiguous(op.fortran)) {
        fill_strides(out, op.fortran);
        return Made::View;
    }
    if (op.kind == ViewOp::Ravel) return Made::Copies;  // also where even spacing would do
    return regroup(in, out, op.fortran) ? Made::View : Made::Copies;
}

}  // namespace pyop
