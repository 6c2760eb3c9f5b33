// plan/python_threads.h: pool the Python threads that help with concurrent plans.
//
// A run asks for helpers and gets them at once: idle ones first, then new ones, so that N threads are N
// threads however deep runs are nested; nobody waits for a helper to become free. Helpers are daemon threads of
// Python's own making (threading.Thread), so that debuggers, profilers and thread-locals see ordinary threads.
// Between jobs they wait detached; a few stay for the next run, the rest end.
//
// Exit: an atexit hook wakes the idle ones to end and lets them go; a helper inside a user's function is
// treated as Python treats any daemon thread. Fork: the child starts with none.
#pragma once

#include <memory>

#include "runtime/python.h"

namespace pyop {

class Job {
  public:
    virtual ~Job() = default;
    // Called once on a helper, attached. Leaves no error set.
    virtual void help() = 0;
};

// Engages up to `n` helpers for the job. Attached threads. Fewer than asked may come (the system may refuse a
// thread): the asking thread must be able to do the work alone. Returns 0, or -1 with the error of something else that
// happened meanwhile (Ctrl-C, or what another signal handler raised).
int engage_threads(int n, const std::shared_ptr<Job>& job);

int python_threads_init(PyObject* module);

}  // namespace pyop
