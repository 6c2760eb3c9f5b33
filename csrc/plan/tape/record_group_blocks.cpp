// plan/tape/record_group_blocks.cpp: record elementwise operations on blocks on a tape: the calls that a run of the
// group makes for so few elements (plan/group/loop_group.cpp), with the layouts worked out once.
#include <cfenv>

#include "array/loop/flag_trial.h"
#include "array/loop/fp_flags.h"
#include "array/reduction/row_reduction.h"
#include "plan/group/layout.h"
#include "plan/group/loop_group.h"
#include "plan/tape/tape_builder.h"

namespace pyop {

namespace {

// One of NumPy's loops. It may clear the flags; what was raised before must stay.
bool call_loop(const TapeCall& call, TapeCell* r, TapeJournal&) {
    char* data[8];
    for (size_t k = 0; k < call.operands.size(); ++k) data[k] = call.operands[k].find(r);
    if (PYOP_LIKELY(call.quiet)) return (*call.loop)(data, call.n, call.strides.data()) == 0;
    const int before = all_fp_errors();
    const int status = (*call.loop)(data, call.n, call.strides.data());
    if (call.loop->ignores_flags()) clear_all_fp_errors();
    if (PYOP_UNLIKELY(before != 0)) std::feraiseexcept(before);
    if (PYOP_LIKELY(status == 0 && !(call.may_fail && PyErr_Occurred()))) return true;
    if (call.may_fail) PyErr_Clear();
    return false;
}

// All rows of a block, as a run of the group reduces them when the operations are done.
bool reduce_rows(const TapeCall& call, TapeCell* r, TapeJournal&) {
    const auto& what = *static_cast<const RowsReduced*>(call.self);
    const ReductionLoop& loop = *what.call.reduction.loop;
    const npy_intp row = call.sizes[0];
    char* const out = call.operands.size() > 1 ? call.operands[1].find(r) : nullptr;
    int raised = all_fp_errors();
    if (PYOP_UNLIKELY(raised != 0)) clear_all_fp_errors();
    RowReduction rows(loop, what.initial(), row, out);
    bool done = rows.add(call.operands[0].find(r), call.n) == 0;
    if (const int flags = all_fp_errors(); PYOP_UNLIKELY(flags != 0)) {
        clear_all_fp_errors();
        if (!loop.loop().ignores_flags()) raised |= flags;
    }
    if (what.mean && out) {
        divide_sums(out, call.n / row, row, loop.itemsize() == sizeof(double));
        if (PYOP_UNLIKELY(all_fp_errors() != 0)) {
            clear_all_fp_errors();
            done = false;  // NumPy will say what it calls it
        }
    }
    if (PYOP_UNLIKELY(raised != 0)) std::feraiseexcept(raised);
    if (PYOP_LIKELY(done && !(call.may_fail && PyErr_Occurred()))) return true;
    PyErr_Clear();
    return false;
}

}  // namespace

bool LoopGroup::record_blocks(TapeBuilder& tape, const TapeValue* inputs, TapeValue* results) const {
    std::vector<Ref> stand_ins;
    std::vector<PyObject*> externals;
    for (size_t k = 0; k < n_externals_; ++k) {
        if (inputs[k].dtype != code_.streams[k].dtype || !tape.readable(inputs[k])) return false;
        stand_ins.push_back(TapeBuilder::stand_in(inputs[k]));
        externals.push_back(stand_ins.back().get());
        if (externals.back()) continue;
        PyErr_Clear();
        return false;
    }
    GroupLayout layout;
    if (!layout.find(*this, externals.data()) || layout.fortran || layout.by_lines || layout.size > block_ ||
        (single_ & ~layout.scalar))
        return false;
    // Where each stream lies, and how far its elements are apart.
    std::vector<TapePlace> places;
    std::vector<npy_intp> strides;
    std::vector<TapeValue> scratch(n_blocks_), made(depends_.size());
    const auto block_new = [&](PyArray_Descr* dtype) { return tape.block_new(dtype, layout.ndim, layout.shape); };
    for (size_t k = 0; k < code_.streams.size(); ++k) {
        const Stream& stream = code_.streams[k];
        TapePlace place;
        npy_intp stride = stream.itemsize;
        switch (stream.kind) {
            case Stream::External: {
                place = TapeBuilder::place_of(inputs[k]);
                PyArrayObject* a = as_array(externals[k]);
                if (layout.contiguous >> k & 1) break;
                if (layout.strided >> k & 1) {
                    stride = PyArray_STRIDE(a, 0);
                    break;
                }
                if (layout.scalar >> k & 1) {
                    stride = layout.size != 1 || PyArray_NDIM(a) == 0 ? 0
                             : PyArray_NDIM(a) == 1                   ? PyArray_STRIDE(a, 0)
                                                                      : PyArray_ITEMSIZE(a);
                    if (layout.size == 1) break;
                }
                const TapeValue side_by_side = block_new(stream.dtype);
                if (side_by_side.kind != TapeValue::Block || !tape.copy_once(side_by_side, inputs[k])) return false;
                place = TapeBuilder::place_of(side_by_side);
                break;
            }
            case Stream::Number:
                stride = 0;
                place = {TapePlace::Known, 0, 0, number_blocks_[stream.index].get()};
                break;
            case Stream::Scratch: {
                if (stream.block < 0) break;  // never leaves its operation
                TapeValue& block = scratch[static_cast<size_t>(stream.block)];
                if (block.kind == TapeValue::None || PyDataType_ELSIZE(block.dtype) < stream.itemsize)
                    block = block_new(stream.dtype);
                if (block.kind == TapeValue::None) return false;
                place = TapeBuilder::place_of(block);
                break;
            }
            case Stream::Output:
                made[stream.index] = block_new(stream.dtype);
                if (made[stream.index].kind == TapeValue::None) return false;
                place = TapeBuilder::place_of(made[stream.index]);
                break;
        }
        places.push_back(place);
        strides.push_back(stride);
    }
    for (const Operation& op : code_.operations) {
        if (op.loop && op.loop->may_raise()) return false;
        TapeCall call;
        call.kernel = op.kernel;
        call.loop = op.loop;
        call.may_fail = may_fail_ && !(op.loop && op.loop->is_foreign());
        call.quiet = call.loop && !may_fail_ && keeps_flags(*call.loop);
        call.n = layout.size;
        call.block = call_loop;
        for (size_t k = 0; k < op.n_operands; ++k) {
            call.places.push_back(places[op.streams[k]]);
            const bool is_number = layout.ndim == 0 && op.loop && static_cast<int>(k) < op.loop->n_inputs();
            call.strides.push_back(is_number ? 0 : strides[op.streams[k]]);
        }
        if (!tape.call_block(std::move(call))) return false;
    }
    for (size_t k = 0; k < output_streams_.size(); ++k)
        if (reduction_of_output_[k] < 0) results[k] = made[code_.streams[output_streams_[k]].index];
    for (size_t k = 0; k < reductions_.size(); ++k) {
        const Reduction& r = reductions_[k];
        const pyop::Reduction& how = r.what->call.reduction;
        const int kept = layout.ndim - r.what->n_axes;
        if (kept < 0) return false;
        npy_intp shape[NPY_MAXDIMS], row = 1;
        for (int d = 0; d < layout.ndim; ++d) {
            shape[d] = d < kept ? layout.shape[d] : 1;
            if (d >= kept) row *= layout.shape[d];
        }
        TapeCall call;
        call.block = reduce_rows;
        call.self = r.what.get();
        call.may_fail = !r.what->call.own_loop;
        call.n = layout.size;
        call.sizes = {row};
        call.places = {places[code_.reduced[k]]};
        if (r.output >= 0) {
            TapeValue& result = results[r.output];
            result = tape.block_new(how.loop->dtype(), how.keepdims ? layout.ndim : kept, shape);
            if (result.kind == TapeValue::None) return false;
            call.places.push_back(TapeBuilder::place_of(result));
        }
        tape.calls_loops();
        if (!tape.call_block(std::move(call))) return false;
    }
    return true;
}

}  // namespace pyop
