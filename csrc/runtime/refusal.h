// runtime/refusal.h: refuse what an object that stands for an array does not have.
//
// A symbolic array has no numbers and no memory; a recorded one must not give its numbers away, or the gradient would
// be wrong without a word. Asked for them, they raise. But a function may catch that error and go another way than it
// would with arrays:
//
//     try: scale = float(x[0])
//     except TypeError: scale = 1.0
//
// So a refusal is also noted where a watch is open on its thread, and `call_watched` raises it in the end, whatever the
// function did with it. What NumPy refuses too (the length of an array of no dimension) is no refusal: plain errors do.
//
// Watches are kept by thread. A refusal on a thread without one may be that of a function that works on threads of its
// own (and threading only prints what a thread raised), so all open watches note it. Everything here needs an attached
// thread.
#pragma once

#include "runtime/python.h"
#include "runtime/ref.h"

namespace pyop {

// Raises `type` with a text made as by PyErr_Format, and notes it. Always null.
PYOP_COLD PyObject* refuse(PyObject* type, const char* format, ...);

// Whether a watch is open on this thread: a function is traced or recorded.
bool watching();

// Notes the pending error, which stays pending.
PYOP_COLD void note_pending_refusal();

// Notes an exception that Python code is about to raise.
PYOP_COLD void note_refusal(PyObject* exception);

// Notes an exception in all open watches: it is about what functions on several threads do together.
PYOP_COLD void note_everywhere(PyObject* exception);

// fn(*args, **kwargs), which fails with the first refusal in it even where the function caught that. `kwargs` may be
// null. `of_user`: called by the user's own function, which may catch what this one raises, so the watch around this
// one notes it too. New reference, or null with the error set.
PyObject* call_watched(PyObject* fn, PyObject* args, PyObject* kwargs, bool of_user = false);

}  // namespace pyop
