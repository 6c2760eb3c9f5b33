// plan/write_back.h: write into the caller's arguments. Its plan computes what each of them holds in the end, and when
// all of it is computed, copies that into the caller's arrays: until then they are as they were, so that a plan that
// fails can be left for the function itself, which writes as far as it gets.
//
// The last writes by slices go into these arrays directly (plan/passes/last_stores.h). The last group may even compute
// them there, if nothing can fail any more once it has begun: an error of floating-point numbers would have to end in a
// warning at most, whoever listens to it (array/loop/error_policy.h).
//
// A plan has the function's order of reads and writes in its values. Where the caller's arrays share memory with each
// other, a write to one is seen in another, and only the function itself knows when.
//
// Threads: attached only.
#pragma once

#include "plan/program.h"

namespace pyop {

// What became of the last call on this thread of a plan that writes.
enum class Outcome : int8_t {
    Done,  // it has written
    Declined,  // the plan does not do for these arguments
    Refused,  // they are wrong
    Raised,  // an error of the run, before it has written
};
extern thread_local Outcome last_outcome;

// Whether the plan may write into these arguments: they are arrays as they are declared, writable and contiguous, and
// share memory with no other argument. `feeds` is what became of `values`.
bool may_write(const Program& p, PyObject* const* values, PyObject* const* feeds);

// Parts of the caller's arrays where the last group may compute what goes there, by write (new references, to arrays
// that hold none to the caller's). Whether there are any; sets no error.
bool parts_to_write_at_once(const Program& p, PyObject* const* feeds, PyObject** parts);

// Copies what was computed into the caller's arrays. 0, or -1 with the error set, and `last_outcome` if nothing was
// written.
int write_back(const Program& p, const Graph& g, PyObject* const* feeds, PyObject** outputs);

// The error of a plan that may not write into its arguments.
Outcome set_cannot_write(const Program& p, PyObject* const* values, PyObject* const* feeds);

}  // namespace pyop
