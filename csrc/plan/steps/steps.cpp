// plan/steps/steps.cpp: list the makers, in the order in which they are asked.
#include "plan/steps/steps.h"

#include <iterator>

namespace pyop {

namespace {

struct Maker {
    Pass pass;
    StepMaker* make;
};
constexpr Maker kMakers[] = {
    {Pass::Views, make_view},           {Pass::Loops, make_reduce_step},
    {Pass::Loops, make_mean_step},      {Pass::Loops, make_gufunc_step},
    {Pass::Loops, make_outer_step},     {Pass::Loops, make_accumulate_step},
    {Pass::Loops, make_function_step},  {Pass::Loops, make_number_step},
    {Pass::Loops, make_element_step},   {Pass::Loops, make_size_step},
    {Pass::Loops, make_join_step},      {Pass::Views, make_computed_part},
    {Pass::Loops, make_take_step},      {Pass::Views, make_like_step},
    {Pass::Loops, make_fill_step},      {Pass::Loops, make_composed_reduction},
    {Pass::Loops, make_put_step},       {Pass::Loops, make_mask_step},
    {Pass::Loops, make_store_step},     {Pass::Loops, make_fresh_step},
    {Pass::Loops, make_guard_step},     {Pass::Loops, make_loop_step},
    {Pass::Loops, make_branch_step},    {Pass::Loops, make_c_function_step},
    {Pass::Loops, make_fourier_step},   {Pass::Loops, make_composed_step},
    {Pass::InPlace, make_written_over},
};

}  // namespace

int make_step(const Rewrite& r, uint32_t node, std::unique_ptr<NativeStep>& step) {
    for (const Maker& maker : kMakers) {
        if (!maker.make || !r.request.passes.has(maker.pass)) continue;
        if (maker.make(r, node, step) < 0) return -1;
        if (step) break;
    }
    return 0;
}

}  // namespace pyop
