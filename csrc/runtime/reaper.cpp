// runtime/reaper.cpp: bury references that were dropped without the GIL. Rules: shared_ref.h.
#include "runtime/reaper.h"

#include <pthread.h>  // pthread_atfork
#include <sched.h>    // sched_yield

#include <chrono>  // std::chrono::steady_clock
#include <thread>  // std::this_thread::sleep_for

#include "runtime/attach.h"
#include "runtime/errors.h"
#include "runtime/ref.h"

namespace pyop {
namespace reaper {

constinit State state;

namespace {

constexpr std::uint64_t kClosed = 1;
constexpr std::uint64_t kInside = 2;
constexpr std::uint64_t kBuried = std::uint64_t{1} << 21;
constexpr std::uint64_t kInsideMask = (kBuried - 1) & ~kClosed;

constexpr std::uint32_t kScopesClosed = 1;
constexpr std::uint32_t kScope = 2;

// How long close() lets foreign threads finish what they do inside an AttachScope.
constexpr std::chrono::milliseconds kScopeGrace{2000};

// This thread's part of State::scopes: what is left of it in a child forked from here.
thread_local std::uint32_t own_scopes = 0;

int drain_pending(void*) {
    // Cleared before the graveyard is emptied: a burial in between then queues a call that finds nothing,
    // instead of relying on one that has been.
    state.scheduled.store(false, std::memory_order_seq_cst);
    drain();
    return 0;
}

PYOP_COLD void schedule() noexcept {
    if (!state.scheduled.exchange(true, std::memory_order_seq_cst)) {
        if (Py_AddPendingCall(drain_pending, nullptr) != 0) {
            state.scheduled.store(false, std::memory_order_seq_cst);  // queue full: the next burial retries
        }
    }
}

// In the child, on its only thread. No allocation, no lock: the parent may have been anywhere.
void after_fork_in_child() noexcept {
    std::uint64_t queued = 0;
    for (RefBox* box = state.graveyard.load(std::memory_order_relaxed); box != nullptr; box = box->next) {
        ++queued;
    }
    const std::uint64_t closed = state.gate.load(std::memory_order_relaxed) & kClosed;
    state.gate.store(queued * kBuried | closed, std::memory_order_relaxed);
    const std::uint32_t scopes_closed = state.scopes.load(std::memory_order_relaxed) & kScopesClosed;
    state.scopes.store(own_scopes * kScope | scopes_closed, std::memory_order_relaxed);
    state.scheduled.store(false, std::memory_order_relaxed);
    state.drained.store(0, std::memory_order_relaxed);
    state.leaked.store(0, std::memory_order_relaxed);
}

void wait_for_scopes() {
    const auto others_inside = [] { return state.scopes.load(std::memory_order_acquire) / kScope > own_scopes; };
    if (!others_inside()) {
        return;
    }
    DetachScope let_them_run;
    const auto deadline = std::chrono::steady_clock::now() + kScopeGrace;
    while (others_inside() && std::chrono::steady_clock::now() < deadline) {
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
}

// The last call of a finalized interpreter. Only of use where somebody cleared Python's atexit table.
void seal() {
    state.scopes.fetch_or(kScopesClosed, std::memory_order_seq_cst);
    state.gate.fetch_or(kClosed, std::memory_order_seq_cst);
}

PyObject* close_from_atexit(PyObject*, PyObject*) {
    reaper_close();
    Py_RETURN_NONE;
}

PyMethodDef close_method = {"_reaper_close", close_from_atexit, METH_NOARGS,
                            "Release what detached threads dropped, and stop accepting more."};

}  // namespace

void bury(RefBox* box) noexcept {
    // Counted on the way in, so that no box is drained that was not counted.
    if (PYOP_UNLIKELY(state.gate.fetch_add(kInside + kBuried, std::memory_order_seq_cst) & kClosed)) {
        state.leaked.fetch_add(1, std::memory_order_relaxed);
        state.gate.fetch_sub(kInside + kBuried, std::memory_order_release);
        return;
    }
    RefBox* head = state.graveyard.load(std::memory_order_relaxed);
    do {
        box->next = head;
    } while (!state.graveyard.compare_exchange_weak(head, box, std::memory_order_seq_cst, std::memory_order_relaxed));
    // The interpreter cannot go away meanwhile: close() waits for this thread.
    if (PYOP_UNLIKELY(!state.scheduled.load(std::memory_order_seq_cst))) {
        schedule();
    }
    state.gate.fetch_sub(kInside, std::memory_order_release);
}

bool enter_scope() noexcept {
    if (state.scopes.fetch_add(kScope, std::memory_order_seq_cst) & kScopesClosed) {
        state.scopes.fetch_sub(kScope, std::memory_order_release);
        return false;
    }
    ++own_scopes;
    return true;
}

void leave_scope() noexcept {
    --own_scopes;
    state.scopes.fetch_sub(kScope, std::memory_order_release);
}

}  // namespace reaper

using reaper::state;

std::uint64_t drain() {
    RefBox* newest = state.graveyard.exchange(nullptr, std::memory_order_seq_cst);
    if (newest == nullptr) {
        return 0;
    }
    RefBox* oldest = nullptr;
    std::uint64_t count = 0;
    while (newest != nullptr) {
        RefBox* next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
        ++count;
    }
    // Counted before the finalizers run: one of them may fork, or ask for the numbers.
    state.drained.fetch_add(count, std::memory_order_relaxed);
    const SavedError keep;  // out of the way of finalizers
    while (oldest != nullptr) {
        RefBox* next = oldest->next;
        PyObject* object = oldest->object;
        PyMem_Free(oldest);
        decref(object);
        oldest = next;
    }
    return count;
}

void reaper_close() {
    state.scopes.fetch_or(reaper::kScopesClosed, std::memory_order_seq_cst);
    reaper::wait_for_scopes();
    // A finalizer may make another thread drop references: while anything comes, the gate stays open.
    while (drain() != 0) {
    }
    state.gate.fetch_or(reaper::kClosed, std::memory_order_seq_cst);
    while ((state.gate.load(std::memory_order_acquire) & reaper::kInsideMask) != 0) {
        sched_yield();
    }
    drain();
}

int reaper_init(PyObject* module) {
    static bool hooked = false;  // with the process
    static bool opened = false;  // with this interpreter (one that is initialised anew opens again)
    if (opened && !reaper_stats().closed) {
        return 0;
    }
    Ref atexit = Ref::steal(PyImport_ImportModule("atexit"));
    if (!atexit) {
        return -1;
    }
    Ref close = Ref::steal(PyCFunction_New(&reaper::close_method, module));
    if (!close) {
        return -1;
    }
    Ref done = Ref::steal(PyObject_CallMethod(atexit.get(), "register", "(O)", close.get()));
    if (!done) {
        return -1;
    }
    if (!hooked) {
        if (pthread_atfork(nullptr, nullptr, reaper::after_fork_in_child) != 0) {
            PyErr_NoMemory();
            return -1;
        }
        hooked = true;
    }
    Py_AtExit(reaper::seal);  // a table of 32; when it is full, atexit alone does
    state.scopes.fetch_and(~reaper::kScopesClosed, std::memory_order_seq_cst);
    state.gate.fetch_and(~reaper::kClosed, std::memory_order_seq_cst);
    opened = true;
    return 0;
}

ReaperStats reaper_stats() noexcept {
    const std::uint64_t gate = state.gate.load(std::memory_order_acquire);
    return {gate / reaper::kBuried, state.drained.load(std::memory_order_relaxed),
            state.leaked.load(std::memory_order_relaxed), (gate & reaper::kClosed) != 0};
}

}  // namespace pyop
