// plan/places.h: find where an instruction reads its inputs, and leaves its results.
#pragma once

#include <unordered_map>
#include <vector>

#include "plan/program.h"

namespace pyop {

// The feeds, constants and slots of a Program, given out as its instructions are made.
class Places {
  public:
    Places(const Rewrite& r, Program& p) : r_(r), p_(p), slot_of_(r.g.size(), kNoSlot) {}

    void place_feeds();

    // Where a value is found, giving it a place the first time. `lent`: wanted read-only.
    Operand read(Edge e, bool lent);

    // Appends the results of a node to those of the Program.
    void place_results(uint32_t node);

    // Appends one of them. Results of one node lie side by side, read or not; slots that nobody reads are not written.
    void place_result(Edge e);

    bool placed(uint32_t node) const { return slot_of_[node] != kNoSlot; }

    // Whether something had no place; with an error set.
    bool failed() const { return failed_; }

  private:
    npy_intp feed_dim(int64_t size, int d, std::unordered_map<int64_t, npy_intp>& symbols);
    void not_fed(uint32_t node);

    const Rewrite& r_;
    Program& p_;
    std::vector<uint32_t> slot_of_;  // by node: the slot of its first output
    std::unordered_map<uint64_t, uint32_t> feed_of_;
    std::unordered_map<PyObject*, uint32_t> constant_of_;
    bool failed_ = false;
};

}  // namespace pyop
