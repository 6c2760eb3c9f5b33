// plan/group/viewed_group.h: run a group that reads views which nobody else reads (ViewedGroup).
//
//     out[1:-1] = a[:-2] + a[2:]        two slices of `a`, none of which becomes an object
//
// The group is shown arrays that live on the stack, with data, shape, strides and flags as NumPy would give the views.
// They are no objects: nothing that a group does keeps or passes on what it reads. Where it answers "not this way",
// arrays are made of the views, and its functions are called with these. The memory belongs to the step's inputs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "plan/group/loop_group.h"
#include "plan/steps/view_step.h"

namespace pyop {

class ViewedGroup final : public NativeStep {
  public:
    // What an external of the group is: an input of the step, or what `view` shows of it.
    struct Source {
        uint32_t input;
        std::unique_ptr<const ViewStep> view;  // null: the input itself
    };
    ViewedGroup(std::unique_ptr<const LoopGroup> group, std::vector<Source> sources);

    int run(PyObject* const* inputs, PyObject** results, const StepContext& context) const override;
    int call(const Graph& g, PyObject* const* inputs, PyObject** results) const override;
    bool record(TapeBuilder& tape, const TapeValue* inputs, TapeValue* results) const override;
    std::string describe(size_t member) const override;
    bool takes_part_targets() const override { return true; }
    size_t scratch_bytes() const override { return group_->scratch_bytes(); }

  private:
    std::unique_ptr<const LoopGroup> group_;
    std::vector<Source> sources_;   // by external
    std::vector<uint64_t> dying_;   // by input: the external that alone reads it, as a bit; 0: several, or a view
    size_t n_views_ = 0;            // externals
    size_t n_view_members_ = 0;     // the first ones
};

}  // namespace pyop
