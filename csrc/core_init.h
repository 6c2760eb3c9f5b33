// core_init.h: declare everything of csrc/ that must exist before the first call.
#pragma once

#include <Python.h>

namespace pyop {

// Fills the extension's module; -1 with an error set.
int core_init(PyObject* module);

}  // namespace pyop
