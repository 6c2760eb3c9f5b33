// kernels/cast.cpp: convert from one element type to another, as NumPy's safe and same-kind casts.
#include "kernels/loops.h"

namespace pyop::PYOP_KERNEL_LEVEL {

namespace {

// How elements are held, and of what kind they are in NumPy's order bool < integer < float < complex.
template <Element e>
struct Held;
#define PYOP_HELD(element, type, k)    \
    template <>                        \
    struct Held<Element::element> {    \
        using Type = type;             \
        static constexpr int kind = k; \
    };
PYOP_HELD(Bool, Byte, 0)
PYOP_HELD(I8, int8_t, 1)
PYOP_HELD(U8, uint8_t, 1)
PYOP_HELD(I16, int16_t, 1)
PYOP_HELD(U16, uint16_t, 1)
PYOP_HELD(I32, int32_t, 1)
PYOP_HELD(U32, uint32_t, 1)
PYOP_HELD(I64, int64_t, 1)
PYOP_HELD(U64, uint64_t, 1)
PYOP_HELD(F32, float, 2)
PYOP_HELD(F64, double, 2)
PYOP_HELD(C64, float, 3)
PYOP_HELD(C128, double, 3)
#undef PYOP_HELD

// Of a bool only zero or not zero counts.
template <Element from, Element to>
typename Held<to>::Type converted(typename Held<from>::Type x) {
    if constexpr (from == Element::Bool && to != Element::Bool) return static_cast<typename Held<to>::Type>(x != 0);
    return static_cast<typename Held<to>::Type>(x);
}

template <Element from, Element to>
void convert(char* const* data, std::ptrdiff_t n) {
    const auto* x = in<typename Held<from>::Type>(data, 0);
    auto* written = out<typename Held<to>::Type>(data, 1);
    PYOP_INDEPENDENT
    for (std::ptrdiff_t i = 0; i < n; ++i) written[i] = converted<from, to>(x[i]);
}

template <Element from, Element to>
void to_complex(char* const* data, std::ptrdiff_t n) {
    const auto* x = in<typename Held<from>::Type>(data, 0);
    auto* written = out<typename Held<to>::Type>(data, 1);
    PYOP_INDEPENDENT
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        written[2 * i] = converted<from, to>(x[i]);
        written[2 * i + 1] = 0;
    }
}

template <Element from, Element to>
Kernel cast() {
    constexpr int from_kind = Held<from>::kind, to_kind = Held<to>::kind;
    constexpr bool loses_sign = from_kind == 1 && to_kind == 1 && std::is_signed_v<typename Held<from>::Type> &&
                                !std::is_signed_v<typename Held<to>::Type>;
    if constexpr (from_kind > to_kind || loses_sign)
        return nullptr;
    else if constexpr (from_kind == 3)
        return &parts<convert<from, to>>;
    else if constexpr (to_kind == 3)
        return &to_complex<from, to>;
    else
        return &convert<from, to>;
}

// f called with e as a compile-time constant.
template <class F>
Kernel chosen(Element e, F f) {
    switch (e) {
#define PYOP_CASE(element) \
    case Element::element: \
        return f(std::integral_constant<Element, Element::element>());
        PYOP_CASE(Bool)
        PYOP_CASE(I8)
        PYOP_CASE(U8)
        PYOP_CASE(I16)
        PYOP_CASE(U16)
        PYOP_CASE(I32)
        PYOP_CASE(U32)
        PYOP_CASE(I64)
        PYOP_CASE(U64)
        PYOP_CASE(F32)
        PYOP_CASE(F64)
        PYOP_CASE(C64)
        PYOP_CASE(C128)
#undef PYOP_CASE
        default:
            return nullptr;
    }
}

}  // namespace

Kernel find_cast(Element from, Element to) {
    return chosen(from, [&](auto f) {
        return chosen(to, [](auto t) -> Kernel { return cast<decltype(f)::value, decltype(t)::value>(); });
    });
}

}  // namespace pyop::PYOP_KERNEL_LEVEL
