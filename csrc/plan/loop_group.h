// plan/loop_group.h: several native loops run block by block, without temporaries of full size.
//
//     for each block of elements:  for each step:  one call of NumPy's inner loop
//
// Intermediate results live in scratch blocks that stay in cache. What cannot be run that way (an operand that
// is neither contiguous nor a single number, another dtype than promised) and what raised a floating-point flag is
// computed by calling the ufuncs one by one instead: same results, and warnings as NumPy gives them.
#pragma once

#include <memory>
#include <vector>

#include "array/strided_loop.h"
#include "graph/passes/fuse.h"
#include "plan/native_step.h"

namespace pyop {

struct LoopOperand {
    enum Place : uint8_t { External, Number, Scratch, Output } place;
    uint16_t index;
};

struct LoopStep {
    std::shared_ptr<const StridedLoop> loop;
    std::vector<LoopOperand> operands;  // inputs, then outputs
};

class LoopGroup final : public NativeStep {
  public:
    int run(PyObject* const* inputs, PyObject** results, const StepContext& context) const override;
    std::string describe(size_t member) const override;
    size_t scratch_bytes() const override;
    Members& members() { return members_; }
    using NativeStep::members;

    std::vector<LoopStep> steps;
    std::vector<Ref> numbers;                 // Python numbers as rank-0 arrays of the dtype their loop wants
    std::vector<PyArray_Descr*> externals;    // the dtype each external array must have; borrowed from a loop
    std::vector<PyArray_Descr*> outputs;      // borrowed from a loop
    std::vector<uint64_t> depends;            // by output: the externals it depends on
    uint32_t n_scratch = 0;
    uint32_t scratch_itemsize = 0;            // of the widest scratch value
};

}  // namespace pyop
