// autograd/autograd.h: declare what the module needs of this folder.
#pragma once

#include "runtime/python.h"

namespace pyop {

// The types Tensor, GradNode and FunctionClass, and the functions behind pyop.autograd.
int autograd_init(PyObject* module);

}  // namespace pyop
