// plan/tape/element_cast.cpp: list the conversions of one number, by pair of dtypes.
#include "plan/tape/element_cast.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace pyop {

namespace {

struct Truth {
    npy_bool byte;
};
struct Half {
    npy_half bits;
};
template <class T>
struct Complex {
    T real, imaginary;
};
template <class T>
constexpr bool is_complex = false;
template <class T>
constexpr bool is_complex<Complex<T>> = true;

float widened(Half x) {
    const uint32_t sign = static_cast<uint32_t>(x.bits & 0x8000u) << 16, exponent = x.bits >> 10 & 31;
    uint32_t digits = x.bits & 0x3ffu;
    if (exponent == 0) {
        const float size = static_cast<float>(digits) * 0x1p-24f;
        return sign ? -size : size;
    }
    digits = sign | (exponent == 31 ? 0x7f800000u : (exponent + 112) << 23) | digits << 13;
    return std::bit_cast<float>(digits);
}

// To the nearest, of two the even one. False where NumPy raises a flag or might: what is too large, or subnormal.
bool narrowed(double x, Half& result) {
    const auto bits = std::bit_cast<uint64_t>(x);
    const auto sign = static_cast<unsigned>(bits >> 48 & 0x8000u);
    uint64_t digits = bits & 0xfffffffffffffull;
    if (!std::isfinite(x)) {
        const auto payload = static_cast<unsigned>(digits >> 42);
        result.bits = static_cast<npy_half>(sign | 0x7c00u | (digits && !payload ? 1u : payload));
        return true;
    }
    result.bits = static_cast<npy_half>(sign);
    if (x == 0.0) return true;
    if (std::fabs(x) < 0x1p-14 || std::fabs(x) >= 65520.0) return false;
    const uint64_t exponent = (bits >> 52 & 0x7ff) - 1008;
    if ((digits & 0x7ffffffffffull) != 0x20000000000ull) digits += 0x20000000000ull;
    result.bits = static_cast<npy_half>(sign + (exponent << 10) + (digits >> 42));
    return true;
}

template <class From, class To>
bool converted(From x, To& result) {
    if constexpr (std::is_same_v<From, Truth>) {
        return converted(static_cast<npy_ubyte>(x.byte != 0), result);
    } else if constexpr (std::is_same_v<From, Half>) {
        return converted(widened(x), result);
    } else if constexpr (is_complex<From> && std::is_same_v<To, Truth>) {
        result.byte = x.real != 0 || x.imaginary != 0;
        return true;
    } else if constexpr (is_complex<From>) {
        return converted(x.real, result.real) && converted(x.imaginary, result.imaginary);
    } else if constexpr (is_complex<To>) {
        result.imaginary = 0;
        return converted(x, result.real);
    } else if constexpr (std::is_same_v<To, Truth>) {
        result.byte = x != From{0};
        return true;
    } else if constexpr (std::is_same_v<To, Half>) {
        // NumPy brings integers to float32 first.
        if constexpr (std::is_same_v<From, double>) return narrowed(x, result);
        return narrowed(static_cast<double>(static_cast<float>(x)), result);
    } else {
        if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
            using Limits = std::numeric_limits<To>;
            const From low = static_cast<From>(Limits::min()) - 1, high = static_cast<From>(Limits::max()) + 1;
            if (!(x > low && x < high)) return false;
        }
        result = static_cast<To>(x);
        return true;
    }
}

// A Python int where an operation wants another type.
template <class To>
bool fitted(int64_t x, To& result) {
    if constexpr (std::is_integral_v<To>) {
        result = static_cast<To>(x);
        const bool same_sign = std::is_signed_v<To> || x >= 0;
        return same_sign && static_cast<int64_t>(result) == x;
    } else if constexpr (is_complex<To>) {
        result.imaginary = 0;
        return fitted(x, result.real);
    } else {
        return converted(static_cast<double>(x), result);
    }
}

// What is written into an array. An integer must fit, and be a float without rounding but of that float's own.
template <class From, class To>
bool stored(From x, To& result) {
    if constexpr (!std::is_integral_v<From> || std::is_same_v<To, Truth>) {
        return converted(x, result);
    } else if constexpr (std::is_integral_v<To>) {
        result = static_cast<To>(x);
        return static_cast<From>(result) == x && (result < To{0}) == (x < From{0});
    } else {
        constexpr auto most = std::is_same_v<To, Half> ? uint64_t{1} << 24 : uint64_t{1} << 53;
        const auto size = x < From{0} ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
        return size <= most && converted(x, result);
    }
}

template <class From, class To>
bool store(const void*, const TapeCell* x, const TapeCell*, TapeCell* to) {
    From from;
    To result;
    std::memcpy(&from, x, sizeof(from));
    if (!stored(from, result)) return false;
    std::memcpy(to, &result, sizeof(result));
    return true;
}

template <class From, class To>
bool cast(const void*, const TapeCell* x, const TapeCell*, TapeCell* to) {
    From from;
    To result;
    std::memcpy(&from, x, sizeof(from));
    if (!converted(from, result)) return false;
    std::memcpy(to, &result, sizeof(result));
    return true;
}

template <class To>
bool cast_int(const void*, const TapeCell* x, const TapeCell*, TapeCell* to) {
    To result;
    if (!fitted(x->I64, result)) return false;
    std::memcpy(to, &result, sizeof(result));
    return true;
}

static_assert(sizeof(npy_long) == 8 && sizeof(npy_longlong) == 8);

// f(T{}) with what holds a dtype's numbers.
template <class F>
TapeCall::Function* with_type(int type, F f) {
    switch (type) {
        case NPY_BOOL:
            return f(Truth{});
        case NPY_INT8:
            return f(int8_t{});
        case NPY_UINT8:
            return f(uint8_t{});
        case NPY_INT16:
            return f(int16_t{});
        case NPY_UINT16:
            return f(uint16_t{});
        case NPY_INT32:
            return f(int32_t{});
        case NPY_UINT32:
            return f(uint32_t{});
        case NPY_LONG:
        case NPY_LONGLONG:
            return f(int64_t{});
        case NPY_ULONG:
        case NPY_ULONGLONG:
            return f(uint64_t{});
        case NPY_HALF:
            return f(Half{});
        case NPY_FLOAT:
            return f(float{});
        case NPY_DOUBLE:
            return f(double{});
        case NPY_CFLOAT:
            return f(Complex<float>{});
        case NPY_CDOUBLE:
            return f(Complex<double>{});
        default:
            return nullptr;
    }
}

}  // namespace

TapeCall::Function* find_element_cast(int from, int to) {
    return with_type(from, [to]<class From>(From) {
        return with_type(to, []<class To>(To) -> TapeCall::Function* {
            if constexpr (is_complex<From> && !is_complex<To> && !std::is_same_v<To, Truth>)
                return nullptr;
            else
                return cast<From, To>;
        });
    });
}

TapeCall::Function* find_store_cast(int from, int to) {
    return with_type(from, [to]<class From>(From) {
        return with_type(to, []<class To>(To) -> TapeCall::Function* {
            if constexpr (is_complex<From> && !is_complex<To> && !std::is_same_v<To, Truth>)
                return nullptr;
            else
                return store<From, To>;
        });
    });
}

TapeCall::Function* find_number_cast(int from, int to) {
    if (from != NPY_INT64) return find_element_cast(from, to);
    return with_type(to, []<class To>(To) -> TapeCall::Function* {
        if constexpr (std::is_same_v<To, Truth>)
            return nullptr;
        else
            return cast_int<To>;
    });
}

}  // namespace pyop
