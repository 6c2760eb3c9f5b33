// array/loop/convert.cpp: list the conversions by pair of dtypes.
#include "array/loop/convert.h"

#include <cstring>
#include <type_traits>

#include "array/loop/number_types.h"

namespace pyop {

namespace {

template <typename From, typename To>
void convert(char* to, const char* from, npy_intp stride, npy_intp n) {
    To* out = reinterpret_cast<To*>(to);
    if (std::is_same_v<From, To> && stride == static_cast<npy_intp>(sizeof(From))) {
        std::memcpy(to, from, static_cast<size_t>(n) * sizeof(From));
        return;
    }
    for (npy_intp i = 0; i < n; ++i, from += stride) out[i] = static_cast<To>(*reinterpret_cast<const From*>(from));
}

// npy_bool is a byte like any other; as a destination it is 0 or 1.
template <typename From>
void convert_to_bool(char* to, const char* from, npy_intp stride, npy_intp n) {
    for (npy_intp i = 0; i < n; ++i, from += stride) to[i] = *reinterpret_cast<const From*>(from) != From{0};
}

template <typename From>
Convert to_type(int type) {
    constexpr bool real = std::is_floating_point_v<From>;
    // Narrowing and sign changes are not offered: only the two wide integers can be asked for.
    if constexpr (!real) {
        if (type == NPY_INT64 || type == NPY_LONGLONG) return convert<From, npy_int64>;
        if ((type == NPY_UINT64 || type == NPY_ULONGLONG) && std::is_unsigned_v<From>) return convert<From, npy_uint64>;
    }
    if (type == NPY_DOUBLE) return convert<From, double>;
    if (type == NPY_FLOAT && sizeof(From) <= (real ? 4 : 2)) return convert<From, float>;
    if (type == NPY_BOOL) return convert_to_bool<From>;
    return nullptr;
}

}  // namespace

Convert find_convert(int from_type, int to) {
    Convert found = nullptr;
    with_number_type(from_type == NPY_BOOL ? NPY_UBYTE : from_type,
                     [&]<typename From>(From) { found = to_type<From>(to); });
    return found;
}

}  // namespace pyop
