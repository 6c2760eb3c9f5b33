// plan/steps/written_over.h: give arrays away to functions of pyop's that otherwise write into copies.
#pragma once

#include "graph/node.h"

namespace pyop {

// Whether a node calls one of these functions.
bool calls_write(const PyNode& node);

// Adds take_over() to the module.
int written_over_init(PyObject* module);

}  // namespace pyop
