// plan/machine_code/plan_code.h: manage the machine code of all tapes of a plan, as Python asks for it.
#pragma once

#include "plan/plan.h"

namespace pyop {

// Plan._machine_code(): (node, TapeCode) for each tape; parts of loops and branches included.
PyObject* plan_machine_code(PyObject* self, PyObject*);

// Plan._make_machine_code(policy): when that is to be made.
PyObject* plan_set_machine_code(PyObject* self, PyObject* policy);

}  // namespace pyop
