// plan/steps/copy_into.h: copy elements into a view unchanged.
#pragma once

#include <cstdint>
#include <cstring>

#include "array/view/view_recipe.h"

namespace pyop {

// Copies elements that lie `from_strides` apart into a view of as many; of other memory.
inline void copy_into(const ArrayView& to, const char* in, const npy_intp* from_strides) {
    const npy_intp n = to.size(), itemsize = to.itemsize;
    if (n == 0) return;
    const auto size = static_cast<size_t>(itemsize);
    const int last = to.ndim - 1;
    const npy_intp line = to.ndim ? to.dims[last] : 1;
    const npy_intp to_step = to.ndim ? to.strides[last] : 0, from_step = to.ndim ? from_strides[last] : 0;
    const bool whole = to_step == itemsize && from_step == itemsize;
    npy_intp at[NPY_MAXDIMS] = {};
    char* out = to.data;
    for (npy_intp done = 0; done < n; done += line) {
        if (whole) {
            std::memcpy(out, in, static_cast<size_t>(line) * size);
        } else if (from_step == 0 && to_step == itemsize && size == sizeof(double)) {
            uint64_t one;
            std::memcpy(&one, in, sizeof one);
            for (npy_intp i = 0; i < line; ++i) std::memcpy(out + i * 8, &one, sizeof one);
        } else if (size == sizeof(double)) {
            for (npy_intp i = 0; i < line; ++i) std::memcpy(out + i * to_step, in + i * from_step, sizeof(double));
        } else {
            for (npy_intp i = 0; i < line; ++i) std::memcpy(out + i * to_step, in + i * from_step, size);
        }
        for (int d = last - 1; d >= 0; --d) {
            out += to.strides[d];
            in += from_strides[d];
            if (++at[d] < to.dims[d]) break;
            out -= at[d] * to.strides[d];
            in -= at[d] * from_strides[d];
            at[d] = 0;
        }
    }
}

}  // namespace pyop
