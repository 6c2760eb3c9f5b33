// runtime/attach.h: take the GIL on a thread that has none, and give it up on one that has.
//
// All three are for the stack of one thread. After the reaper's close() no thread can attach any more: code
// that runs on a foreign thread must test its AttachScope and do without Python when it is false.
#pragma once

#include "runtime/forced_exit.h"
#include "runtime/meter.h"
#include "runtime/python.h"
#include "runtime/reaper.h"

namespace pyop {

// Attaches the calling thread; a no-op if it is attached already.
//
//     AttachScope scope;
//     if (!scope) return;   // the interpreter is going down: touch nothing of Python's
//
// close() waits a moment for open scopes to end (kScopeGrace in reaper.cpp), so a worker can finish what it
// is at; one that stays in Python beyond that is parked for good, as daemon threads are (forced_exit.h).
class AttachScope {
  public:
    AttachScope() {
        if (attached()) {
            how_ = How::nested;
        } else if (reaper::enter_scope()) {
            gil_ = survive([] { return PyGILState_Ensure(); });
            how_ = How::taken;
        }
    }
    ~AttachScope() {
        if (how_ == How::taken) {
            if (PYOP_UNLIKELY(!attached())) {
                park_thread();  // being unwound because Python ended the thread
            }
            survive([this] { PyGILState_Release(gil_); });
            reaper::leave_scope();
        }
    }
    AttachScope(const AttachScope&) = delete;
    AttachScope& operator=(const AttachScope&) = delete;

    explicit operator bool() const noexcept { return how_ != How::not_at_all; }

  private:
    enum class How : unsigned char { not_at_all, nested, taken };
    How how_ = How::not_at_all;
    PyGILState_STATE gil_ = PyGILState_UNLOCKED;
};

// Detaches the calling thread, which must be attached; does nothing if `wanted` is false, so that "release
// the GIL if there is enough to do" needs no second code path. Give it a block of its own: the value of a
// `return` beneath it is made before the GIL is back, so `Py_RETURN_NONE` there is an unprotected incref.
class DetachScope {
  public:
    explicit DetachScope(bool wanted = true)
        : since_(profiling() && wanted ? ticks() : 0), saved_(wanted ? PyEval_SaveThread() : nullptr) {}
    ~DetachScope() {
        if (saved_ != nullptr) {
            const uint64_t asked = since_ ? ticks() : 0;
            survive([this] { PyEval_RestoreThread(saved_); });
            if (PYOP_UNLIKELY(asked)) {
                meter.released += asked - since_;
                meter.waited += ticks() - asked;
            }
        }
    }
    DetachScope(const DetachScope&) = delete;
    DetachScope& operator=(const DetachScope&) = delete;

  private:
    uint64_t since_;  // for a profile
    PyThreadState* saved_;
};

// Keeps one thread state for the life of a worker thread, detached. Without it every AttachScope of a foreign
// thread makes a thread state and throws it away (300 ns); inside it one costs 50 ns. Put it first on the
// worker's stack. It waits for the GIL once at each end. It also keeps the worker out of an error of 3.11's:
// the child of a fork() that happens while any thread makes or deletes a thread state may hang at once, on
// the interpreter's own lock.
class WorkerScope {
  public:
    WorkerScope() {
        AttachScope scope;
        if (scope) {
            gil_ = PyGILState_Ensure();
            kept_ = PyThreadState_Get();
        }
    }
    ~WorkerScope() {
        if (kept_ == nullptr) {
            return;
        }
        AttachScope scope;
        if (scope) {
            PyGILState_Release(gil_);
        }
        // Otherwise the interpreter deletes the state with its other remains.
    }
    WorkerScope(const WorkerScope&) = delete;
    WorkerScope& operator=(const WorkerScope&) = delete;

  private:
    PyThreadState* kept_ = nullptr;
    PyGILState_STATE gil_ = PyGILState_UNLOCKED;
};

}  // namespace pyop
