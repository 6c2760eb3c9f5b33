// plan/group/small_run.h: SmallRun, a LoopGroup on few elements whose shape is known: one block, with all that a run
// looks at (layout.h, cursors.h) looked at beforehand.
//
// Borrows from the group. Immutable; any number of threads run it at once, attached or not.
#pragma once

#include <memory>
#include <vector>

#include "plan/group/loop_group.h"

namespace pyop {

class SmallRun {
  public:
    static constexpr size_t kMostStreams = 24;

    // `repeated`, by external: it is a single element, beside others. Null: a group that needs more than this.
    static std::unique_ptr<SmallRun> make(const LoopGroup& group, int ndim, const npy_intp* shape,
                                          const std::vector<bool>& repeated);

    size_t n_externals() const { return n_externals_; }
    size_t n_results() const { return results_.size(); }
    PyArray_Descr* dtype(size_t result) const { return results_[result].dtype; }
    npy_intp bytes(size_t result) const { return results_[result].bytes; }

    // From externals that lie side by side, aligned, into results apart from them. False: a floating-point flag is up,
    // of this run or an earlier one, or a loop has failed; the flags are cleared.
    bool run(char* const* externals, char* const* results) const;

  private:
    static constexpr size_t kScratch = 4096;  // bytes
    static constexpr size_t kMostOperands = LoopGroup::kMaxOperands;

    struct Operation {
        Kernel kernel;
        const StridedLoop* loop;
        bool test_flags;
        uint16_t streams[kMostOperands];
        npy_intp strides[kMostOperands];
    };
    struct Result {
        PyArray_Descr* dtype;
        npy_intp bytes;
        uint16_t stream;
    };
    struct Scratch {
        uint16_t stream;
        uint32_t offset;
    };
    struct Number {
        uint16_t stream;
        char* data;
    };
    struct Repeated {
        uint16_t external;
        uint32_t offset, itemsize;
    };

    PYOP_COLD static bool clear();

    size_t n_externals_ = 0;
    npy_intp size_ = 1;
    std::vector<Operation> operations_;
    std::vector<Result> results_;
    std::vector<Scratch> scratch_;
    std::vector<Number> numbers_;
    std::vector<Repeated> repeated_;
};

}  // namespace pyop
