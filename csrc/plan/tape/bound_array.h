// plan/tape/bound_array.h: put the arrays of a run into the cells of a tape, and handle errors.
#pragma once

#include <cstring>

#include "plan/tape/tape_builder.h"
#include "runtime/ref.h"

namespace pyop {

// Whether an object is what was promised: a number or an array of that dtype and rank.
inline bool fits_tape(PyObject* given, const TapeValue& value) {
    if (!is_exact_array(given)) return false;
    PyArrayObject* a = as_array(given);
    return PyArray_DESCR(a) == value.dtype && PyArray_NDIM(a) == value.ndim && PyArray_ISALIGNED(a);
}

// Whether it has the shape that is known, and lies in C order.
inline bool lies_in_order(PyObject* given, const TapeValue& value) {
    PyArrayObject* a = as_array(given);
    return PyArray_IS_C_CONTIGUOUS(a) && PyArray_CompareLists(PyArray_DIMS(a), value.dims.data(), value.ndim);
}

inline void bind_to_tape(PyObject* given, const TapeValue& value, TapeCell* cells) {
    PyArrayObject* a = as_array(given);
    TapeCell* cell = cells + value.cell;
    if (value.kind != TapeValue::Array) {
        std::memcpy(cell, PyArray_DATA(a), static_cast<size_t>(value.size() * PyDataType_ELSIZE(value.dtype)));
        return;
    }
    cell++->data = PyArray_BYTES(a);
    for (int d = 0; d < value.ndim; ++d) {
        cell++->I64 = PyArray_DIM(a, d);
        cell++->I64 = PyArray_STRIDE(a, d);
    }
}

// Whether np.errstate ignores all of these flags (array/loop/fp_flags.h). Attached threads; sets no error.
bool errstate_ignores(int flags);

}  // namespace pyop
