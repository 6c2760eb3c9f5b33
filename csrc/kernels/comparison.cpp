// kernels/comparison.cpp: what answers with a bool about numbers: < <= > >= == != and classes of floats.
#include "kernels/loops.h"
#include "kernels/quiet.h"

namespace pyop::PYOP_KERNEL_LEVEL {

namespace {

struct Less {
    template <class T>
    static Byte of(T x, T y) {
        return x < y;
    }
};
struct LessEqual {
    template <class T>
    static Byte of(T x, T y) {
        return x <= y;
    }
};
struct Equal {
    template <class T>
    static Byte of(T x, T y) {
        return x == y;
    }
};
struct NotEqual {
    template <class T>
    static Byte of(T x, T y) {
        return x != y;
    }
};
template <class F>
struct Swapped {
    template <class T>
    static Byte of(T x, T y) {
        return F::of(y, x);
    }
};

// Of floats, in vectors.
struct QuietLess {
    template <class L>
    static auto of(typename L::V x, typename L::V y) {
        return L::less(x, y);
    }
};
struct QuietLessEqual {
    template <class L>
    static auto of(typename L::V x, typename L::V y) {
        return L::less_equal(x, y);
    }
};
template <class F>
struct QuietSwapped {
    template <class L>
    static auto of(typename L::V x, typename L::V y) {
        return F::template of<L>(y, x);
    }
};

// Of a bool only zero or not zero counts.
template <class F>
struct OfTruth {
    static Byte of(Byte x, Byte y) { return F::of(static_cast<Byte>(x != 0), static_cast<Byte>(y != 0)); }
};

// Floats as bits: of the lower `kMantissa` bits the fraction, then the exponent, then the sign.
template <class T>
struct Bits;
template <>
struct Bits<float> {
    using Type = uint32_t;
    static constexpr Type kInfinity = Type{0xff} << 23;
    static constexpr Type kSign = Type{1} << 31;
};
template <>
struct Bits<double> {
    using Type = uint64_t;
    static constexpr Type kInfinity = Type{0x7ff} << 52;
    static constexpr Type kSign = Type{1} << 63;
};

template <class T>
struct IsNan {
    using B = Bits<T>;
    static Byte of(typename B::Type x) { return (x & ~B::kSign) > B::kInfinity; }
};
template <class T>
struct IsInf {
    using B = Bits<T>;
    static Byte of(typename B::Type x) { return (x & ~B::kSign) == B::kInfinity; }
};
template <class T>
struct IsFinite {
    using B = Bits<T>;
    static Byte of(typename B::Type x) { return (x & ~B::kSign) < B::kInfinity; }
};
template <class T>
struct SignBit {
    using B = Bits<T>;
    static Byte of(typename B::Type x) { return (x & B::kSign) != 0; }
};

template <class F>
Kernel compared_exactly(Element e) {
    switch (e) {
        case Element::Bool:
            return elementwise<OfTruth<F>, Byte>();
        case Element::I8:
            return elementwise<F, int8_t, Byte>();
        case Element::U8:
            return elementwise<F, uint8_t, Byte>();
        case Element::I16:
            return elementwise<F, int16_t, Byte>();
        case Element::U16:
            return elementwise<F, uint16_t, Byte>();
        case Element::I32:
            return elementwise<F, int32_t, Byte>();
        case Element::U32:
            return elementwise<F, uint32_t, Byte>();
        case Element::I64:
            return elementwise<F, int64_t, Byte>();
        case Element::U64:
            return elementwise<F, uint64_t, Byte>();
        default:
            return nullptr;
    }
}

template <class F, class Quiet>
Kernel ordered(Element e) {
    if (e == Element::F32) return &quiet_comparison<Quiet, float>;
    if (e == Element::F64) return &quiet_comparison<Quiet, double>;
    return compared_exactly<F>(e);
}

template <class F>
Kernel compared(Element e) {
    if (e == Element::F32) return elementwise<F, float, Byte>();
    if (e == Element::F64) return elementwise<F, double, Byte>();
    return compared_exactly<F>(e);
}

template <template <class> class F>
Kernel classified(Element e) {
    if (e == Element::F32) return elementwise<F<float>, uint32_t, Byte>();
    if (e == Element::F64) return elementwise<F<double>, uint64_t, Byte>();
    return nullptr;
}

}  // namespace

Kernel find_comparison(Operation op, Element e) {
    switch (op) {
        case Operation::Less:
            return ordered<Less, QuietLess>(e);
        case Operation::LessEqual:
            return ordered<LessEqual, QuietLessEqual>(e);
        case Operation::Greater:
            return ordered<Swapped<Less>, QuietSwapped<QuietLess>>(e);
        case Operation::GreaterEqual:
            return ordered<Swapped<LessEqual>, QuietSwapped<QuietLessEqual>>(e);
        case Operation::Equal:
            return compared<Equal>(e);
        case Operation::NotEqual:
            return compared<NotEqual>(e);
        case Operation::IsNan:
            return classified<IsNan>(e);
        case Operation::IsInf:
            return classified<IsInf>(e);
        case Operation::IsFinite:
            return classified<IsFinite>(e);
        case Operation::SignBit:
            return classified<SignBit>(e);
        default:
            return nullptr;
    }
}

}  // namespace pyop::PYOP_KERNEL_LEVEL
