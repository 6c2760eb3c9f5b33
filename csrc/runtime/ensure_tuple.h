// runtime/ensure_tuple.h: return a tuple for a function that may return one value or a tuple of values.
#pragma once

#include "runtime/ref.h"

namespace pyop {

// Makes `value` a tuple if it is not one already (a subclass of tuple is one), stealing the old reference
// into the new 1-tuple. Returns 1 if it was not a tuple, 0 if it was, -1 with an error set.
inline int ensure_tuple(Ref& value) {
    if (PyTuple_Check(value.get())) return 0;
    PyObject* tuple = PyTuple_New(1);
    if (!tuple) return -1;
    PyTuple_SET_ITEM(tuple, 0, value.release());
    value = Ref::steal(tuple);
    return 1;
}

}  // namespace pyop
