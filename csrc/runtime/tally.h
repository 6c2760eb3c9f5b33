// runtime/tally.h: count over all threads what a hot path looks at first: graphs being built, ... (Tally).
//
// A thread sees its own changes, and others' soon: what it guards is kept per thread or per context, so a thread that
// sees somebody else's entry late loses nothing. Where a GIL guards it a change is an ordinary addition.
#pragma once

#include <atomic>  // std::atomic

#include "runtime/python.h"

namespace pyop {

class Tally {
  public:
    PYOP_INLINE operator long() const noexcept { return n_.load(std::memory_order_relaxed); }

    Tally& operator+=(long by) noexcept {
#ifdef Py_GIL_DISABLED
        n_.fetch_add(by, std::memory_order_relaxed);
#else
        n_.store(*this + by, std::memory_order_relaxed);
#endif
        return *this;
    }
    Tally& operator-=(long by) noexcept { return *this += -by; }
    Tally& operator++() noexcept { return *this += 1; }
    Tally& operator--() noexcept { return *this -= 1; }

  private:
    std::atomic<long> n_{0};
};

}  // namespace pyop
