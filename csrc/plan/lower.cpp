// plan/lower.cpp: from what the passes left of a graph to a Program.
#include <algorithm>
#include <unordered_map>

#include "array/native/native_kernel.h"
#include "plan/group/ir_builder.h"
#include "plan/group/loop_group.h"
#include "plan/group/viewed_group.h"
#include "plan/last_uses.h"
#include "plan/passes/casts.h"
#include "plan/passes/in_place.h"
#include "plan/passes/last_stores.h"
#include "plan/passes/part_targets.h"
#include "plan/passes/schedule.h"
#include "plan/passes/views.h"
#include "plan/program.h"
#include "plan/steps/guard_step.h"
#include "plan/steps/steps.h"
#include "plan/tape/straight_tape.h"
#include "runtime/errors.h"
#include "runtime/up_calls.h"

namespace pyop {

namespace {

class Lowering {
  public:
    Lowering(const Rewrite& r, Program& p) : r_(r), p_(p), slot_of_(r.g.size(), kNoSlot) {}

    int run() {
        list_nodes();
        place_feeds();
        if (r_.request.passes.has(Pass::Loops) && fuse(r_, schedule_, fusion_) < 0) return -1;
        if (r_.request.passes.has(Pass::Views)) chains_.find(r_, schedule_, fusion_);
        if (r_.request.passes.has(Pass::Casts)) casts_.find(r_, schedule_);
        p_.instructions.reserve(schedule_.size());
        p_.operands.reserve(2 * schedule_.size());
        p_.results.reserve(schedule_.size());
        const OutsideReads outside(r_, schedule_, fusion_);
        const Units units = make_units();
        const bool any_order = r_.request.passes.has(Pass::Schedule);
        for (const uint32_t head : any_order ? scheduled(r_, schedule_, units) : units.heads) {
            const int32_t group = group_of(head);
            const int status =
                group < 0 ? emit(head) : emit_group(fusion_.groups[static_cast<size_t>(group)].members, outside);
            if (status < 0) return -1;
        }
        for (const Edge e : r_.request.fetches) p_.outputs.push_back(read(r_.resolve(e), false));
        if (failed_) return -1;
        note_writes();
        if (r_.request.passes.has(Pass::InPlace)) take_last_stores(p_);
        lend_shared_anew();
        note_shared_outputs();
        note_outputs();
        find_direct_writes(p_);
        note_direct();
        if (p_.concurrent)
            order();
        else
            mark_last_uses(p_);
        mark_in_place(p_, r_.request.passes.has(Pass::InPlace));
        if (!p_.concurrent && r_.request.passes.has(Pass::InPlace)) find_part_targets(p_);
        if (!p_.concurrent && r_.request.passes.has(Pass::Tape)) find_straight_tapes(r_, p_);
        return 0;
    }

  private:
    static constexpr uint64_t key(Edge e) { return Rewrite::key(e); }

    // The nodes that are left to execute: creation order is the schedule.
    void list_nodes() {
        for (uint32_t i = 0; i < r_.n_nodes; ++i) {
            if (!r_.live[i] || r_.same_as[i] != i || r_.g.node(i).kind() != NodeKind::Py) continue;
            if (r_.request.passes.has(Pass::Fold) && !r_.g.node(i).stateful() && r_.folded_results(i)) continue;
            schedule_.push_back(i);
        }
    }

    int32_t group_of(uint32_t i) const { return fusion_.group_of.empty() ? -1 : fusion_.group_of[i]; }

    // What becomes one instruction: a group, a chain of views, or a node. It runs where its last node stood.
    Units make_units() const {
        Units units{{}, std::vector<uint32_t>(r_.n_nodes, Units::kNone)};
        std::vector<uint32_t> unit_of_group(fusion_.groups.size(), Units::kNone);
        uint32_t n = 0;  // counted from the end, to know a unit from its last node on
        for (size_t k = schedule_.size(); k-- > 0;) {
            const uint32_t i = schedule_[k];
            uint32_t& unit = units.unit_of[i];
            if (chains_.forwarded(i)) {
                unit = units.unit_of[chains_.next(i)];
                continue;
            }
            const int32_t group = group_of(i);
            if (group >= 0) unit = unit_of_group[static_cast<size_t>(group)];
            if (unit != Units::kNone) continue;
            unit = n++;
            if (group >= 0) unit_of_group[static_cast<size_t>(group)] = unit;
            units.heads.push_back(i);
        }
        std::reverse(units.heads.begin(), units.heads.end());
        for (uint32_t& unit : units.unit_of)
            if (unit != Units::kNone) unit = n - 1 - unit;
        return units;
    }

    void place_feeds() {
        std::unordered_map<int64_t, npy_intp> symbols;
        for (const Edge e : r_.request.feeds) {
            Feed& feed = p_.feeds.emplace_back();
            const ValueSpec& spec = r_.g.spec(e);
            feed.dtype = spec.descr();
            feed.text = spec.text;
            feed.ndim = spec.ndim;
            feed.name = r_.g.node_name(e.node);
            for (size_t d = 0; d < spec.dims.size(); ++d)
                feed.dims.push_back(feed_dim(spec.dims[d], static_cast<int>(d), symbols));
            feed_of_[key(e)] = static_cast<uint32_t>(p_.feeds.size() - 1);
        }
    }

    npy_intp feed_dim(int64_t size, int d, std::unordered_map<int64_t, npy_intp>& symbols) {
        if (size >= kUnknownSize) return size;
        Ref dim = Ref::steal(size_new(size));
        Ref name = dim ? Ref::steal(PyObject_GetAttr(dim.get(), up_attributes.name)) : Ref();
        if (!name) failed_ = true;
        if (!name || name.get() == Py_None) {
            p_.feed_exprs.push_back({p_.feeds.size() - 1, d, std::move(dim)});
            return -1;
        }
        const auto [it, added] = symbols.emplace(size, static_cast<npy_intp>(symbols.size()));
        if (added) p_.feed_symbols.push_back(std::move(dim));
        return -2 - it->second;
    }

    // Where a value is found, giving it a place the first time. `lent`: wanted read-only.
    Operand read(Edge e, bool lent) {
        if (PyObject* constant = r_.known(e)) {
            const auto [it, added] = constant_of_.emplace(constant, static_cast<uint32_t>(p_.constants.size()));
            if (added) p_.constants.push_back(Ref::borrow(constant));
            return {it->second | Operand::kConstant};
        }
        if (r_.is_fed(e)) {
            Feed& feed = p_.feeds[feed_of_.at(key(e))];
            uint32_t& slot = lent ? feed.lent_slot : feed.slot;
            if (slot == kNoSlot) slot = p_.n_slots++;
            return {slot};
        }
        if (r_.g.node(e.node).kind() == NodeKind::Input) {
            not_fed(e.node);
            return {0};
        }
        return {slot_of_[e.node] + e.output};
    }

    PYOP_COLD void not_fed(uint32_t node) {
        if (failed_) return;
        failed_ = true;
        PyErr_Format(errors.graph, "%s is needed but not fed: give it a value in feeds={%s: array}",
                     NodeCaller(r_.g, node).description().c_str(), NodeCaller(r_.g, node).name().c_str());
    }

    int emit(uint32_t i) {
        Edge base;
        if (std::unique_ptr<NativeStep> chain = chains_.make(r_, i, base)) return emit_step(i, base, std::move(chain));
        const PyNode& node = r_.g.node_as<PyNode>(i);
        Instruction ins{{node.callee(), node.contract(), node.form(), node.n_outputs(), node.lends()},
                        i,
                        static_cast<uint32_t>(p_.operands.size()),
                        static_cast<uint32_t>(node.inputs().size()),
                        static_cast<uint32_t>(p_.results.size()),
                        node.contract() && node.contract()->plain && !node.form() &&
                            node.inputs().size() <= kPlainArity && !is_native_kernel(node.fn()),
                        node.contract() && node.contract()->mutates != 0};
        ins.in_place = ins.mutates;
        uint32_t position = 0;
        for (const Edge e : node.inputs()) {
            const bool lent = node.lends() && !(ins.mutates && node.contract()->mutates_input(position));
            p_.operands.push_back(read(r_.resolve(e), lent));
            ++position;
        }
        slot_of_[i] = p_.n_slots;
        for (uint32_t k = 0; k < node.n_outputs(); ++k) p_.results.push_back(p_.n_slots++);
        std::unique_ptr<NativeStep> step;
        if (casts_.same(i))
            step = casts_.make(r_, i);
        else if (make_step(r_, i, step) < 0)
            return -1;
        if (step) {
            ++p_.native;
            p_.steps.push_back(std::move(step));
            ins.native = p_.steps.back().get();
            ins.in_place = ins.native->may_overwrite();
            ins.takes = ins.native->takes();
        }
        if (!ins.native && ins.callee.lends)
            for (uint32_t k = 0; k < ins.n_inputs; ++k)
                if (Operand& o = p_.operands[ins.first_operand + k]; o.constant()) lend_anew(ins, o);
        p_.instructions.push_back(ins);
        return 0;
    }

    // A function may give what it is lent another shape or dtype. Where somebody reads the same object later (a
    // constant of every run, an argument that several functions are lent), it gets a view of its own.
    static void lend_anew(Instruction& ins, Operand& o) {
        o.code |= Operand::kAnew;
        ins.anew = true;
        ins.anew_constant |= o.constant();
    }

    void lend_shared_anew() {
        std::vector<uint32_t> reads(p_.n_slots);
        for (const Operand o : p_.operands)
            if (!o.constant()) ++reads[o.index()];
        for (const Operand o : p_.outputs)
            if (!o.constant()) ++reads[o.index()];
        Flags shared(p_.n_slots);
        for (Feed& feed : p_.feeds) {
            if (feed.lent_slot == kNoSlot) continue;
            feed.lent_anew = reads[feed.lent_slot] > 1;
            shared[feed.lent_slot] = feed.lent_anew;
        }
        for (Instruction& ins : p_.instructions) {
            if (ins.native || !ins.callee.lends) continue;
            for (uint32_t k = 0; k < ins.n_inputs; ++k)
                if (Operand& o = p_.operands[ins.first_operand + k]; !o.constant() && shared[o.index()])
                    lend_anew(ins, o);
        }
    }

    int emit_step(uint32_t i, Edge base, std::unique_ptr<NativeStep> step) {
        const uint32_t n_outputs = r_.g.node(i).n_outputs();
        Instruction ins{{nullptr, nullptr, nullptr, n_outputs, false},
                        i,
                        static_cast<uint32_t>(p_.operands.size()),
                        1,
                        static_cast<uint32_t>(p_.results.size()),
                        false,
                        false};
        p_.operands.push_back(read(base, false));
        slot_of_[i] = p_.n_slots;
        for (uint32_t k = 0; k < n_outputs; ++k) p_.results.push_back(p_.n_slots++);
        p_.native += step->fallback().nodes.size();
        p_.steps.push_back(std::move(step));
        ins.native = p_.steps.back().get();
        p_.instructions.push_back(ins);
        return 0;
    }

    int emit_group(const std::vector<uint32_t>& members, const OutsideReads& outside) {
        IrBuilder made(r_, fusion_, members, outside);
        // A number that the loop's dtype cannot hold: the ufunc will say so.
        if (!made.possible()) return emit_singly(members);
        std::vector<ViewedGroup::Source> sources;
        std::vector<Edge> inputs;
        read_through(made.externals(), sources, inputs);
        Instruction ins{{nullptr, nullptr, nullptr, static_cast<Py_ssize_t>(made.outputs().size()), false},
                        members.back(),
                        static_cast<uint32_t>(p_.operands.size()),
                        static_cast<uint32_t>(inputs.size()),
                        static_cast<uint32_t>(p_.results.size()),
                        false,
                        false};
        for (const Edge e : inputs) p_.operands.push_back(read(e, false));
        // Results of one node lie side by side, read or not; the slots of those that nobody reads are not written.
        for (const Edge e : made.outputs()) {
            if (slot_of_[e.node] == kNoSlot) {
                slot_of_[e.node] = p_.n_slots;
                p_.n_slots += r_.g.node(e.node).n_outputs();
            }
            p_.results.push_back(slot_of_[e.node] + e.output);
        }
        ++p_.groups;
        GroupIr combined = made.ir();
        if (r_.request.passes.has(Pass::Fuse)) combine(combined);
        auto group =
            std::make_unique<LoopGroup>(std::move(made.fallback()), made.ir(), combined, std::move(made.numbers()));
        if (sources.empty())
            p_.steps.push_back(std::move(group));
        else
            p_.steps.push_back(std::make_unique<ViewedGroup>(std::move(group), std::move(sources)));
        ins.native = p_.steps.back().get();
        p_.native += ins.native->fallback().nodes.size();
        ins.in_place = true;
        p_.instructions.push_back(ins);
        return 0;
    }

    int emit_singly(const std::vector<uint32_t>& members) {
        for (const uint32_t i : members) {
            for (const Edge e : r_.g.node(i).inputs())
                if (const uint32_t view = r_.resolve(e).node;
                    chains_.forwarded(view) && slot_of_[view] == kNoSlot && emit(view) < 0)
                    return -1;
            if (emit(i) < 0) return -1;
        }
        return 0;
    }

    // What a group reads: all its externals, or, where it shows itself views of arrays, these and `sources`.
    void read_through(const std::vector<Edge>& externals, std::vector<ViewedGroup::Source>& sources,
                      std::vector<Edge>& inputs) const {
        if (std::none_of(externals.begin(), externals.end(), [&](Edge e) { return chains_.forwarded(e.node); })) {
            inputs = externals;
            return;
        }
        for (Edge e : externals) {
            std::unique_ptr<ViewStep> view;
            if (chains_.forwarded(e.node)) view = chains_.make(r_, e.node, e);
            const auto same = [&](Edge other) { return key(other) == key(e); };
            const auto found = std::find_if(inputs.begin(), inputs.end(), same);
            sources.push_back({static_cast<uint32_t>(found - inputs.begin()), std::move(view)});
            if (found == inputs.end()) inputs.push_back(e);
        }
    }

    void note_writes() {
        const size_t n = r_.request.writes.size(), first = p_.outputs.size() - n;
        for (size_t k = 0; k < n; ++k) {
            WriteBack& write = p_.writes.emplace_back();
            write.feed = r_.request.writes[k];
            write.output = static_cast<uint32_t>(first + k);
        }
        p_.effects = std::any_of(p_.instructions.begin(), p_.instructions.end(), [&](const Instruction& ins) {
            const Node& node = r_.g.node(ins.node);
            return node.stateful() && !is_guard(node);
        });
    }

    void note_shared_outputs() {
        if (!r_.merged || p_.n_results() < 2) return;
        std::unordered_map<uint64_t, std::vector<Program::SharedOutput>> by_memory;
        for (uint32_t k = 0; k < p_.n_results(); ++k) {
            if (p_.outputs[k].constant()) continue;
            const Edge e = r_.request.fetches[k];
            by_memory[key(owner_of(r_, e, true))].push_back({k, key(owner_of(r_, e, false))});
        }
        for (auto& [memory, outputs] : by_memory) {
            const bool several = std::any_of(outputs.begin(), outputs.end(),
                                             [&](const auto& o) { return o.owner != outputs.front().owner; });
            if (several) p_.shared_outputs.push_back(std::move(outputs));
        }
    }

    // Results that are outputs and nothing else may be computed where the caller wants them.
    void note_outputs() {
        std::vector<uint32_t> reads(p_.n_slots);
        for (const Operand o : p_.operands)
            if (!o.constant()) ++reads[o.index()];
        std::vector<int32_t> output_of(p_.n_slots, -1);
        for (size_t k = 0; k < p_.outputs.size(); ++k) {
            const Operand o = p_.outputs[k];
            if (o.constant()) continue;
            if (++reads[o.index()] == 1) output_of[o.index()] = static_cast<int32_t>(k);
        }
        for (const uint32_t slot : p_.results) p_.output_of_result.push_back(reads[slot] == 1 ? output_of[slot] : -1);
        for (Instruction& ins : p_.instructions)
            ins.leaves = ins.callee.n_out > 0 && p_.output_of_result[ins.first_result] >= 0;
    }

    // Whether the program is one native step whose inputs are feeds and constants, and whose results are the outputs.
    void note_direct() {
        if (p_.instructions.size() != 1 || !p_.instructions[0].native || !p_.feed_exprs.empty()) return;
        if (!p_.writes.empty()) return;
        const Instruction& ins = p_.instructions[0];
        if (static_cast<size_t>(ins.callee.n_out) != p_.outputs.size()) return;
        for (size_t k = 0; k < p_.outputs.size(); ++k)
            if (p_.output_of_result[ins.first_result + k] != static_cast<int32_t>(k)) return;
        auto direct = std::make_unique<DirectCall>();
        direct->step = ins.native;
        for (uint32_t k = 0; k < ins.n_inputs; ++k) {
            const Operand o = p_.operands[ins.first_operand + k];
            if (o.constant()) {
                direct->inputs.push_back(o);
                continue;
            }
            size_t feed = 0;
            while (feed < p_.feeds.size() && p_.feeds[feed].slot != o.index()) ++feed;
            if (feed == p_.feeds.size()) return;  // lent
            direct->inputs.push_back({static_cast<uint32_t>(feed)});
        }
        p_.direct = std::move(direct);
    }

    uint32_t n_results(size_t i) const { return static_cast<uint32_t>(p_.instructions[i].callee.n_out); }

    void order() {
        const auto n = static_cast<uint32_t>(p_.instructions.size());
        p_.slot_uses.assign(p_.n_slots, 0);
        p_.n_predecessors.assign(n, 0);
        std::vector<uint32_t> writer(p_.n_slots, kNoSlot);
        std::vector<std::pair<uint32_t, uint32_t>> edges;
        uint32_t last_stateful = kNoSlot;
        for (uint32_t i = 0; i < n; ++i) {
            const Instruction& ins = p_.instructions[i];
            for (uint32_t k = 0; k < ins.n_inputs; ++k) {
                const Operand o = p_.operands[ins.first_operand + k];
                if (o.constant()) continue;
                ++p_.slot_uses[o.index()];
                if (writer[o.index()] != kNoSlot) edges.emplace_back(writer[o.index()], i);
            }
            if (r_.g.node(ins.node).stateful()) {
                if (last_stateful != kNoSlot) edges.emplace_back(last_stateful, i);
                last_stateful = i;
            }
            for (uint32_t k = 0; k < n_results(i); ++k) writer[p_.results[ins.first_result + k]] = i;
        }
        for (const Operand o : p_.outputs)
            if (!o.constant()) ++p_.slot_uses[o.index()];
        p_.first_successor.assign(n + 1, 0);
        for (const auto& [from, to] : edges) {
            ++p_.first_successor[from + 1];
            ++p_.n_predecessors[to];
        }
        for (uint32_t i = 0; i < n; ++i) p_.first_successor[i + 1] += p_.first_successor[i];
        std::vector<uint32_t> next(p_.first_successor.begin(), p_.first_successor.end() - 1);
        p_.successors.resize(edges.size());
        for (const auto& [from, to] : edges) p_.successors[next[from]++] = to;
    }

    const Rewrite& r_;
    Program& p_;
    std::vector<uint32_t> schedule_;
    Fusion fusion_;
    ViewChains chains_;
    SameArrays casts_;
    std::unordered_map<uint64_t, uint32_t> feed_of_;
    std::vector<uint32_t> slot_of_;  // by node: the slot of its first output
    std::unordered_map<PyObject*, uint32_t> constant_of_;
    bool failed_ = false;  // with an error set
};

// Whether a plan may be left in its middle. That is for one thread: which warnings are another path's depends on how
// far the thread has come (python/pyop/graph/deciding.py).
bool has_guards(const Rewrite& r) {
    for (uint32_t i = 0; i < r.n_nodes; ++i)
        if (r.live[i] && is_guard(r.g.node(i))) return true;
    return false;
}

}  // namespace

int lower(PyObject* graph, const Request& request, bool concurrent, Program& program) {
    Rewrite r(graph, request);
    prune(r);
    program.n_nodes = r.n_nodes;
    for (uint32_t i = 0; i < r.n_nodes; ++i) program.pruned += !r.live[i] && r.g.node(i).kind() != NodeKind::Input;
    if (request.passes.has(Pass::Merge) && merge(r) < 0) return -1;
    if (request.passes.has(Pass::Casts)) leave_out_casts(r);
    if (request.passes.has(Pass::Fold) && fold(r) < 0) return -1;
    prune(r);
    program.merged = r.merged;
    program.folded = r.folded;
    program.concurrent = concurrent && !has_guards(r);
    return Lowering(r, program).run();
}

}  // namespace pyop
