// plan/tape/tape_parts.cpp: record programs on a tape: sequences, loops and branches.
#include <algorithm>

#include "plan/program.h"
#include "plan/tape/tape_builder.h"

namespace pyop {

namespace {

// Whether a value may lie in the cells of another.
bool lies_in(const TapeValue& value, const TapeValue& cells) {
    if (value.kind == TapeValue::Number || value.place.how == TapePlace::Frame) return value.cell == cells.cell;
    return value.place.how == TapePlace::Pointer && !value.borrows;
}

}  // namespace

bool TapeBuilder::program(const Program& p, const std::vector<TapeValue>& feeds, std::vector<TapeValue>& outputs) {
    ++depth_;
    const bool done = instructions(p, feeds, outputs);
    --depth_;
    return done;
}

bool TapeBuilder::instructions(const Program& p, const std::vector<TapeValue>& feeds, std::vector<TapeValue>& outputs) {
    std::vector<TapeValue> slots(p.n_slots);
    for (size_t k = 0; k < p.feeds.size(); ++k) {
        if (p.feeds[k].lent_slot != kNoSlot) return false;
        if (p.feeds[k].slot != kNoSlot) slots[p.feeds[k].slot] = feeds[k];
    }
    std::map<uint32_t, TapeValue> constants;
    const auto read = [&](Operand o) {
        if (!o.constant()) return slots[o.index()];
        const auto [it, added] = constants.emplace(o.index(), TapeValue{});
        if (added) it->second = known(p.constants[o.index()].get());
        return it->second;
    };
    std::vector<TapeValue> inputs, results;
    for (const Instruction& ins : p.instructions) {
        if (!ins.native) return false;
        inputs.clear();
        for (uint32_t k = 0; k < ins.n_inputs; ++k) inputs.push_back(read(p.operands[ins.first_operand + k]));
        results.assign(static_cast<size_t>(ins.callee.n_out), TapeValue{});
        if (!ins.native->record(*this, inputs.data(), results.data()) || full_) return false;
        for (size_t k = 0; k < results.size(); ++k)
            if (const uint32_t slot = p.results[ins.first_result + k]; slot != kNoSlot) slots[slot] = results[k];
    }
    outputs.clear();
    for (const Operand o : p.outputs) outputs.push_back(read(o));
    return true;
}

bool TapeBuilder::carry(const std::vector<TapeValue>& from, const std::vector<TapeValue>& to, size_t n) {
    // What another one is moved to is taken aside before.
    std::vector<TapeValue> source(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(n));
    for (size_t j = 0; j < n; ++j) {
        if (to[j].kind == TapeValue::Array) {
            if (!is_current(source[j]) || source[j].memory != to[j].memory) return false;
            continue;
        }
        if (source[j].kind != to[j].kind || source[j].dtype != to[j].dtype) return false;
        const bool in_the_way =
            std::any_of(to.begin(), to.begin() + static_cast<std::ptrdiff_t>(j),
                        [&](const auto& t) { return t.kind == source[j].kind && lies_in(source[j], t); });
        if (!in_the_way) continue;
        const TapeValue aside = like_new(source[j]);
        if (!move(aside, source[j])) return false;
        source[j] = aside;
    }
    for (size_t j = 0; j < n; ++j)
        if (to[j].kind != TapeValue::Array && !move(to[j], source[j])) return false;
    return !full_;
}

bool TapeBuilder::iteration(const Program& body, const Program* test, size_t n_carried,
                            const std::vector<TapeValue>& feeds, size_t& stop) {
    std::vector<TapeValue> outputs;
    stop = 0;
    if (test) {
        if (!program(*test, feeds, outputs) || outputs.empty()) return false;
        if (outputs[0].kind != TapeValue::Number || outputs[0].dtype->type_num != NPY_BOOL) return false;
        stop = here();
        emit(TapeOp::JumpIfFalse, outputs[0].cell, 0, 0);
    }
    // What stays must not be what is written: the next iteration would read it.
    std::vector<uint32_t> before;
    for (const TapeValue& feed : feeds)
        before.push_back(feed.kind == TapeValue::Array ? memories_[feed.memory].version : 0);
    if (!program(body, feeds, outputs) || outputs.size() < n_carried) return false;
    for (size_t k = 1 + n_carried; k < feeds.size(); ++k)
        if (feeds[k].kind == TapeValue::Array && memories_[feeds[k].memory].version != before[k]) return false;
    // Nor may two of what is carried be one array, if it is.
    for (size_t j = 0; j < n_carried; ++j)
        for (size_t k = 0; k < j; ++k)
            if (feeds[1 + j].kind == TapeValue::Array && feeds[1 + k].kind == TapeValue::Array &&
                feeds[1 + j].memory == feeds[1 + k].memory && memories_[feeds[1 + j].memory].version != before[1 + j])
                return false;
    return carry(outputs, {feeds.begin() + 1, feeds.begin() + 1 + static_cast<std::ptrdiff_t>(n_carried)}, n_carried);
}

bool TapeBuilder::loop(const Program& body, const Program* test, size_t n_carried, npy_intp step,
                       const TapeValue* inputs, TapeValue* results) {
    PyArray_Descr* const intp = PyArray_DescrFromType(NPY_INTP);  // lives for ever
    Py_DECREF(intp);
    if (!inputs[0].is_number(intp) || !inputs[1].is_number(intp)) return false;
    std::vector<TapeValue> feeds{number_new(intp)};
    for (size_t k = 1; k < body.feeds.size(); ++k) {
        const TapeValue& given = inputs[k + 1];
        if (given.kind == TapeValue::None) return false;
        feeds.push_back(given);
        if (given.kind != TapeValue::Block && (k > n_carried || given.kind == TapeValue::Array)) {
            if (given.kind == TapeValue::Array && !is_current(given)) return false;
            continue;
        }
        feeds.back() = like_new(given);
        if (!move(feeds.back(), given)) return false;
    }
    const uint16_t left = cells_new(2);
    const TapeValue by = integer(step);
    emit(TapeOp::Trips, left, inputs[0].cell, inputs[1].cell, step);
    if (!move(feeds[0], inputs[0])) return false;
    const size_t none = here();
    emit(TapeOp::JumpIfFalse, static_cast<uint16_t>(left + 1), 0, 0);
    const size_t head = here();
    size_t stop;
    if (!iteration(body, test, n_carried, feeds, stop)) return false;
    emit(TapeOp::Repeat, feeds[0].cell, left, by.cell);
    tape_.code.back().more.f = static_cast<int32_t>(head);
    jump_here(none);
    if (stop) jump_here(stop);
    for (size_t j = 0; j < n_carried; ++j) {
        results[j] = feeds[1 + j];
        if (results[j].kind == TapeValue::Array) results[j].version = memories_[results[j].memory].version;
    }
    return !full_;
}

bool TapeBuilder::branch(const TapeValue& truth, const Program& yes, const Program& no, const TapeValue* inputs,
                         TapeValue* results) {
    if (truth.kind != TapeValue::Number || truth.dtype->type_num != NPY_BOOL) return false;
    const std::vector<TapeValue> first(inputs, inputs + yes.feeds.size());
    const std::vector<TapeValue> second(inputs + yes.feeds.size(), inputs + yes.feeds.size() + no.feeds.size());
    const size_t n = yes.outputs.size();
    const std::vector<Memory> before = memories_;
    std::vector<TapeValue> outputs, to(n);
    const size_t otherwise = here();
    emit(TapeOp::JumpIfFalse, truth.cell, 0, 0);
    if (!program(yes, first, outputs) || outputs.size() < n) return false;
    for (size_t j = 0; j < n; ++j) {
        to[j] = outputs[j].kind == TapeValue::Array ? outputs[j] : like_new(outputs[j]);
        if (to[j].kind == TapeValue::None) return false;
        if (to[j].kind == TapeValue::Array ? !is_current(to[j]) : !move(to[j], outputs[j])) return false;
    }
    const size_t end = here();
    emit(TapeOp::Jump, 0, 0, 0);
    jump_here(otherwise);
    // The other part begins with what was there before this one.
    std::vector<Memory> after = memories_;
    for (size_t m = 0; m < before.size(); ++m) memories_[m].version = before[m].version;
    if (!program(no, second, outputs) || outputs.size() < n) return false;
    for (size_t j = 0; j < n; ++j) {
        if (to[j].kind != TapeValue::Array) {
            if (!move(to[j], outputs[j])) return false;
        } else if (!is_current(outputs[j]) || outputs[j].memory != to[j].memory) {
            return false;
        }
    }
    jump_here(end);
    // Whatever was written in one of them is another value now, which is one of the results.
    for (size_t m = 0; m < before.size(); ++m) {
        if (after[m].version == before[m].version && memories_[m].version == before[m].version) continue;
        memories_[m].version = std::max(after[m].version, memories_[m].version) + 1;
        memories_[m].written = true;
    }
    for (size_t j = 0; j < n; ++j) {
        results[j] = to[j];
        if (results[j].kind == TapeValue::Array) results[j].version = memories_[results[j].memory].version;
    }
    return !full_;
}

}  // namespace pyop
