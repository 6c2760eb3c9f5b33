// array/numpy.h: the only place that includes NumPy's C API, imported once by numpy_init().
#pragma once

#include "runtime/python.h"

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL PYOP_NUMPY_API
#ifndef PYOP_IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

namespace pyop {

int numpy_init();

// The module, borrowed: it lives as long as the process. Null with the error set. The import system takes microseconds
// to give what it has, and a first compile asks for a hundred functions.
PyObject* numpy_module();

PYOP_INLINE bool is_exact_array(PyObject* o) { return PyArray_CheckExact(o); }
PYOP_INLINE PyArrayObject* as_array(PyObject* o) { return reinterpret_cast<PyArrayObject*>(o); }
PYOP_INLINE PyObject* as_object(PyArrayObject* a) { return reinterpret_cast<PyObject*>(a); }

// Whether a structured dtype has a field of foreign byte order.
PYOP_COLD bool has_foreign_field(PyArray_Descr* descr);

// Whether the items of `a` are not in native byte order.
PYOP_INLINE bool is_foreign(PyArrayObject* a) {
    PyArray_Descr* descr = PyArray_DESCR(a);
    return PyDataType_ISBYTESWAPPED(descr) || (PYOP_UNLIKELY(descr->type_num == NPY_VOID) && has_foreign_field(descr));
}

}  // namespace pyop
