// plan/grouping.h: from the members of a fused group to the LoopGroup that runs them.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "plan/loop_group.h"

namespace pyop {

// Which results of fused nodes somebody outside their group reads.
class OutsideReads {
  public:
    OutsideReads(const Rewrite& r, const std::vector<uint32_t>& schedule, const Fusion& fusion);
    bool contains(Edge e) const { return edges_.count(Rewrite::key(e)) != 0; }

  private:
    std::unordered_set<uint64_t> edges_;
};

class Grouping {
  public:
    Grouping(const Rewrite& r, const Fusion& fusion, const std::vector<uint32_t>& members, const OutsideReads& outside);

    // Null if a Python number does not fit the dtype its loop wants.
    const LoopGroup* group() const { return group_.get(); }
    std::unique_ptr<LoopGroup> take() { return std::move(group_); }
    const std::vector<Edge>& externals() const { return externals_; }
    const std::vector<Edge>& outputs() const { return outputs_; }

  private:
    bool add_step(uint32_t node, const OutsideReads& outside);
    bool add_argument(const PyNode& node, size_t position, LoopStep& step, uint64_t& depends);
    void add_result(Edge e, uint64_t depends, LoopStep& step, const OutsideReads& outside);
    void count_reads(const std::vector<uint32_t>& members);
    uint16_t take_scratch(npy_intp itemsize);
    void release_read(Edge e);

    struct Internal {
        LoopOperand place;
        uint32_t step, index;
        uint64_t depends;
        uint32_t reads_left;
    };

    const Rewrite& r_;
    const Fusion& fusion_;
    std::unique_ptr<LoopGroup> group_ = std::make_unique<LoopGroup>();
    std::vector<Edge> externals_, outputs_;
    std::unordered_map<uint64_t, uint16_t> external_of_;
    std::unordered_map<uint64_t, Internal> internals_;
    std::unordered_map<uint64_t, uint32_t> reads_;
    std::vector<uint16_t> spare_scratch_;
};

}  // namespace pyop
