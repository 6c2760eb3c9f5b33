// core_init.h: everything of csrc/ that is there before the first call.
#pragma once

#include <Python.h>

namespace pyop {

// Fills the extension's module; -1 with an error set.
int core_init(PyObject* module);

}  // namespace pyop
