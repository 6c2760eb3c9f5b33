// entry/blas_calls.h: guard native calls that use BLAS, which ends before the process does.
//
// OpenBLAS takes its tables down when the process runs its last destructors. Threads that Python does not know may be
// calling then: a call that is in a product would read through null. So such calls are counted, and when Python begins
// to shut down no further ones go that way (they ask for Python, and are told PYOP_SHUT_DOWN when that has gone), and
// Python waits for those that are under way.
//
// Its lock has no handler of fork() either: in a child that was made while a thread had it, a product would wait for
// ever. So fork() waits for the calls under way, and holds others up. What is not called through here it does not see.
#pragma once

#include <atomic>

namespace pyop {

// For the length of a call. Any thread; false if BLAS may be gone before it is over.
class BlasCall {
  public:
    explicit BlasCall(bool needed);
    ~BlasCall() {
        if (inside_) inside_->fetch_sub(1, std::memory_order_release);
    }
    BlasCall(const BlasCall&) = delete;
    BlasCall& operator=(const BlasCall&) = delete;
    explicit operator bool() const { return allowed_; }

  private:
    std::atomic<long>* inside_ = nullptr;
    bool allowed_ = true;
};

// Has fork() wait, from now on. 0, or -1 with the error set.
int hold_blas_calls_at_fork();

// No further calls; waits for those under way, for two seconds at most. Without the GIL, which they may be asking for.
void end_blas_calls();

}  // namespace pyop
