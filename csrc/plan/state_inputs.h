// plan/state_inputs.h: read what an instance or a closure holds as inputs of plans that belong to its code, and put
// back what such a plan makes of it (StateInputs).
//
//     f(self, x)   ──read──►  g(self.k, self.w, x)  ──►  (result,)                       nothing was bound anew
//     f(x)         ──read──►  g(cell of k, x)       ──►  (result, key, values) ──► self.w = …
//
// What is read is a list of steps that python/pyop/compiling/state_steps.py writes down of one instance or closure.
// They hold for others of the same classes and code whose attributes have the same names. `g` is a compiled function of
// its own, so its guards compare dtypes, shapes and texts, and its writes into arrays are those into any argument.
//
// Threads: attached only. No Python code of the user's runs while the state is read or put back.
#pragma once

#include "plan/read_call.h"

namespace pyop {

// Calls the function `self` by one of its `states`. Null without an error where none is for this call.
PyObject* call_with_state_new(PyObject* self, const ReadCall& read);

int state_inputs_init(PyObject* module);

}  // namespace pyop
