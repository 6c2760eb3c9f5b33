// entry/native_call.cpp: record a program, and run its tape on addresses.
#include "entry/native_call.h"

#include <cstring>

#include "array/loop/fp_flags.h"
#include "plan/tape/bound_array.h"
#include "runtime/attach.h"
#include "runtime/stack_array.h"

namespace pyop {

namespace {

// Beyond so many cells a run would take long to begin.
constexpr size_t kMostCells = 1 << 13;

// What np.errstate has for a thread that never was in Python is NumPy's default: an underflow is nothing.
PYOP_COLD bool ignored(int flags) {
    if (!attached() && !PyGILState_GetThisThreadState()) return (flags & ~FE_UNDERFLOW) == 0;
    const AttachScope scope;
    return scope && errstate_ignores(flags);
}

// Mostly one number, without a call.
PYOP_INLINE void copy(void* to, const void* from, size_t bytes) {
    if (PYOP_LIKELY(bytes == 8))
        std::memcpy(to, from, 8);
    else
        std::memcpy(to, from, bytes);
}

}  // namespace

bool NativeCall::record(const Program& p, const std::vector<Array>& inputs, const std::vector<Array>& outputs) {
    // Elements are best read where they lie; blocks are for what cannot do with them.
    return record(TapeBuilder(0, true), p, inputs, outputs) ||
           record(TapeBuilder(kMostElements, true), p, inputs, outputs);
}

bool NativeCall::record(TapeBuilder tape, const Program& p, const std::vector<Array>& inputs,
                        const std::vector<Array>& outputs) {
    given_.clear();
    made_.clear();
    std::vector<TapeValue> feeds, results;
    for (const Array& a : inputs) {
        TapeValue value = a.ndim ? tape.block_new(a.dtype, a.ndim, a.dims) : tape.number_new(a.dtype);
        if (value.kind == TapeValue::None)
            value = tape.array_new(a.dtype, a.ndim, false, tape.with_blocks() ? a.dims : nullptr);
        if (value.kind == TapeValue::None) return false;
        feeds.push_back(value);
    }
    if (!tape.program(p, feeds, results)) return false;
    for (size_t k = 0; k < outputs.size(); ++k) {
        const Array& a = outputs[k];
        TapeValue value = results[k];
        if (value.kind == TapeValue::None || value.kind == TapeValue::Array || value.dtype != a.dtype ||
            value.ndim != a.ndim || !std::equal(a.dims, a.dims + a.ndim, value.dims.begin()))
            return false;
        // Results are written when all is read: what shows other memory is taken aside.
        const bool aside = value.place.how != TapePlace::Frame || value.place.offset % 8 != 0 || !value.contiguous();
        if (value.kind == TapeValue::Block && aside) {
            value = tape.block_new(a.dtype, a.ndim, a.dims);
            if (value.kind == TapeValue::None || !tape.copy(value, results[k])) return false;
        }
        const uint16_t at = value.kind == TapeValue::Block
                                ? static_cast<uint16_t>(value.place.cell + value.place.offset / 8)
                                : value.cell;
        made_.push_back({at, static_cast<uint32_t>(value.size() * PyDataType_ELSIZE(a.dtype))});
    }
    for (size_t k = 0; k < inputs.size(); ++k) {
        const TapeValue& value = feeds[k];
        Given given{value.cell, 0, {}, 1};
        if (value.kind == TapeValue::Array) {
            auto stride = static_cast<int64_t>(PyDataType_ELSIZE(value.dtype));
            for (int d = value.ndim; d-- > 0; stride *= inputs[k].dims[d])
                given.extents.insert(given.extents.begin(), {inputs[k].dims[d], stride});
            if (tape.relies_on(value)) given.alignment = static_cast<uint32_t>(PyDataType_ALIGNMENT(value.dtype));
        } else {
            given.bytes = static_cast<uint32_t>(value.size() * PyDataType_ELSIZE(value.dtype));
        }
        given_.push_back(std::move(given));
    }
    tape.emit(TapeOp::Stop, 0, 0, 0);
    if (tape.full()) return false;
    tape_ = tape.finish();
    has_loops_ =
        std::any_of(tape_.code.begin(), tape_.code.end(), [](const auto& i) { return i.op == TapeOp::Repeat; });
    if (tape_.cells.size() > kMostCells) return false;
    return std::none_of(tape_.calls.begin(), tape_.calls.end(), [](const auto& call) { return call->may_fail; });
}

// What is given, in the cells. False: an array lies where it cannot be read.
bool NativeCall::load(const void* const* in, TapeCell* cells) const {
    tape_.begin(cells);
    for (size_t k = 0; k < given_.size(); ++k) {
        const Given& g = given_[k];
        TapeCell* cell = cells + g.cell;
        if (PYOP_LIKELY(g.bytes != 0)) {
            copy(cell, in[k], g.bytes);
            continue;
        }
        if (PYOP_UNLIKELY(reinterpret_cast<uintptr_t>(in[k]) % g.alignment != 0)) return false;
        cell++->data = const_cast<char*>(static_cast<const char*>(in[k]));  // a tape that reads it never writes it
        for (const int64_t extent : g.extents) cell++->I64 = extent;
    }
    return true;
}

int NativeCall::run(const void* const* in, void* const* out) const {
    StackArray<TapeCell, 256> memory(tape_.cells.size() + 1);
    TapeCell* const cells = memory.data() + (reinterpret_cast<uintptr_t>(memory.data()) % 16 != 0);
    const auto flags_up = [&] { return tape_.calls_loops ? all_fp_errors() : fp_errors(); };
    // To look for flags takes as long as several operations, so it is done once, when all is computed. If any is up
    // then, it may have been so before: they are cleared, and all is computed once more. Who computes long looks first.
    bool known = has_loops_;
    if (known && flags_up() != 0) clear_all_fp_errors();
    for (;;) {
        if (PYOP_UNLIKELY(!load(in, cells))) return 0;
        TapeJournal journal;
        unsigned until_look = kUntilLook;
        for (const size_t k : tape_.ahead) tape_.calls[k]->block(*tape_.calls[k], cells, journal);
        const TapeEnd end = interpret(tape_.code.data(), cells, journal, until_look);
        if (PYOP_UNLIKELY(end == TapeEnd::Failed)) return -1;
        const int flags = flags_up();
        if (PYOP_LIKELY(flags == 0 && end != TapeEnd::Left)) break;
        if (flags != 0) clear_all_fp_errors();
        if (end == TapeEnd::Left) return 0;
        if (known) {
            if (!ignored(flags)) return 0;
            break;
        }
        known = true;
    }
    for (size_t k = 0; k < made_.size(); ++k) copy(out[k], cells + made_[k].cell, made_[k].bytes);
    return 1;
}

}  // namespace pyop
