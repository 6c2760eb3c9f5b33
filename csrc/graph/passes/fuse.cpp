#include "graph/passes/fuse.h"

#include <algorithm>
#include <unordered_map>

namespace pyop {

namespace {

constexpr size_t kMaxMembers = 64;
constexpr size_t kMaxExternals = 48;

// Loops by ufunc and operand kinds, for the life of the process: asking NumPy takes microseconds.
struct LoopKey {
    PyObject* ufunc;
    std::array<PyObject*, StridedLoop::kMaxOperands> kinds;
    bool operator==(const LoopKey&) const = default;
};
struct LoopKeyHash {
    size_t operator()(const LoopKey& k) const {
        size_t h = reinterpret_cast<size_t>(k.ufunc);
        for (PyObject* kind : k.kinds) h = (h ^ reinterpret_cast<size_t>(kind)) * 0x9E3779B97F4A7C15ull;
        return h;
    }
};
struct Known {
    Ref ufunc;  // keeps the key valid; the kinds are NumPy's own dtypes and builtin types
    std::shared_ptr<const StridedLoop> loop;  // null: not available
};

int find_loop(const LoopKey& key, int n, std::shared_ptr<const StridedLoop>& loop) {
    static auto* known = new std::unordered_map<LoopKey, Known, LoopKeyHash>;  // outlives static destruction
    if (const auto it = known->find(key); it != known->end()) {
        loop = it->second.loop;
        return 0;
    }
    auto fresh = std::make_shared<StridedLoop>();
    const int status = fresh->resolve(key.ufunc, key.kinds.data(), n);
    if (status < 0) return -1;
    if (status == 1) loop = std::move(fresh);
    known->emplace(key, Known{Ref::borrow(key.ufunc), loop});
    return 0;
}

bool is_builtin_dtype(PyArray_Descr* d) {
    if (!PyTypeNum_ISNUMBER(d->type_num) && d->type_num != NPY_BOOL) return false;
    PyArray_Descr* builtin = PyArray_DescrFromType(d->type_num);
    Py_DECREF(builtin);
    return d == builtin;
}

class Fuser {
  public:
    Fuser(const Rewrite& r, Fusion& f) : r_(r), f_(f), position_(r.g.size(), 0) {}

    int run(const std::vector<uint32_t>& schedule) {
        f_.loops.resize(r_.g.size());
        f_.group_of.assign(r_.g.size(), -1);
        for (size_t i = 0; i < schedule.size(); ++i) {
            position_[schedule[i]] = i + 1;
            if (look(schedule[i]) < 0) return -1;
            if (f_.loops[schedule[i]]) place(schedule[i]);
            for (Edge e : r_.g.node(schedule[i]).inputs()) {
                e = r_.resolve(e);
                if (f_.loops[e.node]) readers_[e.node].push_back(schedule[i]);
            }
        }
        std::erase_if(f_.groups, [](const FusedNodes& g) { return g.members.empty(); });
        for (size_t k = 0; k < f_.groups.size(); ++k)
            for (const uint32_t node : f_.groups[k].members) f_.group_of[node] = static_cast<int32_t>(k);
        return 0;
    }

  private:
    // Finds the loop of a node, if it is an elementwise ufunc of known dtypes and shape.
    int look(uint32_t i) {
        const PyNode& node = r_.g.node_as<PyNode>(i);
        if (node.contract() || node.lends() || !is_elementwise_ufunc(node.fn()) || !shape_is_known(i)) return 0;
        LoopKey key{node.fn(), {}};
        const size_t n = node.form() ? node.form()->order.size() : node.inputs().size();
        if (n >= key.kinds.size() || (node.form() && node.form()->n_keywords())) return 0;
        for (size_t a = 0; a < n; ++a) {
            key.kinds[a] = kind_of_argument(node, a);
            if (!key.kinds[a]) return 0;
        }
        std::shared_ptr<const StridedLoop> loop;
        if (find_loop(key, static_cast<int>(n), loop) < 0) return -1;
        if (loop && takes_as_they_are(node, *loop, n)) f_.loops[i] = std::move(loop);
        return 0;
    }

    bool shape_is_known(uint32_t i) const {
        const ValueSpec& spec = r_.g.spec({i, 0});
        return spec.ndim >= 0 && std::find(spec.dims.begin(), spec.dims.end(), kUnknownSize) == spec.dims.end();
    }

    PyObject* kind_of_argument(const PyNode& node, size_t a) const {
        const int32_t code = node.form() ? node.form()->order[a] : static_cast<int32_t>(a);
        if (code < 0) {
            PyObject* number = PyTuple_GET_ITEM(node.form()->statics.get(), ~code);
            const bool weak = PyFloat_CheckExact(number) || PyLong_CheckExact(number) || PyComplex_CheckExact(number);
            return weak ? reinterpret_cast<PyObject*>(Py_TYPE(number)) : nullptr;
        }
        PyArray_Descr* d = r_.g.spec(node.inputs()[static_cast<size_t>(code)]).descr();
        return d && is_builtin_dtype(d) ? reinterpret_cast<PyObject*>(d) : nullptr;
    }

    // Arrays that the loop would want cast are left to the ufunc, which casts in its buffers.
    bool takes_as_they_are(const PyNode& node, const StridedLoop& loop, size_t n) const {
        for (size_t a = 0; a < n; ++a) {
            const int32_t code = node.form() ? node.form()->order[a] : static_cast<int32_t>(a);
            if (code >= 0 &&
                r_.g.spec(node.inputs()[static_cast<size_t>(code)]).descr() != loop.dtype(static_cast<int>(a)))
                return false;
        }
        return true;
    }

    // Puts a native node into the groups of its producers, joined, where that keeps the order of everything else;
    // or into one of its own.
    void place(uint32_t i) {
        std::vector<int32_t> candidates;
        for (const Edge e : r_.g.node(i).inputs()) {
            const int32_t g = group_of(e);
            if (g >= 0 && std::find(candidates.begin(), candidates.end(), g) == candidates.end())
                candidates.push_back(g);
        }
        // All of them if that works, else one by one: alone, one producer may stand in the way of another.
        std::vector<uint32_t> members;
        if (!extend(members, candidates, i))
            for (const int32_t g : candidates) extend(members, {g}, i);
        for (const uint32_t m : members) f_.groups[static_cast<size_t>(f_.group_of[m])].members.clear();
        members.push_back(i);
        std::sort(members.begin(), members.end());
        for (const uint32_t m : members) f_.group_of[m] = static_cast<int32_t>(f_.groups.size());
        f_.groups.push_back({std::move(members)});
    }

    bool extend(std::vector<uint32_t>& members, const std::vector<int32_t>& groups, uint32_t i) const {
        std::vector<uint32_t> joined = members;
        for (const int32_t g : groups) {
            const auto& more = f_.groups[static_cast<size_t>(g)].members;
            if (!same_shape(i, more.front())) return false;
            joined.insert(joined.end(), more.begin(), more.end());
        }
        if (!may_join(joined, i)) return false;
        members = std::move(joined);
        return true;
    }

    int32_t group_of(Edge e) const {
        e = r_.resolve(e);
        if (r_.is_fed(e) || r_.known(e)) return -1;
        return f_.group_of[e.node];
    }

    bool same_shape(uint32_t a, uint32_t b) const {
        const ValueSpec &x = r_.g.spec({a, 0}), &y = r_.g.spec({b, 0});
        return x.ndim == y.ndim && x.dims == y.dims;
    }

    // The group runs where its last member stood. So whatever it reads from outside was computed before its first
    // member, which also means that it does not depend on the group; and nobody outside has read a member by then.
    bool may_join(const std::vector<uint32_t>& members, uint32_t last) const {
        if (members.size() + 1 > kMaxMembers) return false;
        size_t first = position_[last], externals = 0;
        for (const uint32_t m : members) first = std::min(first, position_[m]);
        const auto inside = [&](uint32_t node) {
            return std::find(members.begin(), members.end(), node) != members.end();
        };
        for (const uint32_t m : members)
            if (const auto it = readers_.find(m); it != readers_.end())
                if (!std::all_of(it->second.begin(), it->second.end(), inside)) return false;
        const auto reads_early = [&](uint32_t node) {
            for (Edge e : r_.g.node(node).inputs()) {
                e = r_.resolve(e);
                if (inside(e.node) && !r_.is_fed(e)) continue;
                ++externals;
                if (!r_.is_fed(e) && !r_.known(e) && position_[e.node] >= first) return false;
            }
            return true;
        };
        return std::all_of(members.begin(), members.end(), reads_early) && reads_early(last) &&
               externals <= kMaxExternals;
    }

    const Rewrite& r_;
    Fusion& f_;
    std::vector<size_t> position_;  // in the schedule, from 1
    std::unordered_map<uint32_t, std::vector<uint32_t>> readers_;  // of native nodes, as far as the schedule was seen
};

}  // namespace

int fuse(const Rewrite& r, const std::vector<uint32_t>& schedule, Fusion& fusion) {
    const bool any = std::any_of(schedule.begin(), schedule.end(),
                                 [&](uint32_t i) { return is_elementwise_ufunc(r.g.node_as<PyNode>(i).fn()); });
    if (!any) return 0;
    return Fuser(r, fusion).run(schedule);
}

}  // namespace pyop
