// plan/last_uses.cpp: walk backwards over a program, and then give its slots new numbers.
#include "plan/last_uses.h"

#include "graph/passes/rewrite.h"

namespace pyop {

namespace {

uint32_t n_results(const Program& p, size_t i) { return static_cast<uint32_t>(p.instructions[i].callee.n_out); }

void renumber(Program& p) {
    std::vector<uint32_t> place(p.n_slots, kNoSlot), spare;
    uint32_t n = 0;
    const auto take = [&](uint32_t& slot) {
        if (slot == kNoSlot) return;
        if (spare.empty()) spare.push_back(n++);
        place[slot] = spare.back();
        spare.pop_back();
        slot = place[slot];
    };
    for (Feed& feed : p.feeds) {
        take(feed.slot);
        take(feed.lent_slot);
        if (feed.lent_anew) ++n;
    }
    for (size_t i = 0; i < p.instructions.size(); ++i) {
        const Instruction& ins = p.instructions[i];
        for (uint32_t k = 0; k < ins.n_inputs; ++k) {
            Operand& o = p.operands[ins.first_operand + k];
            if (!o.constant()) o.code = place[o.index()] | (o.code & ~Operand::kIndex);
        }
        // A result must not land in a slot that this instruction still reads: its inputs are released
        // when it is done.
        for (uint32_t k = 0; k < n_results(p, i); ++k) take(p.results[ins.first_result + k]);
        for (uint32_t k = 0; k < ins.n_inputs; ++k)
            if (const Operand o = p.operands[ins.first_operand + k]; o.last_use()) spare.push_back(o.index());
    }
    for (Operand& o : p.outputs)
        if (!o.constant()) o.code = place[o.index()];
    p.n_slots = n;
}

}  // namespace

// The first read met is the last one executed.
void mark_last_uses(Program& p) {
    Flags read_later(p.n_slots);
    for (const Operand o : p.outputs)
        if (!o.constant()) read_later[o.index()] = true;
    for (size_t i = p.instructions.size(); i-- > 0;) {
        const Instruction& ins = p.instructions[i];
        for (uint32_t k = 0; k < n_results(p, i); ++k) {
            uint32_t& slot = p.results[ins.first_result + k];
            if (!read_later[slot]) slot = kNoSlot;
        }
        for (uint32_t k = ins.n_inputs; k-- > 0;) {
            Operand& o = p.operands[ins.first_operand + k];
            if (o.constant() || read_later[o.index()]) continue;
            read_later[o.index()] = true;
            o.code |= Operand::kLastUse;
            p.instructions[i].releases = true;
        }
    }
    renumber(p);
}

}  // namespace pyop
