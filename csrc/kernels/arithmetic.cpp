// kernels/arithmetic.cpp: compute + - * / and functions of one number.
#include "kernels/loops.h"
#include "kernels/quiet.h"

namespace pyop::PYOP_KERNEL_LEVEL {

namespace {

struct Add {
    template <class T>
    static T of(T x, T y) {
        return static_cast<T>(Wrapping<T>(x) + Wrapping<T>(y));
    }
};
struct Subtract {
    template <class T>
    static T of(T x, T y) {
        return static_cast<T>(Wrapping<T>(x) - Wrapping<T>(y));
    }
};
struct Multiply {
    template <class T>
    static T of(T x, T y) {
        return static_cast<T>(Wrapping<T>(x) * Wrapping<T>(y));
    }
};
struct Divide {
    template <class T>
    static T of(T x, T y) {
        return x / y;
    }
};
struct Square {
    template <class T>
    static T of(T x) {
        return Multiply::of(x, x);
    }
};
struct Reciprocal {
    template <class T>
    static T of(T x) {
        return T{1} / x;
    }
};
struct Copy {
    template <class T>
    static T of(T x) {
        return x;
    }
};
// Of floats: the sign bit, also of a NaN.
struct Negative {
    static float of(float x) { return -x; }
    static double of(double x) { return -x; }
    template <class T>
    static T of(T x) {
        return static_cast<T>(Wrapping<T>{0} - Wrapping<T>(x));
    }
};
struct Absolute {
    static float of(float x) { return __builtin_fabsf(x); }
    static double of(double x) { return __builtin_fabs(x); }
    template <class T>
    static T of(T x) {
        if constexpr (std::is_signed_v<T>) {
            using U = std::make_unsigned_t<T>;
            return static_cast<T>(x < 0 ? Negative::of(static_cast<U>(x)) : static_cast<U>(x));
        }
        return x;
    }
};
struct Sqrt {
    static float of(float x) { return __builtin_sqrtf(x); }
    static double of(double x) { return __builtin_sqrt(x); }
};
struct Copysign {
    static float of(float x, float y) { return __builtin_copysignf(x, y); }
    static double of(double x, double y) { return __builtin_copysign(x, y); }
};
struct Sign {
    template <class T>
    static T of(T x) {
        return static_cast<T>((x > 0) - (x < 0));
    }
};
// Of a NaN: itself.
struct QuietSign {
    template <class L>
    static auto of(typename L::V x) {
        const auto zero = L::all(0), sign = L::choose(L::less(x, zero), L::all(-1), zero);
        return L::choose(L::is_nan(x), x, L::choose(L::less(zero, x), L::all(1), sign));
    }
};

// Add, subtract and the like: integers as bits, complex numbers as two floats.
template <class F>
Kernel for_numbers(Element e) {
    return either(either(for_floats<F>(e), for_bits<F>(e)), for_complex_parts<F>(e));
}

}  // namespace

Kernel find_arithmetic(Operation op, Element e) {
    switch (op) {
        // The product of complex numbers is left to NumPy, whose rounding depends on the processor.
        case Operation::Multiply:
            return either(for_floats<Multiply>(e), for_bits<Multiply>(e));
        case Operation::Absolute:
            return e == Element::Bool ? elementwise<Copy, Byte>()
                                      : either(for_floats<Absolute>(e), for_integers<Absolute>(e));
        case Operation::Sign:
            if (e == Element::F32) return &quiet_unary<QuietSign, float>;
            if (e == Element::F64) return &quiet_unary<QuietSign, double>;
            return for_integers<Sign>(e);
        case Operation::Square:
            return either(for_floats<Square>(e), for_bits<Square>(e));
        case Operation::Copysign:
            return for_floats<Copysign>(e);
#ifndef PYOP_KERNEL_BELOW  // where there is a level below, it has the same instructions for these
        case Operation::Add:
            return for_numbers<Add>(e);
        case Operation::Subtract:
            return for_numbers<Subtract>(e);
        case Operation::Divide:
            return for_floats<Divide>(e);
        case Operation::Negative:
            return for_numbers<Negative>(e);
        case Operation::Positive:
            return for_numbers<Copy>(e);
        case Operation::Sqrt:
            return for_floats<Sqrt>(e);
        case Operation::Reciprocal:
            return for_floats<Reciprocal>(e);
#endif
        default:
            return nullptr;
    }
}

}  // namespace pyop::PYOP_KERNEL_LEVEL
