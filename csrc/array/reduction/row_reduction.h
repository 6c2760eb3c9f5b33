// array/reduction/row_reduction.h: reduce each row of elements that come block by block (RowReduction).
#pragma once

#include <optional>

#include "array/reduction/reduction_blocks.h"

namespace pyop {

class RowReduction {
  public:
    // Of a loop that BlockReduction has available, `initial` as there. Rows have `row` elements, one at least; their
    // results go to `out`, side by side, or nowhere if it is null.
    RowReduction(const ReductionLoop& loop, const char* initial, npy_intp row, char* out);

    // As BlockReduction::add(). Rows may begin and end within blocks.
    int add(const char* data, npy_intp count);

  private:
    npy_intp add_short_rows(const char* data, npy_intp count);
    int add_whole_row(const char* data);
    char* next_result();

    const ReductionLoop& loop_;
    const char* const initial_;
    const npy_intp row_;
    char* out_;
    std::optional<BlockReduction> open_;  // the row that a block has ended in
    npy_intp missing_ = 0;                // elements of it that are still to come
    alignas(16) std::array<char, ReductionLoop::kMaxItemsize> unread_;
};

}  // namespace pyop
