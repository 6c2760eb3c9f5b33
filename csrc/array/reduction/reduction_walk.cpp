// array/reduction/reduction_walk.cpp: sort and join axes as NumPy's iterator does.
#include "array/reduction/reduction_walk.h"

#include <cstdlib>

namespace pyop {

namespace {

// Whether axis `b`, which lies outside of `a` so far, belongs inside of it. Axes along which nothing moves go with
// their neighbours: -1, not to be told.
int belongs_inside(npy_intp stride_b, npy_intp stride_a) {
    if (stride_a == 0 || stride_b == 0) return -1;
    return std::abs(stride_a) > std::abs(stride_b);
}

// Stable insertion sort of axes, last axis first, by stride; what is not to be told does not stop an axis.
void sort_axes(int* order, int n, const npy_intp* strides) {
    for (int i = 1; i < n; ++i) {
        const int axis = order[i];
        int place = i;
        for (int k = i - 1; k >= 0; --k) {
            const int inside = belongs_inside(strides[axis], strides[order[k]]);
            if (inside == 1)
                place = k;
            else if (inside == 0)
                break;
        }
        for (int k = i; k > place; --k) order[k] = order[k - 1];
        order[place] = axis;
    }
}

}  // namespace

bool ReductionWalk::plan(PyArrayObject* a, uint32_t axes, bool keepdims, npy_intp result_itemsize) {
    const int n = PyArray_NDIM(a);
    if (n < 1 || n > kMaxDims) return false;
    npy_intp strides[kMaxDims], to_result[kMaxDims];
    int order[kMaxDims], result_axis[kMaxDims];
    result_ndim = 0;
    size = result_size = 1;
    for (int d = 0; d < n; ++d) {
        const npy_intp dim = PyArray_DIM(a, d);
        const bool reduced = axes >> d & 1;
        strides[d] = dim == 1 ? 0 : PyArray_STRIDE(a, d);
        order[d] = n - 1 - d;
        size *= dim;
        result_axis[d] = result_ndim;
        if (reduced && !keepdims) continue;
        result_dims[result_ndim++] = reduced ? 1 : dim;
        if (!reduced) result_size *= dim;
    }
    if (n > 1) sort_axes(order, n, strides);

    npy_intp step = result_itemsize;
    for (int k = 0; k < n; ++k) {
        const int d = order[k];
        const bool reduced = axes >> d & 1;
        to_result[d] = reduced || PyArray_DIM(a, d) == 1 ? 0 : step;
        if (reduced) continue;
        result_strides[result_axis[d]] = step;
        step *= PyArray_DIM(a, d);
    }
    // Axes that keepdims keeps have one element, wherever their stride may lead.
    for (int d = 0; keepdims && d < n; ++d)
        if (axes >> d & 1) result_strides[result_axis[d]] = step;

    ndim = 0;
    for (int k = 0; k < n; ++k) {
        const int d = order[k];
        const npy_intp dim = PyArray_DIM(a, d);
        if (ndim > 0) {
            npy_intp& last = dims[ndim - 1];
            npy_intp &in = in_strides[ndim - 1], &out = out_strides[ndim - 1];
            const auto joins = [&](npy_intp inner, npy_intp outer) {
                return (last == 1 && inner == 0) || (dim == 1 && outer == 0) || inner * last == outer;
            };
            if (joins(in, strides[d]) && joins(out, to_result[d])) {
                last *= dim;
                if (in == 0) in = strides[d];
                if (out == 0) out = to_result[d];
                continue;
            }
        }
        dims[ndim] = dim;
        in_strides[ndim] = strides[d];
        out_strides[ndim++] = to_result[d];
    }
    return true;
}

}  // namespace pyop
