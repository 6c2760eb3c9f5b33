// plan/group/lines.h: read slices of arrays of one shape as one stretch each (Lines).
//
//     a[1:-1, :-2] + a[1:-1, 2:]        a line  gap  a line  gap  a line
//
// Slices that have the same strides, in elements, can be read where they lie, from the first element to the last, with
// what lies between their lines: it is computed with, and left out where results are stored. So places are counted in
// the stretch, and elements in the result.
#pragma once

#include <algorithm>

#include "array/numpy.h"

namespace pyop {

struct Lines {
    int ndim = 0;                        // axes that follow each other without a gap are one
    npy_intp shape[NPY_MAXDIMS];
    npy_intp pitch[NPY_MAXDIMS];         // from one to the next along each axis, in elements; 1 along the last
    npy_intp places = 0;                 // of the whole stretch
    npy_intp elements = 0;

    // Whether strides in elements, over a shape, are those of lines in C order. Axes of one element have any stride.
    bool find(int n, const npy_intp* dims, const npy_intp* strides, npy_intp itemsize);
    // Whether another array of that shape lies by the same strides.
    bool same(int n, const npy_intp* dims, const npy_intp* strides, npy_intp itemsize) const;

    // Without gaps: places are elements.
    void of_shape(int n, const npy_intp* dims);

    // Calls f(place, element, count) for each part of a line among `count` places from `start` on.
    template <typename F>
    void each(npy_intp start, npy_intp count, F f) const {
        each_run(start, count,
                 [&](npy_intp place, npy_intp element, npy_intp n, const npy_intp*, npy_intp, npy_intp alike) {
                     for (; alike-- > 0; place += pitch[std::max(ndim - 2, 0)], element += n) f(place, element, n);
                 });
    }

    // Calls f(place, element, count, at, within, alike): `at` is the position of the line along all axes but the last,
    // and `within` that of the first element in the line. So many lines are `alike`: this one and, if it is whole,
    // those that follow it along the axis before the last, whole too.
    template <typename F>
    void each_run(npy_intp start, npy_intp count, F f) const {
        const npy_intp end = start + count, length = shape[ndim - 1];
        npy_intp at[NPY_MAXDIMS + 1], place = 0, element = 0, rest = start;
        // The line in which `start` lies, or behind which.
        for (int d = 0; d + 1 < ndim; ++d) {
            at[d] = std::min(rest / pitch[d], shape[d] - 1);
            rest -= at[d] * pitch[d];
            place += at[d] * pitch[d];
            element = element * shape[d] + at[d];
        }
        element *= length;
        while (place < end) {
            const npy_intp from = std::max(place, start), to = std::min(place + length, end);
            int d = ndim - 2;
            npy_intp alike = 1;
            if (d >= 0 && from == place && to == place + length)
                alike = std::min(shape[d] - at[d], (end - to) / pitch[d] + 1);
            if (from < to) f(from, element + from - place, to - from, at, from - place, alike);
            element += alike * length;
            for (; d >= 0; --d, alike = 1) {
                place += alike * pitch[d];
                if ((at[d] += alike) < shape[d]) break;
                place -= at[d] * pitch[d];
                at[d] = 0;
            }
            if (d < 0) return;
        }
    }
};

}  // namespace pyop
