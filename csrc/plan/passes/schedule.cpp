// plan/passes/schedule.cpp: compute a depth-first order, and the most memory that it and creation order hold.
#include "plan/passes/schedule.h"

#include <algorithm>
#include <limits>

#include "plan/steps/guard_step.h"
#include "plan/steps/view_reading.h"

namespace pyop {

namespace {

// What sizes count as that only the run knows.
constexpr double kUnknownLength = 64;
constexpr double kUnknownBytes = 4096;

double bytes_of(const ValueSpec& spec) {
    if (spec.ndim < 0) return kUnknownBytes;
    double bytes = spec.dtype ? static_cast<double>(PyDataType_ELSIZE(spec.descr())) : 8;
    for (const int64_t size : spec.dims) bytes *= size >= 0 ? static_cast<double>(size) : kUnknownLength;
    return bytes;
}

class Scheduler {
  public:
    Scheduler(const Rewrite& r, const std::vector<uint32_t>& nodes, const Units& units)
        : r_(r), nodes_(nodes), units_(units), n_(static_cast<uint32_t>(units.heads.size())), facts_(n_) {}

    // True if `order`, of units, holds less at once than their own order.
    bool run(std::vector<uint32_t>& order) {
        find_producers();
        weigh();
        find_owners();
        double least;
        const double as_written = peak([](uint32_t position) { return position; }, &least);
        if (as_written <= least) return false;
        sort_producers();
        order.reserve(n_);
        for (uint32_t u = 0; u < n_; ++u)
            if (!facts_[u].read) visit(u, order);
        return peak([&](uint32_t position) { return order[position]; }, nullptr) < as_written;
    }

  private:
    static constexpr uint32_t kNone = Units::kNone;
    static constexpr uint32_t kHeld = UINT32_MAX - 1;  // last read by the caller

    struct Unit {
        double weight = 0;      // bytes of its results that are read later
        double need = 0;        // bytes at most while it and what it reads are computed
        uint32_t owner = kNone;  // whose memory its results show: its own but for views
        uint32_t last = kNone;   // position of the last instruction that reads the memory
        bool read = false;
        bool held = false;      // it owns memory of a fetch
        bool visited = false;
    };

    template <typename Found>
    void each_producer(uint32_t node, Found found) const {
        for (Edge e : r_.g.node(node).inputs()) {
            e = r_.resolve(e);
            if (r_.is_fed(e)) continue;
            const uint32_t from = units_.unit_of[e.node];
            if (from != kNone && from != units_.unit_of[node]) found(e, from);
        }
    }

    void find_producers() {
        first_.assign(n_ + 1, 0);
        for (const uint32_t i : nodes_) each_producer(i, [&](Edge, uint32_t) { ++first_[units_.unit_of[i] + 1]; });
        each_ordered_pair([&](uint32_t, uint32_t later) { ++first_[later + 1]; });
        for (uint32_t u = 0; u < n_; ++u) first_[u + 1] += first_[u];
        producers_.resize(first_[n_]);
        std::vector<uint32_t> next(first_.begin(), first_.end() - 1);
        for (const uint32_t i : nodes_)
            each_producer(i, [&](Edge, uint32_t from) { producers_[next[units_.unit_of[i]]++] = from; });
        each_ordered_pair([&](uint32_t earlier, uint32_t later) { producers_[next[later]++] = earlier; });
        for (const uint32_t u : producers_) facts_[u].read = true;
    }

    template <typename Found>
    void each_ordered_pair(Found found) const {
        uint32_t last = kNone, guard = kNone;
        for (uint32_t u = 0; u < n_; ++u) {
            const Node& node = r_.g.node(units_.heads[u]);
            if (!node.stateful()) {
                if (guard != kNone) found(guard, u);
                continue;
            }
            if (last != kNone) found(last, u);
            if (guard != kNone && guard != last) found(guard, u);
            last = u;
            if (is_guard(node)) guard = u;
        }
    }

    void weigh() {
        Flags counted(r_.n_nodes);
        const auto count = [&](uint32_t node) {
            if (counted[node]) return;
            counted[node] = true;
            for (uint32_t k = 0; k < r_.g.node(node).n_outputs(); ++k)
                facts_[units_.unit_of[node]].weight += bytes_of(r_.g.spec({node, k}));
        };
        for (const uint32_t i : nodes_) each_producer(i, [&](Edge e, uint32_t) { count(e.node); });
        for (Edge e : r_.request.fetches) {
            e = r_.resolve(e);
            if (r_.is_fed(e) || units_.unit_of[e.node] == kNone) continue;
            count(e.node);
            facts_[units_.unit_of[e.node]].held = true;
        }
    }

    // Views own nothing: they keep what they are of.
    void find_owners() {
        for (uint32_t u = 0; u < n_; ++u) {
            Unit& unit = facts_[u];
            unit.owner = u;
            if (!makes_view(r_, units_.heads[u])) continue;
            unit.owner = first_[u] < first_[u + 1] ? facts_[producers_[first_[u]]].owner : kNone;
            unit.weight = 0;
            if (unit.held && unit.owner != kNone) facts_[unit.owner].held = true;
        }
    }

    // What is held at most when the units run in an order; and what no order can do without.
    template <typename Order>
    double peak(Order order, double* least) {
        for (uint32_t at = 0; at < n_; ++at)
            each_owner(order(at), [&](Unit& owner) { owner.last = owner.held ? kHeld : at; });
        double now = 0, most = 0;
        if (least) *least = 0;
        for (uint32_t at = 0; at < n_; ++at) {
            Unit& unit = facts_[order(at)];
            now += unit.weight;
            most = std::max(most, now);
            if (least) {
                double alone = unit.weight;
                each_owner(order(at), [&](Unit& owner) {
                    if (owner.visited) return;
                    owner.visited = true;
                    alone += owner.weight;
                });
                each_owner(order(at), [](Unit& owner) { owner.visited = false; });
                *least = std::max(*least, alone);
            }
            each_owner(order(at), [&](Unit& owner) {
                if (owner.last != at) return;
                owner.last = kNone;
                now -= owner.weight;
            });
        }
        return most;
    }

    template <typename Found>
    void each_owner(uint32_t u, Found found) {
        for (uint32_t k = first_[u]; k < first_[u + 1]; ++k)
            if (const uint32_t owner = facts_[producers_[k]].owner; owner != kNone) found(facts_[owner]);
    }

    double held_by(uint32_t u) const {
        const uint32_t owner = facts_[u].owner;
        return owner == kNone ? 0 : facts_[owner].weight;
    }

    // First the one that needs most beyond what it leaves behind: the best order of trees.
    void sort_producers() {
        for (uint32_t u = 0; u < n_; ++u) {
            const auto begin = producers_.begin() + first_[u], end = producers_.begin() + first_[u + 1];
            std::stable_sort(begin, end, [&](uint32_t a, uint32_t b) {
                return facts_[a].need - held_by(a) > facts_[b].need - held_by(b);
            });
            double kept = 0, need = 0;
            for (auto it = begin; it != end; ++it) {
                need = std::max(need, kept + facts_[*it].need);
                kept += held_by(*it);
            }
            facts_[u].need = std::max(need, kept + facts_[u].weight);
        }
    }

    void visit(uint32_t root, std::vector<uint32_t>& order) {
        stack_.push_back({root, first_[root]});
        facts_[root].visited = true;
        while (!stack_.empty()) {
            auto& [u, next] = stack_.back();
            if (next == first_[u + 1]) {
                order.push_back(u);
                stack_.pop_back();
                continue;
            }
            const uint32_t producer = producers_[next++];
            if (facts_[producer].visited) continue;
            facts_[producer].visited = true;
            stack_.push_back({producer, first_[producer]});
        }
    }

    const Rewrite& r_;
    const std::vector<uint32_t>& nodes_;
    const Units& units_;
    const uint32_t n_;
    std::vector<Unit> facts_;
    std::vector<uint32_t> first_, producers_;  // by unit, what it reads: producers_[first_[u] .. first_[u + 1])
    std::vector<std::pair<uint32_t, uint32_t>> stack_;
};

}  // namespace

std::vector<uint32_t> scheduled(const Rewrite& r, const std::vector<uint32_t>& nodes, const Units& units) {
    std::vector<uint32_t> order;
    if (!Scheduler(r, nodes, units).run(order)) return units.heads;
    for (uint32_t& u : order) u = units.heads[u];
    return order;
}

}  // namespace pyop
