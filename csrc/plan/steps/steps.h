// plan/steps/steps.h: declare the native steps that stand for one node each.
#pragma once

#include <memory>

#include "graph/passes/rewrite.h"
#include "plan/native_step.h"

namespace pyop {

// Each makes a step for a node if it is of its kind and enough is known of it; else leaves `step` null.
// 0, or -1 with an error set.
using StepMaker = int(const Rewrite& r, uint32_t node, std::unique_ptr<NativeStep>& step);

StepMaker make_view;
StepMaker make_reduce_step;
StepMaker make_mean_step;
StepMaker make_composed_reduction;
StepMaker make_gufunc_step;
StepMaker make_outer_step;
StepMaker make_accumulate_step;
StepMaker make_function_step;
StepMaker make_number_step;
StepMaker make_element_step;
StepMaker make_size_step;
StepMaker make_join_step;
StepMaker make_take_step;
StepMaker make_put_step;
StepMaker make_store_step;
StepMaker make_like_step;
StepMaker make_fill_step;
StepMaker make_fresh_step;
StepMaker make_loop_step;
StepMaker make_branch_step;
StepMaker make_guard_step;
StepMaker make_computed_part;
StepMaker make_mask_step;
StepMaker make_c_function_step;
StepMaker make_fourier_step;
StepMaker make_composed_step;
StepMaker make_written_over;

// Asks the makers that the request's passes allow, one after the other.
int make_step(const Rewrite& r, uint32_t node, std::unique_ptr<NativeStep>& step);

}  // namespace pyop
