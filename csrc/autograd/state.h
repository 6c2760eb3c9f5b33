// autograd/state.h: what autograd keeps for each thread.
#pragma once

#include <utility>  // std::exchange

#include "runtime/python.h"

namespace pyop {

class Run;
struct GradNode;

struct AutogradState {
    bool recording = true;          // "grad mode"
    bool anomaly = false;           // remember where nodes were made, look for NaN in backward
    bool check_nan = true;          // with anomaly
    Run* run = nullptr;             // the innermost backward run on this thread, and the node it is at
    GradNode* node = nullptr;
    int transformations = 0;        // how many functions of transformations are running
    int forward_level = 0;          // > 0 inside pyop.autograd.jvp: Tensors may carry tangents
};

inline constinit thread_local AutogradState autograd_state;

// Sets the recording mode for a scope.
class Recording {
  public:
    explicit Recording(bool on) noexcept : before_(std::exchange(autograd_state.recording, on)) {}
    ~Recording() { autograd_state.recording = before_; }
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;

  private:
    bool before_;
};

}  // namespace pyop
