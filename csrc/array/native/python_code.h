// array/native/python_code.h: use a Python function as the code of a ufunc.
#pragma once

#include "runtime/python.h"

namespace pyop {

// Adds python_code() to the module.
int python_code_init(PyObject* module);

}  // namespace pyop
