// autograd/forward.h: run forward mode, in which Tensors carry tangents.
//
// A tangent belongs to the run that it came into being in, and moves along with what is computed while that run is
// going on: on every thread, since a function may compute on threads of its own. After the end of the run it means
// nothing, though Tensors that outlive the run may still have one. What a rule computes with numbers and tangents apart
// is to move nothing: call_without_tangents stills the runs begun so far on its thread.
//
// Where tangents of two runs meet in one operation (a function that begins a run on a thread of its own, inside of
// another run) neither derivative would be right, so that is refused.
#pragma once

#include "autograd/state.h"
#include "runtime/ref.h"

namespace pyop {

struct TensorObject;

struct ForwardRun {
    uint32_t references;  // tangents, and the frame of the run; counted on attached threads only
    bool over;
    uint64_t number;
    PyObject* nodes;  // owned list: that tangents passed through, and which forget them when the run is over
};

PYOP_INLINE bool is_moving(const ForwardRun* run) { return run && !run->over && run->number > autograd_state.still; }

void release_run(ForwardRun* run);
PYOP_INLINE ForwardRun* share(ForwardRun* run) {
    if (run) ++run->references;
    return run;
}

// The number of the newest run: tangents of all runs so far are still on a thread where `still` is that.
uint64_t newest_run();

// `t` has the tangent, of `run`, or none. -1 with the error set.
int tensor_set_tangent(TensorObject* t, PyObject* tangent, ForwardRun* run);

// What one operation returned gets its tangents (a sequence of the same length, with None), which are of the run that
// those of its arguments are of; its node notes them, so that a backward pass inside of the run finds them on the
// results that were saved. -1 with the error set: the arguments' tangents are of two runs.
int give_tangents(PyObject* outputs, PyObject* tangents, PyObject* const* arguments, Py_ssize_t n);

// Whether runs are going on, on any thread.
bool any_forward_run();

int forward_init(PyObject* module);

}  // namespace pyop
