// plan/finish.cpp: complete the facts of a Program once all its instructions are there.
#include "plan/finish.h"

#include <algorithm>
#include <unordered_map>

#include "plan/last_uses.h"
#include "plan/passes/in_place.h"
#include "plan/passes/last_stores.h"
#include "plan/passes/part_targets.h"
#include "plan/steps/guard_step.h"
#include "plan/tape/straight_tape.h"

namespace pyop {

namespace {

// A function may give what it is lent another shape or dtype. Where somebody reads the same object later (a
// constant of every run, an argument that several functions are lent), it gets a view of its own.
void lend_anew(Instruction& ins, Operand& o) {
    o.code |= Operand::kAnew;
    ins.anew = true;
    ins.anew_constant |= o.constant();
}

void lend_shared_anew(Program& p) {
    std::vector<uint32_t> reads(p.n_slots);
    for (const Operand o : p.operands)
        if (!o.constant()) ++reads[o.index()];
    for (const Operand o : p.outputs)
        if (!o.constant()) ++reads[o.index()];
    Flags shared(p.n_slots);
    for (Feed& feed : p.feeds) {
        if (feed.lent_slot == kNoSlot) continue;
        feed.lent_anew = reads[feed.lent_slot] > 1;
        shared[feed.lent_slot] = feed.lent_anew;
    }
    for (Instruction& ins : p.instructions) {
        if (ins.native || !ins.callee.lends) continue;
        for (uint32_t k = 0; k < ins.n_inputs; ++k)
            if (Operand& o = p.operands[ins.first_operand + k]; o.constant() || shared[o.index()]) lend_anew(ins, o);
    }
}

void note_writes(const Rewrite& r, Program& p) {
    const size_t n = r.request.writes.size(), first = p.outputs.size() - n;
    for (size_t k = 0; k < n; ++k) {
        WriteBack& write = p.writes.emplace_back();
        write.feed = r.request.writes[k];
        write.output = static_cast<uint32_t>(first + k);
    }
    p.effects = std::any_of(p.instructions.begin(), p.instructions.end(), [&](const Instruction& ins) {
        const Node& node = r.g.node(ins.node);
        return node.stateful() && !is_guard(node);
    });
}

void note_shared_outputs(const Rewrite& r, Program& p) {
    if (!r.merged || p.n_results() < 2) return;
    std::unordered_map<uint64_t, std::vector<Program::SharedOutput>> by_memory;
    for (uint32_t k = 0; k < p.n_results(); ++k) {
        if (p.outputs[k].constant()) continue;
        const Edge e = r.request.fetches[k];
        by_memory[Rewrite::key(owner_of(r, e, true))].push_back({k, Rewrite::key(owner_of(r, e, false))});
    }
    for (auto& [memory, outputs] : by_memory) {
        const bool several = std::any_of(outputs.begin(), outputs.end(),
                                         [&](const auto& o) { return o.owner != outputs.front().owner; });
        if (several) p.shared_outputs.push_back(std::move(outputs));
    }
}

// Results that are outputs and nothing else may be computed where the caller wants them.
void note_outputs(Program& p) {
    std::vector<uint32_t> reads(p.n_slots);
    for (const Operand o : p.operands)
        if (!o.constant()) ++reads[o.index()];
    std::vector<int32_t> output_of(p.n_slots, -1);
    for (size_t k = 0; k < p.outputs.size(); ++k) {
        const Operand o = p.outputs[k];
        if (o.constant()) continue;
        if (++reads[o.index()] == 1) output_of[o.index()] = static_cast<int32_t>(k);
    }
    for (const uint32_t slot : p.results) p.output_of_result.push_back(reads[slot] == 1 ? output_of[slot] : -1);
    for (Instruction& ins : p.instructions)
        ins.leaves = ins.callee.n_out > 0 && p.output_of_result[ins.first_result] >= 0;
}

// Whether the program is one native step whose inputs are feeds and constants, and whose results are the outputs.
void note_direct(Program& p) {
    if (p.instructions.size() != 1 || !p.instructions[0].native || !p.feed_exprs.empty()) return;
    if (!p.writes.empty()) return;
    const Instruction& ins = p.instructions[0];
    if (static_cast<size_t>(ins.callee.n_out) != p.outputs.size()) return;
    for (size_t k = 0; k < p.outputs.size(); ++k)
        if (p.output_of_result[ins.first_result + k] != static_cast<int32_t>(k)) return;
    auto direct = std::make_unique<DirectCall>();
    direct->step = ins.native;
    for (uint32_t k = 0; k < ins.n_inputs; ++k) {
        const Operand o = p.operands[ins.first_operand + k];
        if (o.constant()) {
            direct->inputs.push_back(o);
            continue;
        }
        size_t feed = 0;
        while (feed < p.feeds.size() && p.feeds[feed].slot != o.index()) ++feed;
        if (feed == p.feeds.size()) return;  // lent
        direct->inputs.push_back({static_cast<uint32_t>(feed)});
    }
    p.direct = std::move(direct);
}

// Which instructions wait for which, for several threads.
void order(const Rewrite& r, Program& p) {
    const auto n = static_cast<uint32_t>(p.instructions.size());
    p.slot_uses.assign(p.n_slots, 0);
    p.n_predecessors.assign(n, 0);
    std::vector<uint32_t> writer(p.n_slots, kNoSlot);
    std::vector<std::pair<uint32_t, uint32_t>> edges;
    uint32_t last_stateful = kNoSlot;
    for (uint32_t i = 0; i < n; ++i) {
        const Instruction& ins = p.instructions[i];
        for (uint32_t k = 0; k < ins.n_inputs; ++k) {
            const Operand o = p.operands[ins.first_operand + k];
            if (o.constant()) continue;
            ++p.slot_uses[o.index()];
            if (writer[o.index()] != kNoSlot) edges.emplace_back(writer[o.index()], i);
        }
        if (r.g.node(ins.node).stateful()) {
            if (last_stateful != kNoSlot) edges.emplace_back(last_stateful, i);
            last_stateful = i;
        }
        for (uint32_t k = 0; k < static_cast<uint32_t>(ins.callee.n_out); ++k)
            writer[p.results[ins.first_result + k]] = i;
    }
    for (const Operand o : p.outputs)
        if (!o.constant()) ++p.slot_uses[o.index()];
    p.first_successor.assign(n + 1, 0);
    for (const auto& [from, to] : edges) {
        ++p.first_successor[from + 1];
        ++p.n_predecessors[to];
    }
    for (uint32_t i = 0; i < n; ++i) p.first_successor[i + 1] += p.first_successor[i];
    std::vector<uint32_t> next(p.first_successor.begin(), p.first_successor.end() - 1);
    p.successors.resize(edges.size());
    for (const auto& [from, to] : edges) p.successors[next[from]++] = to;
}

}  // namespace

void finish(const Rewrite& r, Program& p) {
    const bool in_place = r.request.passes.has(Pass::InPlace);
    note_writes(r, p);
    if (in_place) take_last_stores(p);
    lend_shared_anew(p);
    note_shared_outputs(r, p);
    note_outputs(p);
    find_direct_writes(p);
    note_direct(p);
    if (p.concurrent)
        order(r, p);
    else
        mark_last_uses(p);
    mark_in_place(p, in_place);
    if (!p.concurrent && in_place) find_part_targets(p);
    if (!p.concurrent && r.request.passes.has(Pass::Tape)) find_straight_tapes(r, p);
}

bool has_guards(const Rewrite& r) {
    for (uint32_t i = 0; i < r.n_nodes; ++i)
        if (r.live[i] && is_guard(r.g.node(i))) return true;
    return false;
}

}  // namespace pyop
