// kernels/bits.cpp: compute logic of truth values and of bits, and shifts.
#include "kernels/loops.h"

namespace pyop::PYOP_KERNEL_LEVEL {

namespace {

struct And {
    template <class T>
    static T of(T x, T y) {
        return static_cast<T>(x & y);
    }
};
struct Or {
    template <class T>
    static T of(T x, T y) {
        return static_cast<T>(x | y);
    }
};
struct Xor {
    template <class T>
    static T of(T x, T y) {
        return static_cast<T>(x ^ y);
    }
};
struct Invert {
    template <class T>
    static T of(T x) {
        return static_cast<T>(~x);
    }
};
struct Not {
    static Byte of(Byte x) { return x == 0; }
};

// The same of bytes that are not zero, in fewest steps.
struct AndOfBytes {
    static Byte of(Byte x, Byte y) {
        const Byte both = x < y ? x : y;
        return both < 1 ? both : Byte{1};
    }
};
struct OrOfBytes {
    static Byte of(Byte x, Byte y) {
        const auto any = static_cast<Byte>(x | y);
        return any < 1 ? any : Byte{1};
    }
};

// The same of what is not zero; a NaN is not.
template <class F>
struct OfTruth {
    template <class T>
    static Byte of(T x, T y) {
        return F::of(static_cast<Byte>(x != T{0}), static_cast<Byte>(y != T{0}));
    }
};
struct NotOfTruth {
    template <class T>
    static Byte of(T x) {
        return x == T{0};
    }
};

// Shifts by all bits or more, or by a negative count, shift everything out.
template <class T>
constexpr T kWidth = static_cast<T>(8 * sizeof(T));

struct LeftShift {
    template <class T>
    static T of(T x, T y) {
        using U = std::make_unsigned_t<T>;
        const bool in_range = static_cast<U>(y) < static_cast<U>(kWidth<T>);
        const auto count = in_range ? static_cast<unsigned>(y) : 0u;
        return in_range ? static_cast<T>(static_cast<Wrapping<U>>(static_cast<U>(x)) << count) : T{0};
    }
};
struct RightShift {
    template <class T>
    static T of(T x, T y) {
        using U = std::make_unsigned_t<T>;
        const bool in_range = static_cast<U>(y) < static_cast<U>(kWidth<T>);
        return static_cast<T>(x >> (in_range ? static_cast<unsigned>(y) : static_cast<unsigned>(kWidth<T>) - 1)) *
               static_cast<T>(in_range || std::is_signed_v<T>);
    }
};

template <class F, class OfBytes = F>
Kernel of_truth(Element e) {
    switch (e) {
        case Element::Bool:
        case Element::I8:
        case Element::U8:
            return elementwise<OfBytes, uint8_t, Byte>();
        case Element::I16:
        case Element::U16:
            return elementwise<F, uint16_t, Byte>();
        case Element::I32:
        case Element::U32:
            return elementwise<F, uint32_t, Byte>();
        case Element::I64:
        case Element::U64:
            return elementwise<F, uint64_t, Byte>();
        case Element::F32:
            return elementwise<F, float, Byte>();
        case Element::F64:
            return elementwise<F, double, Byte>();
        default:
            return nullptr;
    }
}

}  // namespace

Kernel find_bits(Operation op, Element e) {
    const bool truth = e == Element::Bool;
    switch (op) {
        // NumPy's arithmetic on bools is logic.
        case Operation::Multiply:
        case Operation::Minimum:
        case Operation::LogicalAnd:
            if (truth || op == Operation::LogicalAnd) return of_truth<OfTruth<And>, AndOfBytes>(e);
            return nullptr;
        case Operation::Add:
        case Operation::Maximum:
        case Operation::LogicalOr:
            if (truth || op == Operation::LogicalOr) return of_truth<OfTruth<Or>, OrOfBytes>(e);
            return nullptr;
        case Operation::LogicalXor:
            return of_truth<OfTruth<Xor>>(e);
        case Operation::LogicalNot:
            return of_truth<NotOfTruth>(e);
        case Operation::BitwiseAnd:
            return truth ? of_truth<OfTruth<And>, AndOfBytes>(e) : for_bits<And>(e);
        case Operation::BitwiseOr:
            return truth ? of_truth<OfTruth<Or>, OrOfBytes>(e) : for_bits<Or>(e);
        case Operation::BitwiseXor:
            return truth ? of_truth<OfTruth<Xor>>(e) : for_bits<Xor>(e);
        case Operation::Invert:
            return truth ? elementwise<Not, Byte>() : for_bits<Invert>(e);
        case Operation::LeftShift:
            return for_integers<LeftShift>(e);
        case Operation::RightShift:
            return for_integers<RightShift>(e);
        default:
            return nullptr;
    }
}

}  // namespace pyop::PYOP_KERNEL_LEVEL
