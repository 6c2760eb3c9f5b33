// plan/passes/part_targets.cpp: pair groups with the writes of their results.
//
// Between the two nobody may look at the array that is written into: the part is new before its time.
#include "plan/passes/part_targets.h"

#include <algorithm>
#include <unordered_map>

namespace pyop {

namespace {

constexpr uint32_t kFarthest = 16;  // instructions between a group and the write

struct Write {
    uint32_t instruction;
    uint32_t base;  // the slot of the array that is written into
};

const Operand* operands_of(const Program& p, const Instruction& ins) { return p.operands.data() + ins.first_operand; }

bool fills(const Program& p, const Instruction& ins, uint32_t slot) {
    const auto begin = p.results.begin() + ins.first_result;
    return std::find(begin, begin + ins.callee.n_out, slot) != begin + ins.callee.n_out;
}

bool reads(const Program& p, const Instruction& ins, uint32_t slot) {
    const Operand* const begin = operands_of(p, ins);
    return std::any_of(begin, begin + ins.n_inputs, [&](Operand o) { return !o.constant() && o.index() == slot; });
}

// The write of what stands in `slot` after instruction `i`, if it is all that reads that, and may write in place.
bool find_write(const Program& p, uint32_t i, uint32_t slot, Write& found) {
    const auto end = std::min<uint32_t>(static_cast<uint32_t>(p.instructions.size()), i + 1 + kFarthest);
    for (uint32_t j = i + 1; j < end; ++j) {
        const Instruction& ins = p.instructions[j];
        if (!reads(p, ins, slot)) {
            if (!ins.native) return false;  // Python may look at anything
            continue;
        }
        const int of = ins.native && ins.in_place ? ins.native->written_input() : -1;
        const int value = ins.native ? ins.native->stored_input() : -1;
        if (of < 0 || value < 0) return false;
        const Operand base = operands_of(p, ins)[of], stored = operands_of(p, ins)[value];
        if (base.constant() || !base.last_use() || stored.constant() || stored.index() != slot || !stored.last_use())
            return false;
        found = {j, base.index()};
        return true;
    }
    return false;
}

bool undisturbed(const Program& p, uint32_t i, const Write& write) {
    if (fills(p, p.instructions[i], write.base)) return false;
    // What else the write reads, places it is told, must be there before the group.
    const Instruction& last = p.instructions[write.instruction];
    for (uint32_t between = i + 1; between < write.instruction; ++between) {
        const Instruction& ins = p.instructions[between];
        if (reads(p, ins, write.base) || fills(p, ins, write.base)) return false;
        for (uint32_t k = 0; k < last.n_inputs; ++k) {
            const Operand o = operands_of(p, last)[k];
            if (!o.constant() && fills(p, ins, o.index())) return false;
        }
    }
    return true;
}

}  // namespace

void find_part_targets(Program& p) {
    for (uint32_t i = 0; i < p.instructions.size(); ++i) {
        Instruction& ins = p.instructions[i];
        if (!ins.native || !ins.native->takes_part_targets()) continue;
        const auto first = static_cast<uint32_t>(p.part_targets.size());
        for (uint32_t k = 0; k < static_cast<uint32_t>(ins.callee.n_out); ++k) {
            const uint32_t slot = p.results[ins.first_result + k];
            Write write;
            if (slot == kNoSlot || !find_write(p, i, slot, write) || !undisturbed(p, i, write)) continue;
            // One result an array: two writes into one come one after the other.
            const bool taken = std::any_of(p.part_targets.begin() + first, p.part_targets.end(),
                                           [&](const PartTarget& other) { return other.base == write.base; });
            if (!taken) p.part_targets.push_back({k, write.instruction, write.base});
        }
        ins.first_part_target = first;
        ins.n_part_targets = static_cast<uint32_t>(p.part_targets.size()) - first;
    }
}

}  // namespace pyop
