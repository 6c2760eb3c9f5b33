// plan/updates.cpp: walk through a program and track whose memory each slot shows.
#include "plan/updates.h"

#include "graph/node.h"
#include "plan/plan.h"
#include "plan/steps/written_over.h"

namespace pyop {

std::vector<Update> updates_of(const Program& p, const Graph& g, size_t own_feeds) {
    std::vector<bool> own(p.n_slots + 1, true);
    for (size_t k = 0; k < p.feeds.size(); ++k) {
        const Feed& feed = p.feeds[k];
        if (feed.slot != kNoSlot)
            own[feed.slot] = (own_feeds == SIZE_MAX || (k >= 1 && k <= own_feeds)) && feed.lent_slot == kNoSlot;
        if (feed.lent_slot != kNoSlot) own[feed.lent_slot] = false;
    }
    std::vector<Update> updates;
    for (const Instruction& ins : p.instructions) {
        Update& update = updates.emplace_back(Update::None);
        const int written = ins.native ? ins.native->written_input() : -1;
        if (written >= 0 && static_cast<uint32_t>(written) < ins.n_inputs) {
            const Operand o = p.operands[ins.first_operand + static_cast<uint32_t>(written)];
            const bool last = o.last_use() || (p.concurrent && !o.constant() && p.slot_uses[o.index()] == 1);
            update = ins.in_place && !o.constant() && last && own[o.index()] ? Update::InPlace : Update::Copy;
        } else if (!ins.native && calls_write(g.node_as<PyNode>(ins.node))) {
            update = Update::Copy;
        }
        const bool shows = ins.native && ins.native->shows_inputs();
        for (Py_ssize_t k = 0; k < ins.callee.n_out; ++k) {
            const uint32_t slot = p.results[ins.first_result + static_cast<uint32_t>(k)];
            if (slot != kNoSlot) own[slot] = !shows;
        }
    }
    return updates;
}

UpdateCounts count_updates(const Program& p, const Graph& g, size_t own_feeds) {
    UpdateCounts counts;
    for (const Update update : updates_of(p, g, own_feeds)) {
        counts.in_place += update == Update::InPlace;
        counts.copies += update == Update::Copy;
    }
    for (const WriteBack& write : p.writes) counts.in_place += write.store != nullptr;
    for (const Instruction& ins : p.instructions) {
        if (!ins.native) continue;
        const UpdateCounts inside = count_updates_inside(*ins.native);
        counts.in_place += inside.in_place;
        counts.copies += inside.copies;
    }
    return counts;
}

UpdateCounts count_updates_inside(const NativeStep& step) {
    UpdateCounts counts;
    for (const auto& [program, own_feeds] : step.parts()) {
        const PyObject* plan = program->plan;
        if (!plan) continue;
        const UpdateCounts part =
            count_updates(*program, graph_of(reinterpret_cast<const PlanObject*>(plan)->graph), own_feeds);
        counts.in_place += part.in_place;
        counts.copies += part.copies;
    }
    return counts;
}

}  // namespace pyop
