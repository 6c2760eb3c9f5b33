// autograd/transformations.h: declare the engine as pyop.vjp and its kin use it; the functions are Python's.
#pragma once

#include "runtime/python.h"

namespace pyop {

int transformations_init(PyObject* module);
int plain_vjp_init(PyObject* module);  // plain_vjp.cpp

}  // namespace pyop
