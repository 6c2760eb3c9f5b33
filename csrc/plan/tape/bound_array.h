// plan/tape/bound_array.h: the arrays of a run, as a tape finds them in its cells; and what becomes of errors.
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

inline void bind_to_tape(PyObject* given, const TapeValue& value, TapeCell* cells) {
    PyArrayObject* a = as_array(given);
    TapeCell* cell = cells + value.cell;
    if (value.kind == TapeValue::Number) {
        std::memcpy(cell, PyArray_DATA(a), static_cast<size_t>(PyDataType_ELSIZE(value.dtype)));
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
