// runtime/interrupt.h: notice Ctrl-C within a long computation that has given up the GIL.
//
// Python runs signal handlers on its main thread, when that is attached and looks. A loop of minutes must stop now and
// then and look itself; Interrupts says when, and keeps what a handler raised until the loop is over.
#pragma once

#include <atomic>
#include <chrono>

#include "runtime/attach.h"
#include "runtime/errors.h"

namespace pyop {

class Interrupts {
  public:
    // On the thread that listens from now on, attached. Without it nobody does.
    void begin() {
        listener_ = PyThread_get_thread_ident();
        last_ = Clock::now();
    }

    // Whether this thread should listen now. Any thread, attached or not.
    bool due() const { return listener_ && listener_ == PyThread_get_thread_ident() && Clock::now() - last_ > kPause; }

    // Runs the handlers of signals that have come. They may run anything.
    void listen() {
        {
            const AttachScope attached;
            if (attached && PyErr_CheckSignals() < 0) {
                error_ = take_pending();
                raised_.store(true, std::memory_order_relaxed);
            }
        }
        last_ = Clock::now();
    }

    // Whether a handler has raised: the computation is to end. Any thread.
    bool raised() const { return raised_.load(std::memory_order_relaxed); }

    // Makes that the pending error. Attached.
    void raise() { restore_pending(std::move(error_)); }

  private:
    using Clock = std::chrono::steady_clock;
    static constexpr std::chrono::milliseconds kPause{30};

    unsigned long listener_ = 0;
    Clock::time_point last_;
    Ref error_;
    std::atomic<bool> raised_ = false;
};

}  // namespace pyop
