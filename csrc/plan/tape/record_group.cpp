// plan/tape/record_group.cpp: record elementwise operations on single numbers on a tape.
#include "array/loop/flag_trial.h"
#include "array/loop/one_element.h"
#include "plan/group/loop_group.h"
#include "plan/tape/tape_builder.h"

namespace pyop {

namespace {

bool is_integer(const TapeValue& value, Element& element) {
    switch (value.dtype->type_num) {
#define X(name, type)            \
    case type:                   \
        element = Element::name; \
        return true;
        X(I8, NPY_INT8)
        X(U8, NPY_UINT8)
        X(I16, NPY_INT16)
        X(U16, NPY_UINT16)
        X(I32, NPY_INT32)
        X(U32, NPY_UINT32)
        X(I64, NPY_INT64)
        X(U64, NPY_UINT64)
#undef X
        default:
            return false;
    }
}

// Division of integers, where NumPy's loop and its flags need not be asked.
bool divide_integers(TapeBuilder& tape, const std::string& name, const TapeValue* operands) {
    Element element;
    const bool floors = name == "floor_divide";
    if (!(floors || name == "remainder") || !is_integer(operands[0], element)) return false;
    switch (element) {
#define X(op, e)                                                                                                \
    case Element::e:                                                                                            \
        return tape.operation(floors ? TapeOp::FloorDivide##e : TapeOp::Remainder##e, operands[2], operands[0], \
                              operands[1]);
        PYOP_TAPE_INTEGERS(X, none)
#undef X
        default:
            return false;
    }
}

}  // namespace

bool LoopGroup::record(TapeBuilder& tape, const TapeValue* inputs, TapeValue* results) const {
    for (size_t k = 0; tape.with_blocks() && k < n_externals_; ++k)
        if (inputs[k].kind == TapeValue::Block) return record_blocks(tape, inputs, results);
    if (!reductions_.empty()) return false;
    std::vector<TapeValue> values(plain_.streams.size());
    for (size_t k = 0; k < values.size(); ++k) {
        const Stream& stream = plain_.streams[k];
        switch (stream.kind) {
            case Stream::External:
                values[k] = inputs[k];
                if (!inputs[k].is_number(stream.dtype)) return false;
                break;
            case Stream::Number:
                values[k] = tape.constant(number_blocks_[stream.index].get(), stream.dtype);
                break;
            default:
                values[k] = tape.number_new(stream.dtype);
        }
        if (values[k].kind != TapeValue::Number) return false;
    }
    for (const Operation& op : plain_.operations) {
        TapeValue operands[kMaxOperands];
        for (size_t k = 0; k < op.n_operands; ++k) operands[k] = values[op.streams[k]];
        if (op.does != pyop::Operation::None && tape.operation(op.does, op.element, operands, op.n_operands)) continue;
        if (op.kernel && op.n_operands == 2 && op.does == pyop::Operation::None &&
            operands[0].dtype != operands[1].dtype && tape.cast(operands[1], operands[0]))
            continue;
        if (op.loop && op.n_operands == 3 && divide_integers(tape, names_[op.member], operands)) continue;
        if (op.loop && op.loop->may_raise()) return false;  // a tape may run where there is no thread state
        TapeCall call;
        call.kernel = op.of_number ? nullptr : op.kernel;
        call.loop = op.of_number ? op.of_number : op.loop;
        call.may_fail = may_fail_ && !(op.loop && op.loop->is_foreign());
        call.quiet = call.loop && !may_fail_ && keeps_flags(*call.loop);
        for (size_t k = 0; k < op.n_operands; ++k) call.cells.push_back(operands[k].cell);
        call.strides.assign(op.n_operands, 0);
        if (call.loop) strides_of_one(*call.loop, false, call.strides.data());  // those of scalars are no groups
        if (!tape.call(std::move(call))) return false;
    }
    for (size_t k = 0; k < output_streams_.size(); ++k) results[k] = values[output_streams_[k]];
    return true;
}

}  // namespace pyop
