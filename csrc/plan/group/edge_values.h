// plan/group/edge_values.h: map what an edge of the graph computes to the value of a group that holds it (EdgeValues).
#pragma once

#include <vector>

#include "graph/passes/rewrite.h"

namespace pyop {

class EdgeValues {
  public:
    static constexpr uint16_t kNone = UINT16_MAX;
    // The value as kernels read it, and, of an array from outside, as NumPy's loops do.
    struct Entry {
        uint64_t key = kFree;
        uint16_t plain = kNone, strict = kNone;
    };

    explicit EdgeValues(size_t expected) {
        size_t n = 8;
        while (n < 2 * expected) n *= 2;
        entries_.resize(n);
    }

    // The entry of an edge, a new one of no values where there is none. Good until the next call.
    Entry& operator[](Edge e) {
        if (2 * used_ >= entries_.size()) grow();
        Entry& entry = place(entries_, Rewrite::key(e));
        if (entry.key == kFree) {
            entry.key = Rewrite::key(e);
            ++used_;
        }
        return entry;
    }

  private:
    static constexpr uint64_t kFree = UINT64_MAX;  // no edge: a graph has fewer nodes

    static Entry& place(std::vector<Entry>& entries, uint64_t key) {
        const size_t mask = entries.size() - 1;
        size_t at = (key * 0x9E3779B97F4A7C15ull >> 32) & mask;
        while (entries[at].key != kFree && entries[at].key != key) at = (at + 1) & mask;
        return entries[at];
    }

    void grow() {
        std::vector<Entry> larger(2 * entries_.size());
        for (const Entry& entry : entries_)
            if (entry.key != kFree) place(larger, entry.key) = entry;
        entries_ = std::move(larger);
    }

    std::vector<Entry> entries_;  // a power of two
    size_t used_ = 0;
};

}  // namespace pyop
