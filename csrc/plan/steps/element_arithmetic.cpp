// plan/steps/element_arithmetic.cpp: compute integers with overflow checks, powers by libm's pow, and the four
// products of complex numbers.
//
// Compiled without contraction where NumPy's is: a product and a sum are two operations.
#include "plan/steps/element_arithmetic.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "array/loop/fp_flags.h"
#include "array/loop/number_types.h"
#include "plan/tape/element_cast.h"

namespace pyop {

namespace {

enum class Does { Add, Subtract, Multiply, FloorDivide, Remainder, Power, Negative, Absolute };

// What wraps around is as NumPy has it, with the flag of overflow.
inline bool watched(bool overflows) {
    if (overflows) raise_fp_errors(FE_OVERFLOW);
    return true;
}

// Of integers. false: NumPy must do it, and warn or raise.
template <Does does, class T>
bool compute(T x, T y, T& result) {
    if constexpr (does == Does::Add) return watched(__builtin_add_overflow(x, y, &result));
    if constexpr (does == Does::Subtract) return watched(__builtin_sub_overflow(x, y, &result));
    if constexpr (does == Does::Multiply) return watched(__builtin_mul_overflow(x, y, &result));
    if constexpr (does == Does::Negative) return watched(__builtin_sub_overflow(T{0}, x, &result));
    if constexpr (does == Does::Absolute) {
        result = x;
        return !(x < T{0}) || watched(__builtin_sub_overflow(T{0}, x, &result));
    }
    if constexpr (does == Does::FloorDivide || does == Does::Remainder) {
        if (y == T{0}) return false;
        if constexpr (std::is_signed_v<T>)
            if (y == static_cast<T>(-1) && x == std::numeric_limits<T>::min()) return false;
        T quotient = static_cast<T>(x / y), rest = static_cast<T>(x % y);
        if constexpr (std::is_signed_v<T>)
            if (rest != 0 && (rest < 0) != (y < 0)) {
                --quotient;
                rest = static_cast<T>(rest + y);
            }
        result = does == Does::Remainder ? rest : quotient;
        return true;
    }
    if constexpr (does == Does::Power) {  // wraps around, as NumPy's does for scalars and arrays
        if (y < T{0}) return false;
        using Wide = std::conditional_t<sizeof(T) < sizeof(unsigned), unsigned, std::make_unsigned_t<T>>;
        auto base = static_cast<Wide>(x), power = Wide{1};
        for (auto left = static_cast<Wide>(y); left; left >>= 1) {
            if (left & 1) power *= base;
            base *= base;
        }
        result = static_cast<T>(power);
        return true;
    }
}

template <Does does, class T>
bool of_cells(const void*, const TapeCell* a, const TapeCell* b, TapeCell* to) {
    T x, y, result;
    std::memcpy(&x, a, sizeof(T));
    std::memcpy(&y, b, sizeof(T));
    if (!compute<does>(x, y, result)) return false;
    std::memcpy(to, &result, sizeof(T));
    return true;
}

bool power_of_doubles(const void*, const TapeCell* x, const TapeCell* y, TapeCell* to) {
    to->F64 = pow(x->F64, y->F64);
    return true;
}
bool power_of_floats(const void*, const TapeCell* x, const TapeCell* y, TapeCell* to) {
    to->F32 = powf(x->F32, y->F32);
    return true;
}

template <class T>
struct ComplexNumber {
    T real, imaginary;
};

#if defined(__x86_64__)  // elsewhere compilers contract products and sums of NumPy's
// Whatever is not finite is left to NumPy.
template <class T>
bool complex_product(const void*, const TapeCell* a, const TapeCell* b, TapeCell* to) {
    ComplexNumber<T> x, y, result;
    std::memcpy(&x, a, sizeof(x));
    std::memcpy(&y, b, sizeof(y));
    result.real = x.real * y.real - x.imaginary * y.imaginary;
    result.imaginary = x.real * y.imaginary + x.imaginary * y.real;
    std::memcpy(to, &result, sizeof(result));
    return std::isfinite(result.real) && std::isfinite(result.imaginary);
}
#endif

template <class T>
bool complex_size(const void*, const TapeCell* a, const TapeCell*, TapeCell* to) {
    ComplexNumber<T> x;
    std::memcpy(&x, a, sizeof(x));
    if (!std::isfinite(x.real) || !std::isfinite(x.imaginary)) return false;
    const T result = std::hypot(x.real, x.imaginary);
    std::memcpy(to, &result, sizeof(result));
    return std::isfinite(result);
}

// By the real parts, and by the imaginary ones where those are equal.
enum class Order { Less, LessEqual, Greater, GreaterEqual };

template <Order order, class T>
bool compare_complex(const void*, const TapeCell* a, const TapeCell* b, TapeCell* to) {
    ComplexNumber<T> x, y;
    std::memcpy(&x, a, sizeof(x));
    std::memcpy(&y, b, sizeof(y));
    const T p = x.real == y.real ? x.imaginary : x.real, q = x.real == y.real ? y.imaginary : y.real;
    to->Bool = order == Order::Less        ? std::isless(p, q)
               : order == Order::LessEqual ? std::islessequal(p, q)
               : order == Order::Greater   ? std::isgreater(p, q)
                                           : std::isgreaterequal(p, q);
    return true;
}

template <Order order>
ElementArithmetic of_complex_order(int type_num) {
    if (type_num == NPY_CDOUBLE) return {compare_complex<order, double>};
    return {compare_complex<order, float>};
}

// The operations of a tape for the integers of a type.
TapeOp op_of(Does does, int type_num) {
    switch (type_num) {
#define X(type, element)                                 \
    case type:                                           \
        switch (does) {                                  \
            case Does::Add:                              \
                return TapeOp::AddWatched##element;      \
            case Does::Subtract:                         \
                return TapeOp::SubtractWatched##element; \
            case Does::Multiply:                         \
                return TapeOp::MultiplyWatched##element; \
            case Does::FloorDivide:                      \
                return TapeOp::FloorDivide##element;     \
            case Does::Remainder:                        \
                return TapeOp::Remainder##element;       \
            default:                                     \
                return TapeOp::Move;                     \
        }
        X(NPY_INT8, I8)
        X(NPY_UINT8, U8)
        X(NPY_INT16, I16)
        X(NPY_UINT16, U16)
        X(NPY_INT32, I32)
        X(NPY_UINT32, U32)
        X(NPY_INT64, I64)
        X(NPY_UINT64, U64)
#undef X
        default:
            return TapeOp::Move;
    }
}

template <Does does>
ElementArithmetic of_integers(int type_num) {
    ElementArithmetic found;
    with_number_type(type_num, [&]<class T>(T) {
        if constexpr (std::is_integral_v<T>) found = {of_cells<does, T>, op_of(does, type_num)};
    });
    return found;
}

struct ArithmeticRow {
    std::string_view ufunc;
    ElementArithmetic (*find)(int type_num);
};
constexpr ArithmeticRow kIntegers[] = {
    {"add", of_integers<Does::Add>},
    {"subtract", of_integers<Does::Subtract>},
    {"multiply", of_integers<Does::Multiply>},
    {"negative", of_integers<Does::Negative>},
    {"absolute", of_integers<Does::Absolute>},
    // Below: the same for arrays.
    {"floor_divide", of_integers<Does::FloorDivide>},
    {"remainder", of_integers<Does::Remainder>},
    {"power", of_integers<Does::Power>},
};
constexpr size_t kOfScalars = 5;
constexpr ArithmeticRow kComplex[] = {
    {"less", of_complex_order<Order::Less>},
    {"less_equal", of_complex_order<Order::LessEqual>},
    {"greater", of_complex_order<Order::Greater>},
    {"greater_equal", of_complex_order<Order::GreaterEqual>},
};

ElementArithmetic among(const ArithmeticRow* first, const ArithmeticRow* last, std::string_view ufunc, int type_num) {
    for (; first != last; ++first)
        if (first->ufunc == ufunc) return first->find(type_num);
    return {};
}

}  // namespace

ElementArithmetic find_scalar_arithmetic(std::string_view ufunc, int type_num) {
    if (PyTypeNum_ISINTEGER(type_num)) return among(kIntegers, std::end(kIntegers), ufunc, type_num);
    if (ufunc == "power") {
        if (type_num == NPY_DOUBLE) return {power_of_doubles};
        if (type_num == NPY_FLOAT) return {power_of_floats};
    }
#if defined(__x86_64__)
    if (ufunc == "multiply") {
        if (type_num == NPY_CDOUBLE) return {complex_product<double>};
        if (type_num == NPY_CFLOAT) return {complex_product<float>};
    }
#endif
    if (PyTypeNum_ISCOMPLEX(type_num) && type_num != NPY_CLONGDOUBLE)
        if (const ElementArithmetic found = among(kComplex, std::end(kComplex), ufunc, type_num); found.found())
            return found;
    if (ufunc == "absolute") {
        if (type_num == NPY_CDOUBLE) return {complex_size<double>};
        if (type_num == NPY_CFLOAT) return {complex_size<float>};
    }
    return {};
}

ElementArithmetic find_integer_arithmetic(std::string_view ufunc, int type_num) {
    return among(kIntegers + kOfScalars, std::end(kIntegers), ufunc, type_num);
}

}  // namespace pyop
