// autograd/suspended_modes.h: keep modes that a generator or coroutine has entered while it runs, not for others.
//
//     with no_grad():
//         yield y          # whoever runs until the generator is resumed records
//
// Nobody is told when a generator is suspended. So while such a mode is entered anywhere, those who ask for the mode of
// a thread first look at which generators are on its stack (`is_recording()` of state.h): what was suspended since is
// undone, what was resumed is done again. To everybody else this costs the test of one number.
//
// A generator that is itself a context manager (contextlib.contextmanager, a fixture of pytest) enters for its caller.
#pragma once

#include "autograd/state.h"
#include "runtime/ref.h"

namespace pyop {

inline constexpr int kLeave = -1;  // a mode that this one does not touch

// What a `with` changes, and what it was before.
struct Setting {
    int recording = kLeave, anomaly = kLeave, check_nan = kLeave;
};

Setting current_setting();
void apply(const Setting& wanted, const Setting& touched);

// The generator, coroutine or asynchronous generator for which the caller's `with` is entered or left, or null.
Ref entering_generator();

// Turns modes on for as long as `generator` runs; `mode` is what leaves them. 0, or -1 with the error set.
int hold_while_running(PyObject* mode, PyObject* generator, const Setting& on);

// Ends what hold_while_running began for this generator, or, if it is null, for any. Whether there was such.
bool end_held(PyObject* mode, PyObject* generator);

}  // namespace pyop
