// array/contract/describe.h: describe arrays, specs and mismatches for errors. Cold, needs an attached thread.
#pragma once

#include <string>

#include "array/contract/match.h"

namespace pyop {

// "float64[3,4]"; for anything that is not an array, the name of its type.
std::string array_text(PyObject* o);

// "float64[n,3]": a declared spec, in the words of the declaration.
std::string spec_text(const Contract& c, const ArraySpec& spec);

// " (n = 3, T = float64)", or "" when nothing is bound.
std::string bindings_text(const Contract& c, const Bindings& b);

// The sizes as NumPy's users read them: "[2,3]".
std::string shape_text(int ndim, const npy_intp* dims);

// The dtype in NumPy's words: "float64".
std::string dtype_text(PyArray_Descr* descr);

// The dtype in TensorFlow's words, which ports of py_func match on: "double", "float", "string", ...
std::string tf_dtype_text(PyArray_Descr* descr);

}  // namespace pyop
