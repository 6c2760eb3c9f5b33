#include "plan/grouping.h"

#include <algorithm>

namespace pyop {

OutsideReads::OutsideReads(const Rewrite& r, const std::vector<uint32_t>& schedule, const Fusion& fusion) {
    if (fusion.group_of.empty()) return;
    const auto note = [&](Edge e, int32_t reader_group) {
        e = r.resolve(e);
        const int32_t group = fusion.group_of[e.node];
        if (group >= 0 && group != reader_group) edges_.insert(Rewrite::key(e));
    };
    for (const uint32_t i : schedule)
        for (const Edge e : r.g.node(i).inputs()) note(e, fusion.group_of[i]);
    for (const Edge e : r.request.fetches) note(e, -1);
}

Grouping::Grouping(const Rewrite& r, const Fusion& fusion, const std::vector<uint32_t>& members,
                   const OutsideReads& outside)
    : r_(r), fusion_(fusion) {
    count_reads(members);
    for (const uint32_t node : members) {
        if (add_step(node, outside)) continue;
        group_.reset();
        return;
    }
    for (const Edge e : outputs_) group_->depends.push_back(internals_.at(Rewrite::key(e)).depends);
}

void Grouping::count_reads(const std::vector<uint32_t>& members) {
    for (const uint32_t node : members)
        for (const Edge e : r_.g.node(node).inputs()) ++reads_[Rewrite::key(r_.resolve(e))];
}

bool Grouping::add_step(uint32_t i, const OutsideReads& outside) {
    const PyNode& node = r_.g.node_as<PyNode>(i);
    LoopStep step{fusion_.loops[i], {}};
    uint64_t depends = 0;
    for (size_t a = 0; a < static_cast<size_t>(step.loop->n_inputs()); ++a)
        if (!add_argument(node, a, step, depends)) return false;
    group_->members().nodes.push_back(i);
    std::vector<Members::Source>& sources = group_->members().sources.emplace_back();
    for (Edge e : node.inputs()) {
        e = r_.resolve(e);
        const auto it = internals_.find(Rewrite::key(e));
        if (it != internals_.end())
            sources.push_back({false, it->second.step, it->second.index});
        else
            sources.push_back({true, external_of_.at(Rewrite::key(e))});
    }
    for (uint32_t k = 0; k < node.n_outputs(); ++k) add_result({i, k}, depends, step, outside);
    for (const Edge e : node.inputs()) release_read(r_.resolve(e));
    group_->steps.push_back(std::move(step));
    return true;
}

bool Grouping::add_argument(const PyNode& node, size_t position, LoopStep& step, uint64_t& depends) {
    const int32_t code = node.form() ? node.form()->order[position] : static_cast<int32_t>(position);
    PyArray_Descr* want = step.loop->dtype(static_cast<int>(position));
    if (code < 0) {
        Py_INCREF(want);
        Ref number = Ref::steal(PyArray_FromAny(PyTuple_GET_ITEM(node.form()->statics.get(), ~code), want, 0, 0,
                                                NPY_ARRAY_CARRAY_RO, nullptr));
        if (!number) {
            PyErr_Clear();
            return false;
        }
        step.operands.push_back({LoopOperand::Number, static_cast<uint16_t>(group_->numbers.size())});
        group_->numbers.push_back(std::move(number));
        return true;
    }
    const Edge e = r_.resolve(node.inputs()[static_cast<size_t>(code)]);
    if (const auto it = internals_.find(Rewrite::key(e)); it != internals_.end()) {
        step.operands.push_back(it->second.place);
        depends |= it->second.depends;
        return true;
    }
    const auto [it, added] = external_of_.emplace(Rewrite::key(e), static_cast<uint16_t>(externals_.size()));
    if (added) {
        externals_.push_back(e);
        group_->externals.push_back(want);
    }
    step.operands.push_back({LoopOperand::External, it->second});
    depends |= uint64_t{1} << it->second;
    return true;
}

void Grouping::add_result(Edge e, uint64_t depends, LoopStep& step, const OutsideReads& outside) {
    const int operand = static_cast<int>(step.operands.size());
    Internal made{{}, static_cast<uint32_t>(group_->steps.size()), e.output, depends, reads_[Rewrite::key(e)]};
    if (outside.contains(e)) {
        made.place = {LoopOperand::Output, static_cast<uint16_t>(outputs_.size())};
        outputs_.push_back(e);
        group_->outputs.push_back(step.loop->dtype(operand));
        group_->members().outputs.emplace_back(made.step, made.index);
    } else {
        made.place = {LoopOperand::Scratch, take_scratch(step.loop->itemsize(operand))};
    }
    step.operands.push_back(made.place);
    internals_.emplace(Rewrite::key(e), made);
}

uint16_t Grouping::take_scratch(npy_intp itemsize) {
    group_->scratch_itemsize = std::max(group_->scratch_itemsize, static_cast<uint32_t>(itemsize));
    if (spare_scratch_.empty()) return static_cast<uint16_t>(group_->n_scratch++);
    const uint16_t block = spare_scratch_.back();
    spare_scratch_.pop_back();
    return block;
}

void Grouping::release_read(Edge e) {
    const auto it = internals_.find(Rewrite::key(e));
    if (it == internals_.end() || --it->second.reads_left > 0) return;
    if (it->second.place.place == LoopOperand::Scratch) spare_scratch_.push_back(it->second.place.index);
}

}  // namespace pyop
