// entry/failure.h: keep what the last failed call from C on a thread had to report.
//
// The exception is kept for a thread that has no GIL to have it set: by a SharedRef, since such a thread may end at any
// time, with Python or without.
#pragma once

#include "runtime/ref.h"

namespace pyop {

// A Python error is set, on an attached thread: its words are kept. Unless `attached_before` it is taken out of the
// thread state, and kept for raise_failure(). Returns PYOP_RAISED.
int failed_with_error(bool attached_before);

// Without Python. Returns `status`.
int failed_with(int status, const char* message);

int failed_for_memory();

const char* failure_message();

// Attached threads. -1 with the error set.
int raise_failure();

// The exception that was kept, once; new reference, None if there is none. Attached threads.
PyObject* take_failure();

// For who calls C from Python and asks for no status: the error that is set is raised on this thread as soon as its
// Python code goes on. Until then `waits_to_raise`, and what is asked again need not be computed: without an error set,
// the one that waits is announced anew. Attached threads.
void raise_later();
extern constinit thread_local bool waits_to_raise;

// The exception that was kept for later; new reference. For the class that raise_later() raises.
PyObject* take_later(PyObject*, PyObject*);

}  // namespace pyop
