// plan/lower.cpp: lower what the passes left of a graph to a Program.
#include <algorithm>

#include "array/native/native_kernel.h"
#include "plan/finish.h"
#include "plan/group/ir_builder.h"
#include "plan/group/loop_group.h"
#include "plan/group/viewed_group.h"
#include "plan/passes/casts.h"
#include "plan/passes/schedule.h"
#include "plan/passes/views.h"
#include "plan/places.h"
#include "plan/program.h"
#include "plan/steps/steps.h"

namespace pyop {

namespace {

class Lowering {
  public:
    Lowering(const Rewrite& r, Program& p) : r_(r), p_(p), places_(r, p) {}

    int run() {
        list_nodes();
        places_.place_feeds();
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
        for (const Edge e : r_.request.fetches) p_.outputs.push_back(places_.read(r_.resolve(e), false));
        if (places_.failed()) return -1;
        finish(r_, p_);
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
            p_.operands.push_back(places_.read(r_.resolve(e), lent));
            ++position;
        }
        places_.place_results(i);
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
        p_.instructions.push_back(ins);
        return 0;
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
        p_.operands.push_back(places_.read(base, false));
        places_.place_results(i);
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
        for (const Edge e : inputs) p_.operands.push_back(places_.read(e, false));
        for (const Edge e : made.outputs()) places_.place_result(e);
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
                    chains_.forwarded(view) && !places_.placed(view) && emit(view) < 0)
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

    const Rewrite& r_;
    Program& p_;
    std::vector<uint32_t> schedule_;
    Fusion fusion_;
    ViewChains chains_;
    SameArrays casts_;
    Places places_;
};

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
