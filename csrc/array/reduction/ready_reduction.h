// array/reduction/ready_reduction.h: prepare a reduction of arrays of one layout, with all that the layout decides
// worked out once (ReadyReduction).
#pragma once

#include "array/reduction/reduction.h"
#include "array/reduction/reduction_walk.h"

namespace pyop {

class ReadyReduction {
  public:
    static constexpr npy_intp kMostElements = 1024;

    // False where only a run can tell how NumPy cuts it, and for more elements. The Reduction lives as long. Attached
    // threads; sets no error.
    bool make(const Reduction& reduction, PyArrayObject* like, uint32_t axes);

    // As Reduction::run_into. Any thread, if the loop is NumPy's own for numbers: they set no Python error. False if
    // it failed. Flags are left raised as the loop leaves them, but for those that mean nothing.
    bool run(const char* in, char* out) const;

    const ReductionWalk& walk() const { return walk_; }

  private:
    const Reduction* reduction_ = nullptr;
    ReductionWalk walk_;
    int cut_ = 0;
};

}  // namespace pyop
