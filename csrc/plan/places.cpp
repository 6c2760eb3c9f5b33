// plan/places.cpp: find where an instruction reads its inputs, and leaves its results.
#include "plan/places.h"

#include "runtime/errors.h"
#include "runtime/up_calls.h"

namespace pyop {

void Places::place_feeds() {
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
        feed_of_[Rewrite::key(e)] = static_cast<uint32_t>(p_.feeds.size() - 1);
    }
}

npy_intp Places::feed_dim(int64_t size, int d, std::unordered_map<int64_t, npy_intp>& symbols) {
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

Operand Places::read(Edge e, bool lent) {
    if (PyObject* constant = r_.known(e)) {
        const auto [it, added] = constant_of_.emplace(constant, static_cast<uint32_t>(p_.constants.size()));
        if (added) p_.constants.push_back(Ref::borrow(constant));
        return {it->second | Operand::kConstant};
    }
    if (r_.is_fed(e)) {
        Feed& feed = p_.feeds[feed_of_.at(Rewrite::key(e))];
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

PYOP_COLD void Places::not_fed(uint32_t node) {
    if (failed_) return;
    failed_ = true;
    PyErr_Format(errors.graph, "%s is needed but not fed: give it a value in feeds={%s: array}",
                 NodeCaller(r_.g, node).description().c_str(), NodeCaller(r_.g, node).name().c_str());
}

void Places::place_results(uint32_t node) {
    slot_of_[node] = p_.n_slots;
    for (uint32_t k = 0; k < r_.g.node(node).n_outputs(); ++k) p_.results.push_back(p_.n_slots++);
}

void Places::place_result(Edge e) {
    if (!placed(e.node)) {
        slot_of_[e.node] = p_.n_slots;
        p_.n_slots += r_.g.node(e.node).n_outputs();
    }
    p_.results.push_back(slot_of_[e.node] + e.output);
}

}  // namespace pyop
