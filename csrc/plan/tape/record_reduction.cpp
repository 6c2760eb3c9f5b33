// plan/tape/record_reduction.cpp: record reductions of blocks, and means, on a tape.
#include "array/loop/fp_flags.h"
#include "array/reduction/ready_reduction.h"
#include "plan/steps/reduce.h"
#include "plan/tape/tape_builder.h"

namespace pyop {

namespace {

struct Recorded {
    ReadyReduction ready;
    bool wide = false;  // of a mean
};

bool reduce(const TapeCall& call, TapeCell* r, TapeJournal&) {
    return static_cast<const Recorded*>(call.self)->ready.run(call.operands[0].find(r), call.operands[1].find(r));
}

// Whatever raises in the sums or in the division is left to NumPy, which knows what it calls it.
bool average(const TapeCall& call, TapeCell* r, TapeJournal&) {
    const auto& recorded = *static_cast<const Recorded*>(call.self);
    char* const out = call.operands[1].find(r);
    const int before = all_fp_errors();
    if (PYOP_UNLIKELY(before != 0)) clear_all_fp_errors();
    const bool done = recorded.ready.run(call.operands[0].find(r), out);
    divide_sums(out, recorded.ready.walk().result_size, call.n, recorded.wide);
    if (PYOP_UNLIKELY(all_fp_errors() != 0)) {
        clear_all_fp_errors();
        return false;
    }
    if (PYOP_UNLIKELY(before != 0)) std::feraiseexcept(before);
    return done;
}

}  // namespace

bool record_reduction(TapeBuilder& tape, const ReductionCall& call, const TapeValue& x, bool mean, TapeValue& result) {
    uint32_t axes;
    if (!tape.with_blocks() || !call.own_loop || x.kind != TapeValue::Block || !tape.readable(x)) return false;
    if (!call.axis.bits(x.ndim, axes)) return false;
    const Ref like = TapeBuilder::stand_in(x);
    if (!like) {
        PyErr_Clear();
        return false;
    }
    auto recorded = std::make_shared<Recorded>();
    if (!recorded->ready.make(call.reduction, as_array(like.get()), axes)) return false;
    const ReductionWalk& walk = recorded->ready.walk();
    PyArray_Descr* const dtype = call.reduction.loop->dtype();
    result = tape.block_new(dtype, walk.result_ndim, walk.result_dims);
    if (result.kind == TapeValue::None) return false;
    if (walk.result_ndim > 0) std::copy_n(walk.result_strides, walk.result_ndim, result.strides.begin());
    TapeCall made;
    made.block = reduce;
    if (mean) {
        made.n = x.size() / walk.result_size;
        made.block = average;
        recorded->wide = dtype->type_num == NPY_DOUBLE;
    }
    made.self = recorded.get();
    made.owned = std::move(recorded);
    made.places = {TapeBuilder::place_of(x), TapeBuilder::place_of(result)};
    tape.calls_loops();
    return tape.call_block(std::move(made));
}

}  // namespace pyop
