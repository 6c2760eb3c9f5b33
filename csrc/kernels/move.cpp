// kernels/move.cpp: operands that are not contiguous, to and from blocks that are.
#include "kernels/loops.h"

namespace pyop::PYOP_KERNEL_LEVEL {

namespace {

// Elements of any alignment.
template <std::size_t size>
struct Item {
    char bytes[size];
};

// Four at a time, by hand: left alone, the compiler takes the processor's gather instructions, or strides that it has
// to multiply, for two to four times the time.
template <std::size_t size>
void copy(char* __restrict to, std::ptrdiff_t to_stride, const char* __restrict from, std::ptrdiff_t from_stride,
          std::ptrdiff_t n) {
    for (; n >= 4; n -= 4, to += 4 * to_stride, from += 4 * from_stride) {
        __builtin_memcpy(to, from, size);
        __builtin_memcpy(to + to_stride, from + from_stride, size);
        __builtin_memcpy(to + 2 * to_stride, from + 2 * from_stride, size);
        __builtin_memcpy(to + 3 * to_stride, from + 3 * from_stride, size);
    }
    for (; n > 0; --n, to += to_stride, from += from_stride) __builtin_memcpy(to, from, size);
}

template <std::size_t size>
void fill(char* to, const char* from, std::ptrdiff_t n) {
    Item<size> item;
    __builtin_memcpy(&item, from, size);
    for (std::ptrdiff_t i = 0; i < n; ++i) __builtin_memcpy(to + i * static_cast<std::ptrdiff_t>(size), &item, size);
}

template <std::size_t size>
void gather_items(char* to, const char* from, std::ptrdiff_t stride, std::ptrdiff_t n) {
    if (stride == 0) return fill<size>(to, from, n);
    copy<size>(to, static_cast<std::ptrdiff_t>(size), from, stride, n);
}

template <std::size_t size>
void scatter_items(char* to, std::ptrdiff_t stride, const char* from, std::ptrdiff_t n) {
    copy<size>(to, stride, from, static_cast<std::ptrdiff_t>(size), n);
}

}  // namespace

void gather(char* to, const char* from, std::ptrdiff_t stride, std::ptrdiff_t n, std::size_t itemsize) {
    if (n <= 0) return;
    if (stride == static_cast<std::ptrdiff_t>(itemsize)) {
        __builtin_memcpy(to, from, static_cast<std::size_t>(n) * itemsize);
        return;
    }
    switch (itemsize) {
        case 1:
            return gather_items<1>(to, from, stride, n);
        case 2:
            return gather_items<2>(to, from, stride, n);
        case 4:
            return gather_items<4>(to, from, stride, n);
        case 8:
            return gather_items<8>(to, from, stride, n);
        case 16:
            return gather_items<16>(to, from, stride, n);
        default:
            for (std::ptrdiff_t i = 0; i < n; ++i)
                __builtin_memcpy(to + i * static_cast<std::ptrdiff_t>(itemsize), from + i * stride, itemsize);
    }
}

void scatter(char* to, std::ptrdiff_t stride, const char* from, std::ptrdiff_t n, std::size_t itemsize) {
    if (n <= 0) return;
    if (stride == static_cast<std::ptrdiff_t>(itemsize)) {
        __builtin_memcpy(to, from, static_cast<std::size_t>(n) * itemsize);
        return;
    }
    switch (itemsize) {
        case 1:
            return scatter_items<1>(to, stride, from, n);
        case 2:
            return scatter_items<2>(to, stride, from, n);
        case 4:
            return scatter_items<4>(to, stride, from, n);
        case 8:
            return scatter_items<8>(to, stride, from, n);
        case 16:
            return scatter_items<16>(to, stride, from, n);
        default:
            for (std::ptrdiff_t i = 0; i < n; ++i)
                __builtin_memcpy(to + i * stride, from + i * static_cast<std::ptrdiff_t>(itemsize), itemsize);
    }
}

}  // namespace pyop::PYOP_KERNEL_LEVEL
