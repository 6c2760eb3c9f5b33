// plan/quick/number_form.h: turn the result of a plan into that of its compiled function, where C++ does it.
#pragma once

#include "array/numpy.h"

namespace pyop {

enum class NumberForm : int8_t {
    AsIs,
    Python,  // the number in an array of no dimension, as Python's
    Scalar,  // that number as NumPy's scalar
    Listed,  // plan/result_forms.h
    Other,   // a callable knows (python/pyop/compiling/results.py)
};

// Which one a callable stands for; null is AsIs.
NumberForm number_form_of(PyObject* finish);

// A number as a scalar of NumPy's. New reference, or null with the error set.
PyObject* scalar_new(PyArray_Descr* dtype, const void* number);

// `array` (stolen) in that form; null stays null. New reference, or null with the error set.
PyObject* in_form_steal(PyObject* array, NumberForm form);

// Adds `scalar_of`, which stands for NumberForm::Scalar, to the module.
int number_form_init(PyObject* module);

}  // namespace pyop
