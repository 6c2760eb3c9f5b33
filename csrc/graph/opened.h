// graph/opened.h: handle writes by a function that is differentiated, where its argument lies.
//
// A derivative is by what an argument holds at entry: a node of its own, `opened` (python/pyop/transforms/marker.py),
// which shows the caller's memory. With the first write there that node becomes what the whole memory holds, so that
// elements that are not written stay the argument's. Where another handle shows the memory, and is not of that argument
// (it is given twice, or another function's), what the derivative would be by is not known: the write is refused.
#pragma once

#include "graph/storage.h"

namespace pyop {

// Whether `other`, of the same storage, stands for an argument that `value` does not belong to.
bool is_of_another_argument(const ValueObject* value, const ValueObject* other);

// Before a write, of which all else is known: the argument as it was opened is what its memory holds now. 0, or -1 with
// the error set.
int enter_opened(ValueObject* value);

}  // namespace pyop
