// array/loop/number_types.h: map NumPy's integers, float32 and float64 to C types, by type number.
#pragma once

#include "array/numpy.h"

namespace pyop {

// f(T{}) with the C type of a type number; false, and no call, for any other dtype.
template <class F>
bool with_number_type(int type_num, F f) {
    switch (type_num) {
        case NPY_BYTE:
            return f(npy_byte{}), true;
        case NPY_UBYTE:
            return f(npy_ubyte{}), true;
        case NPY_SHORT:
            return f(npy_short{}), true;
        case NPY_USHORT:
            return f(npy_ushort{}), true;
        case NPY_INT:
            return f(npy_int{}), true;
        case NPY_UINT:
            return f(npy_uint{}), true;
        case NPY_LONG:
            return f(npy_long{}), true;
        case NPY_ULONG:
            return f(npy_ulong{}), true;
        case NPY_LONGLONG:
            return f(npy_longlong{}), true;
        case NPY_ULONGLONG:
            return f(npy_ulonglong{}), true;
        case NPY_FLOAT:
            return f(npy_float{}), true;
        case NPY_DOUBLE:
            return f(npy_double{}), true;
        default:
            return false;
    }
}

}  // namespace pyop
