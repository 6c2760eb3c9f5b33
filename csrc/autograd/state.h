// autograd/state.h: hold the state of autograd for each thread.
#pragma once

#include <cstdint>
#include <utility>

#include "runtime/python.h"
#include "runtime/tally.h"

namespace pyop {

class Run;
struct ForwardRun;
struct GradNode;

struct AutogradState {
    bool recording = true;          // "grad mode"; ask is_recording()
    bool anomaly = false;           // remember where nodes were made, look for NaN in backward
    bool check_nan = true;          // with anomaly
    Run* run = nullptr;             // the innermost backward run on this thread, and the node it is at
    GradNode* node = nullptr;
    int transformations = 0;        // how many functions of transformations are running
    ForwardRun* forward = nullptr;  // the innermost run forward that this thread is in (forward.h); borrowed
    uint64_t still = 0;             // tangents of runs forward up to this number do not move on this thread
};

inline constinit thread_local AutogradState autograd_state;

// How many functions of transformations are running on all threads.
inline constinit Tally transformations_anywhere;

// How many modes of generators and coroutines are entered or on, on all threads (suspended_modes.h).
inline constinit Tally suspended_modes;
PYOP_COLD void follow_suspended() noexcept;

// Whether this thread records.
PYOP_INLINE bool is_recording() {
    if (PYOP_UNLIKELY(suspended_modes != 0)) follow_suspended();
    return autograd_state.recording;
}

// Sets the recording mode for a scope.
class Recording {
  public:
    explicit Recording(bool on) : before_(is_recording()) { autograd_state.recording = on; }
    ~Recording() {
        if (PYOP_UNLIKELY(suspended_modes != 0)) follow_suspended();
        autograd_state.recording = before_;
    }
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;

  private:
    bool before_;
};

// What it is in the scope, and afterwards what it was.
template <typename T>
class Within {
  public:
    Within(T& mode, T value) noexcept : mode_(mode), before_(std::exchange(mode, value)) {}
    ~Within() { mode_ = before_; }
    Within(const Within&) = delete;
    Within& operator=(const Within&) = delete;

  private:
    T& mode_;
    const T before_;
};

}  // namespace pyop
