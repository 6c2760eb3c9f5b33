// kernels/rounding.cpp: compute floor, ceil, trunc and rint.
//
// Compiled without trapping semantics, or g++ makes no vectors of them: it fears for flags of denormals, which these
// instructions do not raise.
#include "kernels/loops.h"

namespace pyop::PYOP_KERNEL_LEVEL {

namespace {

struct Floor {
    static float of(float x) { return __builtin_floorf(x); }
    static double of(double x) { return __builtin_floor(x); }
};
struct Ceil {
    static float of(float x) { return __builtin_ceilf(x); }
    static double of(double x) { return __builtin_ceil(x); }
};
struct Trunc {
    static float of(float x) { return __builtin_truncf(x); }
    static double of(double x) { return __builtin_trunc(x); }
};
struct Rint {
    static float of(float x) { return __builtin_rintf(x); }
    static double of(double x) { return __builtin_rint(x); }
};

}  // namespace

Kernel find_rounding(Operation op, Element e) {
    switch (op) {
        case Operation::Floor:
            return for_floats<Floor>(e);
        case Operation::Ceil:
            return for_floats<Ceil>(e);
        case Operation::Trunc:
            return for_floats<Trunc>(e);
        case Operation::Rint:
            return for_floats<Rint>(e);
        default:
            return nullptr;
    }
}

}  // namespace pyop::PYOP_KERNEL_LEVEL
