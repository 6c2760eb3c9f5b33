// array/memory/array_bytes.h: count the bytes that the arrays in an object take, for profiles.
#pragma once

#include "array/numpy.h"
#include "runtime/items.h"
#include "runtime/without_gil.h"

namespace pyop {

// Of an array, or of all in a tuple, list or dict of them, `depth` levels deep.
inline uint64_t bytes_in_arrays(PyObject* o, int depth = 4) {
    if (PYOP_LIKELY(PyArray_Check(o))) return static_cast<uint64_t>(PyArray_NBYTES(as_array(o)));
    uint64_t bytes = 0;
    if (depth > 0 && PyTuple_CheckExact(o)) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i)
            bytes += bytes_in_arrays(PyTuple_GET_ITEM(o, i), depth - 1);
    } else if (depth > 0 && PyList_CheckExact(o)) {
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(o); ++i)
            if (const Ref item = item_of(o, i)) bytes += bytes_in_arrays(item.get(), depth - 1);
    } else if (depth > 0 && PyDict_CheckExact(o)) {
        const ObjectLock lock(o);
        Py_ssize_t at = 0;
        PyObject* item;
        while (PyDict_Next(o, &at, nullptr, &item)) bytes += bytes_in_arrays(item, depth - 1);
    }
    return bytes;
}

}  // namespace pyop
