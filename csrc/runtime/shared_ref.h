// runtime/shared_ref.h: own a Python object that may die on any thread (SharedRef).
//
// For C++ objects that Python does not know (nodes, plans, queues of work): their last owner may be a
// worker without the GIL, a thread the GIL holder is joining, or a static destructor. Taking the GIL there
// deadlocks in the second case and crashes in the third; so a SharedRef that dies without it is *buried*.
// For code that always has the GIL, Ref (ref.h) is smaller and faster.
//
// States of one owned reference
//
//      steal / borrow / clone
//                │
//                ▼            attached: decref at once
//             [ held ] ──────────────────────────────────────────────► [ released ]
//                │                                                        ▲
//                │ detached, reaper open                    drain()        │
//                ├──────────────► bury ──► [ in the graveyard ] ───────────┤
//                │ detached, reaper closed                                 ╵ (attached)
//                └──────────────► [ leaked ], on purpose and counted
//
// Who may do what
//   make, clone, visit, new_ref    attached threads
//   get, move, swap, test          any thread that has the SharedRef to itself
//   reset, destroy                 any thread, at any time of the process's life
//   drain                          attached threads: a pending call on the main thread, the entry of every op
//                                  and plan (reaper_poll), pyop.debug.collect(), and close()
//
// Invariants
//   I1  A box (the object and one link) is allocated with the reference, never at its death. So death
//       allocates nothing, cannot fail, throws nothing.
//   I2  Death on a detached thread takes no GIL and waits for nobody: two atomic additions, one push, and
//       for the first box of a batch one Py_AddPendingCall (whose own lock is held for nanoseconds).
//       `__del__` therefore never runs on a thread that holds C++ locks and no GIL.
//   I3  Boxes leave the graveyard all at once, by one exchange: no ABA, and two drains share nothing.
//   I4  If the graveyard is not empty and the reaper open, a pending call is queued, or was refused because
//       the interpreter's queue was full; then the next burial, op entry or collect() makes up for it. The
//       main thread runs it between two bytecodes (up to 3.12: after it next takes the GIL). Only memory
//       waits.
//   I5  Whoever passed the gate while it was open is seen by close(): gate and count are one word.
//
// Shutdown. close() runs from Python's atexit, hence after non-daemon threads were joined and before any
// module is torn down. It lets foreign threads leave their AttachScopes, shuts the gate, waits for those
// inside bury() (none of which can be waiting for the GIL) and drains the rest. Afterwards attached threads
// (module teardown, capsule destructors) still decref as ever; detached ones, and C++ static destructors,
// leak. `leaked` is 0 at the end of any program whose threads stopped before it did.
//
// Fork. The child has one thread, so whoever else was inside bury() never leaves it: a pthread_atfork hook
// forgets them, and the pending call as well. The graveyard is consistent at every instruction and is kept.
// The counters start anew. A box that another thread had in its hands is lost to the child, like everything
// else on that thread's stack.
//
// Free threading: unchanged. "Attached" speaks of a thread state, not of a lock.
// Subinterpreters: unsupported.
#pragma once

#include <utility>  // std::exchange, std::swap

#include "runtime/forced_exit.h"
#include "runtime/python.h"
#include "runtime/reaper.h"

namespace pyop {

class SharedRef {
  public:
    SharedRef() noexcept = default;
    SharedRef(SharedRef&& other) noexcept : box_(std::exchange(other.box_, nullptr)) {}
    SharedRef& operator=(SharedRef&& other) noexcept {
        // The old reference dies last, when this already holds the new one: its finalizer may look here.
        SharedRef old(std::move(other));
        std::swap(box_, old.box_);
        return *this;
    }
    SharedRef(const SharedRef&) = delete;  // a copy needs an attached thread and may fail: clone()
    SharedRef& operator=(const SharedRef&) = delete;
    ~SharedRef() {
        if (box_ != nullptr) {
            release(box_);
        }
    }

    // Takes over the caller's reference. Null makes an empty one (the error is the caller's). Out of
    // memory: drops the reference, sets MemoryError, returns an empty one. Attached threads.
    [[nodiscard]] static SharedRef steal(PyObject* object) noexcept {
        if (PYOP_UNLIKELY(object == nullptr)) {
            return {};
        }
        auto* box = static_cast<RefBox*>(PyMem_Malloc(sizeof(RefBox)));
        if (PYOP_UNLIKELY(box == nullptr)) {
            PyErr_NoMemory();
            decref(object);
            return {};
        }
        *box = {object, nullptr};
        return SharedRef(box);
    }
    // Adds a reference of its own; otherwise as steal().
    [[nodiscard]] static SharedRef borrow(PyObject* object) noexcept { return steal(Py_XNewRef(object)); }
    // A second reference to the same object; otherwise as steal().
    [[nodiscard]] SharedRef clone() const noexcept { return borrow(get()); }

    // Borrowed; null if empty.
    PyObject* get() const noexcept { return box_ != nullptr ? box_->object : nullptr; }
    // New reference; null if empty. Attached threads.
    PyObject* new_ref() const noexcept { return Py_XNewRef(get()); }
    explicit operator bool() const noexcept { return box_ != nullptr; }

    // Drops the reference now. Any thread.
    void reset() noexcept {
        if (RefBox* box = std::exchange(box_, nullptr)) {
            release(box);
        }
    }

    // For the tp_traverse of a Python object that is the only owner of this (report each edge once).
    int visit(visitproc visitor, void* arg) const { return box_ != nullptr ? visitor(box_->object, arg) : 0; }

  private:
    explicit SharedRef(RefBox* box) noexcept : box_(box) {}

    PYOP_INLINE static void release(RefBox* box) noexcept {
        if (PYOP_LIKELY(attached())) {
            PyObject* object = box->object;
            PyMem_Free(box);
            decref(object);
        } else {
            reaper::bury(box);
        }
    }

    RefBox* box_ = nullptr;
};

static_assert(sizeof(SharedRef) == sizeof(void*));

}  // namespace pyop
