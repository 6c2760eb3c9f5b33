// plan/quick/argument.h: share what the quick calls need. What a call is known to hand over when its plan is prepared
// to be run without a frame: exact arrays of one dtype and shape, and numbers of one type; and where a call goes that
// is not for them.
#pragma once

#include <cstdint>
#include <vector>

#include "array/numpy.h"
#include "runtime/ref.h"

namespace pyop {

struct QuickArgument {
    PyTypeObject* type;         // exactly; PyArray_Type for an array
    int type_num = NPY_NOTYPE;  // of a number: what it is as an array
    Ref dtype;                  // of an array
    int ndim = 0;
    std::vector<npy_intp> dims;
};

// The rest of a vectorcall that is not for a quick way; it may find the error set.
using QuickOtherwise = PyObject* (*)(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* names);

// Python integers that an int64 can hold: larger ones are no numbers for a plan.
PYOP_INLINE bool is_int64(PyObject* o) {
    int overflow = 0;
    PyLong_AsLongLongAndOverflow(o, &overflow);
    return overflow == 0;
}

// A number of Python's or NumPy's as an element of a dtype of NumPy's own. An integer must fit.
PYOP_INLINE void store_number(PyObject* number, int type_num, void* data) {
    if (type_num == NPY_DOUBLE)
        *static_cast<double*>(data) = PyFloat_AS_DOUBLE(number);  // np.float64 is one
    else if (PyArray_CheckScalar(number))
        PyArray_ScalarAsCtype(number, data);
    else if (type_num == NPY_INT64)
        *static_cast<int64_t*>(data) = PyLong_AsLongLong(number);
    else
        *static_cast<Py_complex*>(data) = PyComplex_AsCComplex(number);
}

// Room for one number of any of these.
union QuickNumber {
    double real;
    int64_t whole;
    char bytes[32];
};

}  // namespace pyop
