// plan/steps/fill_items.h: fill memory with one element.
#pragma once

#include <algorithm>
#include <cstring>

#include "array/numpy.h"

namespace pyop {

inline constexpr npy_intp kDetachedFill = 1 << 18;  // bytes from which on other threads may run meanwhile

inline void fill_items(char* to, npy_intp bytes, const char* item, npy_intp itemsize) {
    if (std::all_of(item, item + itemsize, [](char c) { return c == 0; })) {
        std::memset(to, 0, static_cast<size_t>(bytes));
        return;
    }
    // A first block by items, and the rest from that.
    npy_intp done = 0;
    for (const npy_intp first = std::min<npy_intp>(bytes, 256 * itemsize); done < first; done += itemsize)
        std::memcpy(to + done, item, static_cast<size_t>(itemsize));
    while (done < bytes) {
        const npy_intp more = std::min<npy_intp>({done, bytes - done, npy_intp{1} << 14});
        std::memcpy(to + done, to, static_cast<size_t>(more));
        done += more;
    }
}

}  // namespace pyop
