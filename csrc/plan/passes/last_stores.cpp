// plan/passes/last_stores.cpp: take the last writes of a program out of it.
//
// As an instruction, a write into an argument is one into a copy, all of which goes back into the argument in the end.
// Without it the end has to copy no more than the part, or nothing, if that was computed there.
#include "plan/passes/last_stores.h"

#include <algorithm>

namespace pyop {

namespace {

// The write of `p` that instruction `ins`, the last, computes and nothing else reads; null if it is none.
WriteBack* write_by(Program& p, const Instruction& ins) {
    if (!ins.native || ins.callee.n_out != 1 || ins.first_result + 1 != p.results.size() ||
        ins.first_operand + ins.n_inputs != p.operands.size())
        return nullptr;
    const int to = ins.native->written_input(), value = ins.native->stored_input();
    if (to < 0 || value < 0 || to == value) return nullptr;
    const uint32_t slot = p.results[ins.first_result];
    const auto is_it = [&](Operand o) { return !o.constant() && o.index() == slot; };
    if (std::count_if(p.outputs.begin(), p.outputs.end(), is_it) != 1) return nullptr;
    for (WriteBack& write : p.writes) {
        if (!is_it(p.outputs[write.output])) continue;
        for (uint32_t k = 0; k < ins.n_inputs; ++k) {
            const Operand o = p.operands[ins.first_operand + k];
            const bool fits = k == static_cast<uint32_t>(to) ? !o.constant() && o.index() == p.feeds[write.feed].slot
                              : k == static_cast<uint32_t>(value) ? !o.constant()
                                                                  : o.constant();
            if (!fits) return nullptr;
        }
        return &write;
    }
    return nullptr;
}

// Whether all other instructions must be done before the last: by what it reads.
bool comes_last(const Program& p) {
    std::vector<bool> wanted(p.n_slots);
    for (size_t i = p.instructions.size(); i-- > 0;) {
        const Instruction& ins = p.instructions[i];
        bool needed = i + 1 == p.instructions.size();
        for (Py_ssize_t k = 0; k < ins.callee.n_out; ++k) {
            const uint32_t slot = p.results[ins.first_result + static_cast<uint32_t>(k)];
            needed |= slot != kNoSlot && wanted[slot];
        }
        if (!needed) return false;
        for (uint32_t k = 0; k < ins.n_inputs; ++k)
            if (const Operand o = p.operands[ins.first_operand + k]; !o.constant()) wanted[o.index()] = true;
    }
    return true;
}

}  // namespace

void take_last_stores(Program& p) {
    while (!p.instructions.empty()) {
        const Instruction ins = p.instructions.back();
        WriteBack* const write = write_by(p, ins);
        if (!write) return;
        write->store = ins.native;
        write->node = ins.node;
        for (uint32_t k = 0; k < ins.n_inputs; ++k) write->inputs.push_back(p.operands[ins.first_operand + k]);
        p.outputs[write->output] = write->inputs[static_cast<size_t>(ins.native->stored_input())];
        p.instructions.pop_back();
        p.operands.resize(ins.first_operand);
        p.results.resize(ins.first_result);
    }
}

// Nothing may fail behind what has written into an argument, so no results are made ready then.
void find_direct_writes(Program& p) {
    if (p.instructions.empty() || p.n_results() > 0 || (p.concurrent && !comes_last(p))) return;
    const Instruction& last = p.instructions.back();
    if (!last.native || !last.native->takes_part_targets()) return;
    for (uint32_t k = 0; k < static_cast<uint32_t>(last.callee.n_out); ++k) {
        const int32_t output = p.output_of_result[last.first_result + k];
        for (WriteBack& write : p.writes)
            if (write.store && static_cast<int32_t>(write.output) == output) write.by_last = p.writes_at_once = true;
    }
}

}  // namespace pyop
