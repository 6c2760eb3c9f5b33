// plan/execute.h: run a Program.
#pragma once

#include "plan/program.h"

namespace pyop {

// Runs on the calling thread. `feeds` holds one borrowed array a feed, checked already; `outputs` takes one
// new reference a fetch. `targets`, if not null, holds for each fetch an array that its value may be computed in, or
// null; it lies apart from all feeds, or is the part of an argument that is written (WriteBack::by_last). Returns 0, or
// -1 with the error set and nothing stored. Leaves no trace in the program or the graph, whether it fails or not.
int execute(const Program& p, PyObject* graph, PyObject* const* feeds, PyObject* const* targets, PyObject** outputs);

// So many instructions run before signals are looked at.
inline constexpr unsigned kUntilSignals = 1024;

// The instructions of a program on a frame of slots into which its feeds are loaded; `until_signals` counts down. What
// nobody reads any more is gone from the slots then. Returns 0, or -1 with the error set.
int run_instructions(const Program& p, const Graph& g, PyObject* const* targets, PyObject** slots,
                     unsigned& until_signals);

// As execute(), on the calling thread and up to `threads` - 1 helpers, for a concurrent program.
// `owner` is the Python object that owns the program: an interrupted run may outlive the call.
// `targets` are for what the calling thread itself computes.
int execute_concurrently(const Program& p, PyObject* owner, PyObject* graph, int threads, PyObject* const* feeds,
                         PyObject* const* targets, PyObject** outputs);

// Checks and converts the arguments of a plan: `values` (borrowed) to `arrays` (new references). Returns 0,
// or -1 with InputError set and nothing stored.
int check_feeds(const Program& p, PyObject* const* values, PyObject** arrays);

// Whether all arguments are arrays that fit as they are. Borrows; sets no error.
bool feeds_fit(const Program& p, PyObject* const* values);

// Puts the feeds into the slots of a frame: a reference to the array, and a read-only view where it is lent.
int lend_feed(const Program& p, const Feed& feed, PyObject* array, PyObject** slots);  // the view alone
int load_feeds(const Program& p, PyObject* const* feeds, PyObject** slots);

// Takes the fetches out of a frame. A read-only view that was lent comes back as the array it was lent from; a constant
// goes out as a view, so that nobody gives the graph's own another shape. Returns 0, or -1 with the error set and
// nothing stored.
int store_outputs(const Program& p, PyObject* const* feeds, PyObject* const* slots, PyObject** outputs);

// Which targets of a run are for the results of instruction `i`: into `wanted`, borrowed. Whether some is the caller's
// own memory, to be written at once.
inline bool targets_of(const Program& p, uint32_t i, PyObject* const* targets, PyObject** wanted) {
    const Instruction& ins = p.instructions[i];
    bool callers = false;
    for (Py_ssize_t k = 0; k < ins.callee.n_out; ++k) {
        const int32_t output = p.output_of_result[ins.first_result + static_cast<uint32_t>(k)];
        wanted[k] = output < 0 ? nullptr : targets[output];
        callers |= wanted[k] && static_cast<size_t>(output) >= p.n_results();
    }
    return callers;
}

// Whether whoever holds the only reference to a value may do with its memory as he likes.
inline bool holds_own_memory(PyObject* value) {
    return uniquely_owned(value) && is_exact_array(value) &&
           PyArray_CHKFLAGS(as_array(value), NPY_ARRAY_OWNDATA | NPY_ARRAY_WRITEABLE);
}

// Instruction `i` on gathered arguments (borrowed), storing its results (new references).
int run_instruction(const Program& p, uint32_t i, const Graph& g, PyObject* const* arguments,
                    const StepContext& context, PyObject** results);

}  // namespace pyop
