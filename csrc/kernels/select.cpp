// kernels/select.cpp: where(condition, x, y), for elements of any meaning.
#include "kernels/loops.h"

namespace pyop::PYOP_KERNEL_LEVEL {

namespace {

// Both are read always: values are moved as bits, which raises no flag.
template <class T>
void where(char* const* data, std::ptrdiff_t n) {
    const Byte* condition = in<Byte>(data, 0);
    const T *x = in<T>(data, 1), *y = in<T>(data, 2);
    T* to = out<T>(data, 3);
    PYOP_INDEPENDENT
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        const T a = x[i], b = y[i];
        to[i] = condition[i] != 0 ? a : b;
    }
}

struct Pair {
    uint64_t real, imaginary;
};

}  // namespace

Kernel find_select(Operation op, Element e) {
    if (op != Operation::Where) return nullptr;
    switch (size_of(e)) {
        case 1:
            return &where<uint8_t>;
        case 2:
            return &where<uint16_t>;
        case 4:
            return &where<uint32_t>;
        case 8:
            return &where<uint64_t>;
        case 16:
            return &where<Pair>;
        default:
            return nullptr;
    }
}

}  // namespace pyop::PYOP_KERNEL_LEVEL
