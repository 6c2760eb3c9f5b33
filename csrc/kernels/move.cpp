// kernels/move.cpp: move operands that are not contiguous to and from blocks that are.
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

// `of_size` with the size as a template's argument, or `any` where it is none of the common ones.
template <class OfSize, class Any>
void by_itemsize(std::size_t itemsize, OfSize of_size, Any any) {
    switch (itemsize) {
        case 1:
            return of_size.template operator()<1>();
        case 2:
            return of_size.template operator()<2>();
        case 4:
            return of_size.template operator()<4>();
        case 8:
            return of_size.template operator()<8>();
        case 16:
            return of_size.template operator()<16>();
        default:
            return any();
    }
}

}  // namespace

void gather(char* to, const char* from, std::ptrdiff_t stride, std::ptrdiff_t n, std::size_t itemsize) {
    if (n <= 0) return;
    const auto step = static_cast<std::ptrdiff_t>(itemsize);
    if (stride == step) {
        __builtin_memcpy(to, from, static_cast<std::size_t>(n) * itemsize);
        return;
    }
    by_itemsize(
        itemsize,
        [&]<std::size_t size>() {
            if (stride == 0) return fill<size>(to, from, n);
            copy<size>(to, static_cast<std::ptrdiff_t>(size), from, stride, n);
        },
        [&] {
            for (std::ptrdiff_t i = 0; i < n; ++i) __builtin_memcpy(to + i * step, from + i * stride, itemsize);
        });
}

void scatter(char* to, std::ptrdiff_t stride, const char* from, std::ptrdiff_t n, std::size_t itemsize) {
    if (n <= 0) return;
    const auto step = static_cast<std::ptrdiff_t>(itemsize);
    if (stride == step) {
        __builtin_memcpy(to, from, static_cast<std::size_t>(n) * itemsize);
        return;
    }
    by_itemsize(
        itemsize, [&]<std::size_t size>() { copy<size>(to, stride, from, static_cast<std::ptrdiff_t>(size), n); },
        [&] {
            for (std::ptrdiff_t i = 0; i < n; ++i) __builtin_memcpy(to + i * stride, from + i * step, itemsize);
        });
}

}  // namespace pyop::PYOP_KERNEL_LEVEL
