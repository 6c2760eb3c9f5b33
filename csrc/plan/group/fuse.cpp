// plan/group/fuse.cpp: walk the schedule, give elementwise nodes their loops and join them into groups.
#include "plan/group/fuse.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>

#include "array/reduction/reduction_blocks.h"
#include "plan/steps/guard_step.h"
#include "plan/steps/view_reading.h"

namespace pyop {

namespace {

constexpr size_t kMaxMembers = 192;
constexpr size_t kMaxExternals = 31;  // each may become two streams

class Fuser {
  public:
    Fuser(const Rewrite& r, Fusion& f) : r_(r), f_(f), position_(r.g.size(), 0), since_(r.g.size(), 0) {
        last_.fill(kNone);
    }

    int run(const std::vector<uint32_t>& schedule) {
        f_.calls.resize(r_.g.size());
        f_.reductions.resize(r_.g.size());
        f_.group_of.assign(r_.g.size(), -1);
        for (size_t i = 0; i < schedule.size(); ++i) {
            segment_ += is_guard(r_.g.node(schedule[i]));
            position_[schedule[i]] = i + 1;
            since_[schedule[i]] = since(schedule[i]);
            if (find_call(schedule[i]) < 0) return -1;
            if (f_.calls[schedule[i]])
                place(schedule[i]);
            else if (end_with_reduction(schedule[i]) < 0)
                return -1;
            note_reads(schedule[i]);
        }
        for (Candidate& c : candidates_) {
            if (c.members.empty()) continue;
            for (const uint32_t node : c.members) f_.group_of[node] = static_cast<int32_t>(f_.groups.size());
            f_.groups.push_back({std::move(c.members)});
        }
        return 0;
    }

  private:
    // Those of the producers of one node, each once.
    using Groups = FixedVector<int32_t, StridedLoop::kMaxOperands>;

    // A group in the making. It runs where its last member stands, so it may take another member only while nobody
    // outside has read one, and while all it reads could be computed before its first member: then it depends on
    // nothing that depends on it.
    struct Candidate {
        std::vector<uint32_t> members;  // in the order of the schedule
        size_t first = 0;               // position of the first
        std::vector<Edge> externals;    // what it reads from outside
        std::vector<uint32_t> readers;  // outside nodes that have read a member
        size_t segment = 0;             // how many guards stand before its members
    };

    // As elementwise_call. Unrolled loops call the same on the same kinds of arrays again and again: these nodes share
    // one, which is not looked for anew.
    int find_call(uint32_t i) {
        const PyNode& node = r_.g.node_as<PyNode>(i);
        uint32_t* last = nullptr;
        if (!node.form() && !node.contract()) {
            last = &last_[(reinterpret_cast<size_t>(node.fn()) >> 6) % last_.size()];
            if (*last != kNone && alike(*last, i)) {
                f_.calls[i] = f_.calls[*last];
                return 0;
            }
        }
        if (elementwise_call(r_, i, f_.calls[i]) < 0) return -1;
        if (last && f_.calls[i]) *last = i;
        return 0;
    }

    // Whether two nodes, of positional inputs alone, call the same on operands of the same specs.
    bool alike(uint32_t i, uint32_t k) const {
        const PyNode &a = r_.g.node_as<PyNode>(i), &b = r_.g.node_as<PyNode>(k);
        const auto same_spec = [&](Edge x, Edge y) { return r_.g.spec_number(x) == r_.g.spec_number(y); };
        return a.fn() == b.fn() && a.lends() == b.lends() && a.of_scalars() == b.of_scalars() &&
               a.n_outputs() == b.n_outputs() && same_spec({i, 0}, {k, 0}) &&
               std::ranges::equal(a.inputs(), b.inputs(), same_spec);
    }

    // A view is there as soon as what it is a view of, though it stands where it was written.
    size_t since(uint32_t i) const {
        const PyNode& node = r_.g.node_as<PyNode>(i);
        if (node.inputs().size() != 1 || node.contract() || !r_.request.passes.has(Pass::Views)) return position_[i];
        ViewCall view;
        if (!read_view(r_, i, view)) return position_[i];
        const Edge e = r_.resolve(node.inputs()[0]);
        return r_.is_fed(e) || r_.known(e) ? 0 : since_[e.node];
    }

    // Puts a native node into the groups of its producers, joined, if that may be; or into one of its own.
    void place(uint32_t i) {
        Groups producers;
        if (!r_.request.passes.has(Pass::Fuse)) {
            join(producers, i);
            return;
        }
        for (const Edge e : r_.g.node(i).inputs()) {
            const int32_t g = group_of(r_.resolve(e));
            if (g >= 0 && std::find(producers.begin(), producers.end(), g) == producers.end()) producers.push_back(g);
        }
        // All of them if that works, else one by one: alone, one producer may stand in the way of another.
        Groups joined;
        if (may_join(producers, i)) joined = producers;
        for (const int32_t g : producers) {
            if (joined.size() == producers.size()) break;
            joined.push_back(g);
            if (!may_join(joined, i)) joined.pop_back();
        }
        join(joined, i);
    }

    // A reduction along the rows of what a group computes may be its end: the elements are then never stored.
    int end_with_reduction(uint32_t i) {
        if (!r_.request.passes.has(Pass::Fuse) || r_.g.node(i).inputs().size() != 1) return 0;
        const Edge e = r_.resolve(r_.g.node(i).inputs()[0]);
        const int32_t g = group_of(e);
        if (g < 0 || f_.reductions[e.node]) return 0;
        auto reduction = std::make_shared<RowsReduced>();
        if (read_reduction_call(r_, i, reduction->call) < 0) return -1;
        if (MomentCall moment; !reduction->call.found) {
            if (read_moment_call(r_, i, moment) < 0) return -1;
            if (moment.moment != Moment::Mean) return 0;
            reduction->call = std::move(moment.sum);
            reduction->mean = true;
        }
        uint32_t axes;
        const int ndim = r_.g.spec(e).ndim;
        if (!reduction->call.found || reduction->call.reduction.convert || ndim < 1 || ndim > 31 ||
            !reduction->call.axis.bits(ndim, axes) || axes == 0)
            return 0;
        reduction->n_axes = std::popcount(axes);
        if (axes >> (ndim - reduction->n_axes) != (1u << reduction->n_axes) - 1) return 0;
        const int available = BlockReduction::available(*reduction->call.reduction.loop);
        if (available <= 0 || !may_join({&g, 1}, i, false)) return available < 0 ? -1 : 0;
        f_.reductions[i] = std::move(reduction);
        join({&g, 1}, i);
        return 0;
    }

    bool may_join(std::span<const int32_t> groups, uint32_t i, bool elementwise = true) const {
        size_t n_members = 1, n_externals = 0, first = position_[i];
        for (const int32_t g : groups) {
            const Candidate& c = candidate(g);
            if (c.segment != segment_) return false;  // nothing runs before a guard that was written behind it
            n_members += c.members.size();
            first = std::min(first, c.first);
            if (elementwise && !same_shape(i, c.members.front())) return false;
        }
        if (n_members > kMaxMembers) return false;
        const auto inside = [&](int32_t g) {
            return g >= 0 && std::find(groups.begin(), groups.end(), g) != groups.end();
        };
        const auto reads_early = [&](Edge e) {
            if (inside(group_of(e))) return !f_.reductions[e.node];  // that is known when the last block is done
            ++n_externals;
            return since_[e.node] < first || r_.is_fed(e) || r_.known(e);  // the cheap question first
        };
        for (const int32_t g : groups) {
            const Candidate& c = candidate(g);
            if (!std::all_of(c.externals.begin(), c.externals.end(), reads_early)) return false;
            for (const uint32_t reader : c.readers)
                if (!inside(f_.group_of[reader])) return false;
        }
        for (const Edge e : r_.g.node(i).inputs())
            if (!reads_early(r_.resolve(e))) return false;
        return n_externals <= kMaxExternals;
    }

    void join(std::span<const int32_t> groups, uint32_t i) {
        if (groups.empty()) candidates_.push_back({{}, position_[i], {}, {}, segment_});
        const int32_t target = groups.empty() ? static_cast<int32_t>(candidates_.size()) - 1 : groups.front();
        Candidate& into = candidate(target);
        for (const int32_t g : groups) {
            if (g == target) continue;
            Candidate& from = candidate(g);
            for (const uint32_t m : from.members) f_.group_of[m] = target;
            into.first = std::min(into.first, from.first);
            into.members.insert(into.members.end(), from.members.begin(), from.members.end());
            into.externals.insert(into.externals.end(), from.externals.begin(), from.externals.end());
            into.readers.insert(into.readers.end(), from.readers.begin(), from.readers.end());
            from = {};
        }
        if (groups.size() > 1) std::sort(into.members.begin(), into.members.end());
        into.members.push_back(i);
        f_.group_of[i] = target;
        for (const Edge e : r_.g.node(i).inputs()) into.externals.push_back(r_.resolve(e));
        std::erase_if(into.externals, [&](Edge e) { return group_of(e) == target; });
        std::erase_if(into.readers, [&](uint32_t reader) { return f_.group_of[reader] == target; });
    }

    void note_reads(uint32_t i) {
        for (Edge e : r_.g.node(i).inputs()) {
            e = r_.resolve(e);
            const int32_t g = group_of(e);
            if (g >= 0 && g != f_.group_of[i]) candidate(g).readers.push_back(i);
        }
    }

    Candidate& candidate(int32_t g) { return candidates_[static_cast<size_t>(g)]; }
    const Candidate& candidate(int32_t g) const { return candidates_[static_cast<size_t>(g)]; }

    // Of a resolved edge: the group in the making that computes it, -1 if none does.
    // (What is known before the run is no node of the schedule.)
    int32_t group_of(Edge e) const { return r_.is_fed(e) ? -1 : f_.group_of[e.node]; }

    // Sizes that are not known are taken to be the same: at run the layout of a group looks whether all that its
    // results depend on has one shape, and else its nodes run one by one.
    bool same_shape(uint32_t a, uint32_t b) const {
        const uint32_t x = r_.g.node(a).output_specs()[0], y = r_.g.node(b).output_specs()[0];
        const ValueSpec &p = r_.g.spec({a, 0}), &q = r_.g.spec({b, 0});
        return x == y || (p.ndim == q.ndim && p.dims == q.dims);
    }

    const Rewrite& r_;
    Fusion& f_;
    std::vector<size_t> position_;  // in the schedule, from 1
    std::vector<size_t> since_;     // from where on it could be computed, as far as that is cheap to tell
    std::vector<Candidate> candidates_;
    static constexpr uint32_t kNone = ~uint32_t{0};
    std::array<uint32_t, 16> last_;  // nodes whose calls were found last, by what they call
    size_t segment_ = 0;
};

}  // namespace

int fuse(const Rewrite& r, const std::vector<uint32_t>& schedule, Fusion& fusion) {
    const bool any = std::any_of(schedule.begin(), schedule.end(),
                                 [&](uint32_t i) { return may_be_elementwise(r.g.node_as<PyNode>(i).fn()); });
    if (!any) return 0;
    return Fuser(r, fusion).run(schedule);
}

}  // namespace pyop
