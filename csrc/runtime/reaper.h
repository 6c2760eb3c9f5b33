// runtime/reaper.h: tell who is attached, and handle references dropped by threads that are not.
//
// The states and rules are told at the top of shared_ref.h; this is the machinery. Above csrc/runtime
// only three things are wanted from here: attached(), reaper_poll() at the entry of every op and plan,
// and, once, reaper_init() from the module's initialisation.
#pragma once

#include <atomic>   // std::atomic
#include <cstdint>  // uint64_t

#include "runtime/python.h"

namespace pyop {

// Has the calling thread a thread state attached, that is: may it touch Python objects now? Callable from
// any thread at any time, even after finalization.
//
// The likelier-looking tests are all wrong somewhere. Py_IsInitialized() says no while modules are torn
// down (when decref is fine) and yes to threads that hold nothing; PyGILState_Check() says yes in static
// destructors; and up to 3.11 the current thread state is a global of the process, hence somebody
// else's unless it equals the one that belongs to this thread.
PYOP_INLINE bool attached() noexcept {
#if PY_VERSION_HEX >= 0x030D0000
    return PyThreadState_GetUnchecked() != nullptr;
#elif PY_VERSION_HEX >= 0x030C0000
    return _PyThreadState_UncheckedGet() != nullptr;
#else
    PyThreadState* mine = PyGILState_GetThisThreadState();
    return mine != nullptr && mine == _PyThreadState_UncheckedGet();
#endif
}

// An owned reference and, once dropped by a detached thread, its own link in the graveyard. Comes from
// PyMem_Malloc and so is made and freed by attached threads only: 16 bytes, no malloc header.
struct RefBox {
    PyObject* object;
    RefBox* next;
};

struct ReaperStats {
    std::uint64_t deferred;  // dropped by detached threads and put in the graveyard
    std::uint64_t drained;   // taken out of it and decref'ed
    std::uint64_t leaked;    // dropped by detached threads after close(): never decref'ed
    bool closed;
};

namespace reaper {

struct State {
    // The graveyard: a stack of boxes. Anybody pushes; only attached threads pop, and only all of it.
    alignas(64) std::atomic<RefBox*> graveyard{nullptr};
    // Bit 0: closed. Bits 1-20: threads inside bury(). Bits 21-63: boxes buried so far. One word, so
    // that finding the gate open and being counted as inside is a single step.
    alignas(64) std::atomic<std::uint64_t> gate{0};
    std::atomic<bool> scheduled{false};  // a pending call is queued with the interpreter
    // Bit 0: closed. The rest: threads inside an AttachScope that had to take the GIL.
    std::atomic<std::uint32_t> scopes{0};
    alignas(64) std::atomic<std::uint64_t> drained{0};
    std::atomic<std::uint64_t> leaked{0};
};

// Constant-initialised and trivially destroyed: valid before and after everything else in the process.
extern __attribute__((visibility("hidden"))) State state;

// Takes over a box from a detached thread. Never blocks, allocates or throws.
void bury(RefBox* box) noexcept;

// AttachScope's way through the gate. enter: false once closed. Both: any thread.
bool enter_scope() noexcept;
void leave_scope() noexcept;

}  // namespace reaper

// Decrefs all that lies in the graveyard, oldest first; returns how many. Attached threads. Keeps the error
// indicator. Runs arbitrary finalizers, which may come back here: each call takes what it finds.
std::uint64_t drain();

// drain() if there is anything: one predictable branch when there is not. Attached threads.
PYOP_INLINE void reaper_poll() {
    if (PYOP_UNLIKELY(reaper::state.graveyard.load(std::memory_order_relaxed) != nullptr)) {
        drain();
    }
}

// Opens the reaper and registers its close() with Python's atexit and its hook with fork(). To be called
// by the module's initialisation; again is harmless. Returns 0, or -1 with the Python error set.
int reaper_init(PyObject* module);

// What atexit runs. Attached threads; again is harmless.
void reaper_close();

// A snapshot. Any thread.
ReaperStats reaper_stats() noexcept;

}  // namespace pyop
