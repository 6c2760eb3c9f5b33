// kernels/extremum.cpp: compute minimum and maximum.
//
// Of floats: a NaN wins over a number and the first NaN over the second; of equal numbers the second is taken, which
// tells zeros of different sign apart. That is what NumPy's loops do on x86 at every length and stride; on other
// processors they differ, and are used. fmin and fmax are always left to NumPy, whose answers for such operands depend
// on where in the array they stand.
#include "kernels/loops.h"
#include "kernels/quiet.h"

namespace pyop::PYOP_KERNEL_LEVEL {

namespace {

struct Minimum {
    template <class T>
    static T of(T x, T y) {
        return x < y ? x : y;
    }
};
struct Maximum {
    template <class T>
    static T of(T x, T y) {
        return x > y ? x : y;
    }
};

// Of floats, in vectors.
struct QuietMinimum {
    template <class L>
    static auto of(typename L::V x, typename L::V y) {
        return L::choose(L::any(L::less(x, y), L::is_nan(x)), x, y);
    }
};
struct QuietMaximum {
    template <class L>
    static auto of(typename L::V x, typename L::V y) {
        return L::choose(L::any(L::less(y, x), L::is_nan(x)), x, y);
    }
};

template <class F, class Quiet>
Kernel for_ordered(Element e) {
#ifdef PYOP_KERNEL_BELOW  // the level below has the same instructions for the others
    if (e == Element::I64) return elementwise<F, int64_t>();
    return e == Element::U64 ? elementwise<F, uint64_t>() : nullptr;
#else
#if defined(__x86_64__)
    if (e == Element::F32) return &quiet_binary<Quiet, float>;
    if (e == Element::F64) return &quiet_binary<Quiet, double>;
#endif
    return for_integers<F>(e);
#endif
}

}  // namespace

Kernel find_extremum(Operation op, Element e) {
    if (op == Operation::Minimum) return for_ordered<Minimum, QuietMinimum>(e);
    if (op == Operation::Maximum) return for_ordered<Maximum, QuietMaximum>(e);
    return nullptr;
}

}  // namespace pyop::PYOP_KERNEL_LEVEL
