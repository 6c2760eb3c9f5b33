// graph/value_item.h: index a Value of known size by an integer or a slice of numbers.
#pragma once

#include "graph/value.h"

namespace pyop {

// operator.getitem, which the node of a subscript calls; for the life of the process, from value_item_init() on.
extern PyObject* getitem_function;
int value_item_init();

// value[key], or None for all that is not so simple.
PyObject* value_plain_item(PyObject* self, PyObject* key);

}  // namespace pyop
