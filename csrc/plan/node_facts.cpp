// plan/node_facts.cpp: tell what became of each node of the graph. Worked out again when somebody asks, so that
// compiling keeps no record: the passes decide the same a second time, a graph being append-only.
#include "plan/passes/casts.h"
#include "plan/plan.h"
#include "plan/steps/view_reading.h"
#include "plan/tape/straight_tape.h"
#include "plan/updates.h"
#include "runtime/errors.h"

namespace pyop {

namespace {

// One entry a node: (what became of it, the node it was merged into or its step or -1, text or None).
class Facts {
  public:
    explicit Facts(const PlanObject& plan)
        : plan_(plan), p_(*plan.program), r_(plan.graph, *plan.request), entries_(p_.n_nodes) {}

    PyObject* list_new() {
        if (decide() < 0) return nullptr;
        note_instructions();
        Ref list = Ref::steal(PyList_New(static_cast<Py_ssize_t>(entries_.size())));
        for (size_t i = 0; list && i < entries_.size(); ++i) {
            const Entry& e = entries_[i];
            PyObject* entry = Py_BuildValue("(siz#)", e.what, e.number, e.text.empty() ? nullptr : e.text.data(),
                                            static_cast<Py_ssize_t>(e.text.size()));
            if (!entry) return nullptr;
            PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), entry);
        }
        return list.release();
    }

    PyObject* steps_new() const {
        Ref list = Ref::steal(PyList_New(0));
        for (const Instruction& ins : p_.instructions) {
            if (!list) return nullptr;
            const Py_ssize_t scratch = ins.native ? static_cast<Py_ssize_t>(ins.native->scratch_bytes()) : 0;
            const Py_ssize_t members = ins.native ? static_cast<Py_ssize_t>(ins.native->fallback().nodes.size()) : 1;
            Ref entry = Ref::steal(Py_BuildValue("(Onn)", ins.native ? Py_True : Py_False, members, scratch));
            if (!entry || PyList_Append(list.get(), entry.get()) < 0) return nullptr;
        }
        return list.release();
    }

    // The names of the passes that were switched off.
    Ref disabled_new() const {
        Ref list = Ref::steal(PyList_New(0));
        for (size_t k = 0; list && k < kPasses.size(); ++k) {
            if (r_.request.passes.has(static_cast<Pass>(k))) continue;
            Ref name = Ref::steal(
                PyUnicode_FromStringAndSize(kPasses[k].name.data(), static_cast<Py_ssize_t>(kPasses[k].name.size())));
            if (!name || PyList_Append(list.get(), name.get()) < 0) list.reset();
        }
        return list;
    }

  private:
    struct Entry {
        const char* what = "gone";
        int number = -1;  // the node it was merged into, or the instruction
        std::string text;
    };

    int decide() {
        const Flags needed = needed_before_folding();
        prune(r_);
        if (r_.request.passes.has(Pass::Merge) && merge(r_) < 0) return -1;
        if (r_.request.passes.has(Pass::Casts)) leave_out_casts(r_);
        if (r_.request.passes.has(Pass::Fold) && fold(r_) < 0) return -1;
        prune(r_);
        for (uint32_t i = 0; i < entries_.size(); ++i) {
            const NodeKind kind = r_.g.node(i).kind();
            Entry& e = entries_[i];
            if (kind == NodeKind::Input)
                e.what = needed[i] || fed(i) ? "input" : "pruned";
            else if (!needed[i])
                e.what = fed(i) ? "fed" : "pruned";
            else if (r_.left_out.count(i))
                e.what = "gone";
            else if (r_.same_as[i] != i)
                e = {"merged", static_cast<int>(r_.same_as[i]), {}};
            else if (kind == NodeKind::Constant)
                e.what = "constant";
            else if (r_.request.passes.has(Pass::Fold) && !r_.g.node(i).stateful() && r_.folded_results(i))
                e.what = "folded";
        }
        return 0;
    }

    // What was folded once does without its inputs ever after: they were needed for that.
    Flags needed_before_folding() const {
        Request request = r_.request;
        request.passes.remove(Pass::Fold);
        Rewrite r(plan_.graph, request);
        prune(r);
        return std::move(r.live);
    }

    bool fed(uint32_t i) const { return r_.node_is_fed[i]; }

    static std::string text_of(Update update) {
        return update == Update::InPlace ? ", in place" : update == Update::Copy ? ", into a copy" : "";
    }
    static std::string text_of(UpdateCounts counts) {
        return std::to_string(counts.in_place) + " updates in place, " + std::to_string(counts.copies) + " into copies";
    }

    void note_instructions() {
        size_t taped = 0;  // instructions before this one are on a tape
        std::string on_tape;
        const std::vector<Update> updates = updates_of(p_, graph_of(plan_.graph), 0);
        for (size_t k = 0; k < p_.instructions.size(); ++k) {
            const Instruction& ins = p_.instructions[k];
            if (ins.tape) {
                taped = k + ins.tape->span();
                on_tape = ", on " + ins.tape->hot().text();
            }
            if (!ins.native) {
                entries_[ins.node] = {"python", static_cast<int>(k), {}};
                continue;
            }
            const std::vector<uint32_t>& nodes = ins.native->fallback().nodes;
            for (size_t m = 0; m < nodes.size(); ++m)
                entries_[nodes[m]] = {"native", static_cast<int>(k),
                                      ins.native->describe(m) + text_of(updates[k]) + (k < taped ? on_tape : "")};
            const UpdateCounts inside = count_updates_inside(*ins.native);
            if (inside.in_place + inside.copies > 0) entries_[nodes.back()].text += ", with " + text_of(inside);
        }
        const int behind = static_cast<int>(p_.instructions.size());
        for (const WriteBack& write : p_.writes)
            if (write.store)
                entries_[write.node] = {"native", behind, write.store->describe(0) + text_of(Update::InPlace)};
    }

    const PlanObject& plan_;
    const Program& p_;
    Rewrite r_;
    std::vector<Entry> entries_;
};

// What a node that makes a view shows; itself if it makes none.
Edge shown(const Rewrite& r, Edge e) {
    const Node& node = r.g.node(e.node);
    if (r.is_fed(e) || node.kind() != NodeKind::Py || node.inputs().empty() || !makes_view(r, e.node)) return e;
    ViewCall view;
    return node.inputs()[read_view(r, e.node, view) ? view.input : 0];
}

// The nodes between a result and whose memory it shows, as they were written and when equal ones are one.
Ref views_new(const Rewrite& r, Edge e) {
    Ref list = Ref::steal(PyList_New(0));
    const uint64_t owner = Rewrite::key(owner_of(r, e, false));
    while (list && Rewrite::key(e) != owner) {
        const Ref pair = Ref::steal(Py_BuildValue("(KK)", static_cast<unsigned long long>(Rewrite::key(e)),
                                                  static_cast<unsigned long long>(Rewrite::key(r.resolve(e)))));
        if (!pair || PyList_Append(list.get(), pair.get()) < 0) return Ref();
        e = shown(r, e);
    }
    return list;
}

PyObject* owners_new(const PlanObject& plan) {
    Rewrite r(plan.graph, *plan.request);
    prune(r);
    if (r.request.passes.has(Pass::Merge) && merge(r) < 0) return nullptr;
    Ref list = Ref::steal(PyList_New(0));
    for (const int32_t output : *plan.leaves) {
        if (!list) return nullptr;
        Ref entry = Ref::borrow(Py_None);
        if (output >= 0) {
            const Edge e = r.request.fetches[static_cast<size_t>(output)];
            const Edge after = owner_of(r, e, true);
            Ref owner = r.known(after) || r.known(r.resolve(e))
                            ? Ref::borrow(Py_None)
                            : Ref::steal(PyLong_FromUnsignedLongLong(Rewrite::key(after)));
            if (!owner) return nullptr;
            const Ref views = views_new(r, e);
            if (!views) return nullptr;
            entry =
                Ref::steal(Py_BuildValue("(KOO)", static_cast<unsigned long long>(Rewrite::key(owner_of(r, e, false))),
                                         owner.get(), views.get()));
        }
        if (!entry || PyList_Append(list.get(), entry.get()) < 0) return nullptr;
    }
    return list.release();
}

}  // namespace

Edge owner_of(const Rewrite& r, Edge e, bool merged) {
    for (;;) {
        if (merged) e = r.resolve(e);
        const Edge next = shown(r, e);
        if (Rewrite::key(next) == Rewrite::key(e)) return e;
        e = next;
    }
}

PyObject* plan_owners(PyObject* self, PyObject*) {
    return guarded(
        [&]() -> PyObject* {
            const auto& plan = *reinterpret_cast<const PlanObject*>(self);
            return graph_of(plan.graph).check_usable() < 0 ? nullptr : owners_new(plan);
        },
        static_cast<PyObject*>(nullptr));
}

PyObject* plan_facts(PyObject* self, PyObject*) {
    return guarded(
        [&]() -> PyObject* {
            const auto& plan = *reinterpret_cast<const PlanObject*>(self);
            if (graph_of(plan.graph).check_usable() < 0) return nullptr;
            Facts facts(plan);
            Ref nodes = Ref::steal(facts.list_new());
            Ref steps = nodes ? Ref::steal(facts.steps_new()) : Ref();
            Ref off = steps ? facts.disabled_new() : Ref();
            return off ? PyTuple_Pack(3, nodes.get(), steps.get(), off.get()) : nullptr;
        },
        static_cast<PyObject*>(nullptr));
}

}  // namespace pyop
