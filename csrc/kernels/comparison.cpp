// kernels/comparison.cpp: compute bools of numbers: < <= > >= == != and classes of floats.
#include <limits>  // std::numeric_limits

#include "kernels/answers.h"
#include "kernels/loops.h"

namespace pyop::PYOP_KERNEL_LEVEL {

namespace {

struct Less {
    template <class L>
    static auto of(typename L::V x, typename L::V y) {
        return L::less(x, y);
    }
};
struct LessEqual {
    template <class L>
    static auto of(typename L::V x, typename L::V y) {
        return L::less_equal(x, y);
    }
};
struct Equal {
    template <class L>
    static auto of(typename L::V x, typename L::V y) {
        return L::equal(x, y);
    }
};
struct NotEqual {
    template <class L>
    static auto of(typename L::V x, typename L::V y) {
        return L::not_equal(x, y);
    }
};
template <class F>
struct Swapped {
    template <class L>
    static auto of(typename L::V x, typename L::V y) {
        return F::template of<L>(y, x);
    }
};

// Of a bool only zero or not zero counts.
template <class F>
struct OfTruth {
    template <class L>
    static auto of(Byte x, Byte y) {
        return F::template of<L>(static_cast<Byte>(x != 0), static_cast<Byte>(y != 0));
    }
};

// Floats as bits: of the lower `kMantissa` bits the fraction, then the exponent, then the sign.
template <class T>
struct Bits;
template <>
struct Bits<float> {
    using Type = int32_t;
    static constexpr Type kInfinity = Type{0xff} << 23;
};
template <>
struct Bits<double> {
    using Type = int64_t;
    static constexpr Type kInfinity = Type{0x7ff} << 52;
};

// Without its sign.
template <class L, class T>
auto magnitude(typename L::V x) {
    return L::but(x, L::all(std::numeric_limits<typename Bits<T>::Type>::min()));
}

template <class T>
struct IsNan {
    template <class L>
    static auto of(typename L::V x) {
        return L::less(L::all(Bits<T>::kInfinity), magnitude<L, T>(x));
    }
};
template <class T>
struct IsInf {
    template <class L>
    static auto of(typename L::V x) {
        return L::equal(magnitude<L, T>(x), L::all(Bits<T>::kInfinity));
    }
};
template <class T>
struct IsFinite {
    template <class L>
    static auto of(typename L::V x) {
        return L::less(magnitude<L, T>(x), L::all(Bits<T>::kInfinity));
    }
};
template <class T>
struct SignBit {
    template <class L>
    static auto of(typename L::V x) {
        return L::less(x, L::all(0));
    }
};

template <class F>
Kernel compared(Element e) {
    switch (e) {
        case Element::Bool:
            return &answers_of_two<OfTruth<F>, Byte>;
        case Element::I8:
            return &answers_of_two<F, int8_t>;
        case Element::U8:
            return &answers_of_two<F, uint8_t>;
        case Element::I16:
            return &answers_of_two<F, int16_t>;
        case Element::U16:
            return &answers_of_two<F, uint16_t>;
        case Element::I32:
            return &answers_of_two<F, int32_t>;
        case Element::U32:
            return &answers_of_two<F, uint32_t>;
        case Element::I64:
            return &answers_of_two<F, int64_t>;
        case Element::U64:
            return &answers_of_two<F, uint64_t>;
        case Element::F32:
            return &answers_of_two<F, float>;
        case Element::F64:
            return &answers_of_two<F, double>;
        default:
            return nullptr;
    }
}

template <class F>
Kernel compared_with_number(Element e) {
    switch (e) {
        case Element::I8:
            return &answers_with_number<F, int8_t>;
        case Element::U8:
            return &answers_with_number<F, uint8_t>;
        case Element::I16:
            return &answers_with_number<F, int16_t>;
        case Element::U16:
            return &answers_with_number<F, uint16_t>;
        case Element::I32:
            return &answers_with_number<F, int32_t>;
        case Element::U32:
            return &answers_with_number<F, uint32_t>;
        case Element::I64:
            return &answers_with_number<F, int64_t>;
        case Element::U64:
            return &answers_with_number<F, uint64_t>;
        case Element::F32:
            return &answers_with_number<F, float>;
        case Element::F64:
            return &answers_with_number<F, double>;
        default:
            return nullptr;
    }
}

template <template <class> class F>
Kernel classified(Element e) {
    if (e == Element::F32) return &answers_of_one<F<float>, Bits<float>::Type>;
    if (e == Element::F64) return &answers_of_one<F<double>, Bits<double>::Type>;
    return nullptr;
}

}  // namespace

Kernel find_comparison(Operation op, Element e) {
    switch (op) {
        case Operation::Less:
            return compared<Less>(e);
        case Operation::LessEqual:
            return compared<LessEqual>(e);
        case Operation::Greater:
            return compared<Swapped<Less>>(e);
        case Operation::GreaterEqual:
            return compared<Swapped<LessEqual>>(e);
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

Kernel find_compared_with_number(Operation op, bool number_first, Element e) {
    switch (op) {
        case Operation::Less:
        case Operation::Greater:
            return number_first == (op == Operation::Less) ? compared_with_number<Swapped<Less>>(e)
                                                           : compared_with_number<Less>(e);
        case Operation::LessEqual:
        case Operation::GreaterEqual:
            return number_first == (op == Operation::LessEqual) ? compared_with_number<Swapped<LessEqual>>(e)
                                                                : compared_with_number<LessEqual>(e);
        case Operation::Equal:
            return compared_with_number<Equal>(e);
        case Operation::NotEqual:
            return compared_with_number<NotEqual>(e);
        default:
            return nullptr;
    }
}

}  // namespace pyop::PYOP_KERNEL_LEVEL
