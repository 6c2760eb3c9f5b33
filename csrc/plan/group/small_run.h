// plan/group/small_run.h: run a LoopGroup on few elements whose shape is known: one block, with all that a run looks
// at (layout.h, cursors.h) worked out beforehand (SmallRun).
//
// Borrows from the group. Immutable; any number of threads run it at once, attached or not.
#pragma once

#include <memory>
#include <vector>

#include "array/loop/fp_flags.h"
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

    // Where a result goes in `streams`, in which the externals come first.
    uint16_t stream(size_t result) const { return results_[result].stream; }

    // `streams` has the addresses of externals that lie side by side, aligned, and of results apart from them; there is
    // room for kMostStreams. False: a floating-point flag is up, of this run or an earlier one, or a loop has failed;
    // the flags are cleared.
    PYOP_INLINE bool run(char** streams) const {
        if (PYOP_UNLIKELY(!only_)) return run_all(streams);
        char* data[kMostOperands];
        gather_operands(operations_[0], streams, data);
        operations_[0].kernel(data, size_);
        return PYOP_LIKELY(fp_errors() == 0) || clear();
    }

  private:
    static constexpr size_t kScratch = 4096;  // bytes
    static constexpr size_t kMostOperands = LoopGroup::kUsualOperands;

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

    // All places, used or not: a loop of known length costs less than one that stops in time.
    static PYOP_INLINE void gather_operands(const Operation& op, char* const* streams, char** data) {
#pragma GCC unroll 8
        for (size_t k = 0; k < kMostOperands; ++k) data[k] = streams[op.streams[k]];
    }
    bool run_all(char** streams) const;
    PYOP_COLD static bool clear();

    bool only_ = false;  // one kernel on externals

    size_t n_externals_ = 0;
    npy_intp size_ = 1;
    std::vector<Operation> operations_;
    std::vector<Result> results_;
    std::vector<Scratch> scratch_;
    std::vector<Number> numbers_;
    std::vector<Repeated> repeated_;
};

}  // namespace pyop
