// plan/group/loop_group.h: run elementwise operations together, block by block (LoopGroup).
//
//     for each block of elements:  for each operation:  one call of a kernel or of NumPy's inner loop
//
// Operations work on streams: arrays from outside, numbers, intermediate results in scratch blocks that stay in cache,
// and results. A stream is read where it lies if its elements lie side by side; single elements are repeated and
// everything else is gathered into a scratch block first. Some of NumPy's loops round otherwise for elements that do
// not lie side by side; such a loop gets the strides that NumPy would give it, or the ufunc is called. Slices of
// arrays of one shape are read as one stretch, with the gaps between their lines (lines.h).
//
// A reduction over all axes, or the last ones, takes the elements from the block when the operations on it are done.
//
// Floating-point errors are NumPy's: the flags are looked at after every block, and a block that raised one is run
// once more, operation by operation, to learn which ones raised what (diagnose). When the run is over they
// are reported as np.errstate asks, in the order of the calls.
//
// A LoopGroup is immutable but for the results it hands out again; any number of threads run it at once. Runs over many
// elements give up the GIL, and share the work between `threads`.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "array/loop/strided_loop.h"
#include "array/memory/recycle.h"
#include "plan/group/group_ir.h"
#include "plan/native_step.h"
#include "runtime/release_gil.h"

namespace pyop {

struct GroupLayout;

class LoopGroup final : public NativeStep {
  public:
    // `combined` is `plain` after combine(); `numbers` are rank-0 arrays.
    LoopGroup(Fallback fallback, const GroupIr& plain, const GroupIr& combined, std::vector<Ref> numbers);

    int run(PyObject* const* inputs, PyObject** results, const StepContext& context) const override;
    bool record(TapeBuilder& tape, const TapeValue* inputs, TapeValue* results) const override;
    std::string describe(size_t member) const override;
    const LoopGroup* as_group() const override { return this; }
    bool takes_part_targets() const override { return true; }
    // What the group reads of an external.
    PyArray_Descr* external_dtype(size_t k) const { return code_.streams[k].dtype; }
    size_t scratch_bytes() const override { return static_cast<size_t>(block_bytes_) * n_blocks_; }

  private:
    friend struct GroupLayout;
    friend class GroupRun;
    friend struct GroupState;
    friend class GroupCursors;
    friend class GroupCompiler;
    friend class SmallRun;

    static constexpr size_t kMaxOperands = GroupIr::kMaxOperands, kUsualOperands = 8;

    bool record_blocks(TapeBuilder& tape, const TapeValue* inputs, TapeValue* results) const;

    struct Operation {
        Kernel kernel;  // or
        const StridedLoop* loop;
        const StridedLoop* of_number;  // what a kernel calls for a single number; null: itself
        uint16_t member;
        uint8_t n_operands;
        bool test_flags;  // after it: the next one may clear them, or it is the last of a block
        int16_t leaves;  // the output that it computes, if it is a kernel and nobody reads that in the group; else -1
        pyop::Operation does;  // of a kernel; None if it is another
        Element element;
        std::array<uint16_t, kMaxOperands> streams;
    };
    struct Stream {
        enum Kind : uint8_t { External, Number, Scratch, Output } kind;
        uint16_t index;  // of the external, number or output
        int16_t block = -1;  // its scratch block; of an external: for elements that must be repeated or gathered
        npy_intp itemsize;
        PyArray_Descr* dtype;  // borrowed; lives for ever
    };
    struct Reduction {
        std::shared_ptr<const RowsReduced> what;
        uint16_t member;
        int output;  // -1: nobody reads it
    };
    struct Code {
        std::vector<Operation> operations;
        std::vector<uint16_t> reduced;  // by reduction: the stream it reads
        std::vector<Stream> streams;  // externals first, in order
    };

    Code code_;  // with superinstructions
    Code plain_;  // one operation a call: tells which one raised a flag
    std::vector<Reduction> reductions_;
    std::vector<int16_t> reduction_of_output_;  // -1: elements
    std::vector<std::shared_ptr<const StridedLoop>> loops_;
    std::vector<std::string> names_;  // by member: as warnings have it
    std::vector<GroupIr::Indices> does_members_;  // by operation of code_: what it computes, for describe
    std::vector<Ref> numbers_;  // keep number_blocks_' dtypes alive
    std::vector<std::unique_ptr<char[]>> number_blocks_;  // each number, repeated over a block
    size_t n_externals_ = 0;
    std::vector<uint16_t> output_streams_;  // of code_ and plain_ alike
    std::vector<uint64_t> depends_;  // by output: the externals it depends on
    uint64_t strict_ = 0;  // externals that NumPy's loops read
    uint64_t cast_ = 0;  // those they read beside another operand, brought to another dtype
    uint64_t copied_ = 0;  // those that are brought to another dtype, as astype does
    uint64_t single_ = 0;  // those of which kernels of code_ read one element: plain_ is run if one has more
    npy_intp release_at_ = kReleaseElements;  // elements from which on it does without the GIL
    bool may_fail_ = false;  // some loop may set a Python error
    bool in_place_ = false;  // some of it is augmented assignment
    bool may_decline_ = false;  // when it has begun: results must not lie where it reads
    npy_intp block_ = 0;  // elements
    npy_intp widest_ = 1;  // bytes of the widest element
    npy_intp block_bytes_ = 0;  // distance of scratch blocks
    size_t n_blocks_ = 0;
    mutable std::vector<ResultRecycler> recyclers_;  // by output; the GIL guards them
};

}  // namespace pyop
