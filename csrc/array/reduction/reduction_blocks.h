// array/reduction/reduction_blocks.h: sum elements that come block by block (BlockReduction).
//
// NumPy adds n elements in pairs: more than 128 are halved (the first half rounded down to a multiple of 8) and the
// sums of the halves added. A BlockReduction is told n beforehand and takes the elements in order, in blocks of any
// size; it has NumPy's loop sum each leaf of that tree when it is complete, and so ends with NumPy's bits without
// ever holding all elements. What is not added in pairs is simply continued from block to block.
#pragma once

#include "array/reduction/reduction.h"

namespace pyop {

class BlockReduction {
  public:
    // Whether a reduction of this kind over one contiguous line of elements can be done by blocks; tried out once for
    // a loop. 1, 0, or -1 with an error set. Attached threads. The dtype of the elements is loop.dtype().
    static int available(const ReductionLoop& loop);

    // Of an available loop; `initial` as Reduction has it (null: the loop's own, or the first element, of which there
    // must be one).
    BlockReduction(const ReductionLoop& loop, const char* initial, npy_intp n);

    // The next `count` elements, side by side and aligned. Any thread; 0, or -1 if the loop reports failure. Flags are
    // left raised as the loop leaves them.
    int add(const char* data, npy_intp count);

    // After n elements: writes the result.
    void finish(char* out) const;

  private:
    static constexpr npy_intp kLeaf = 128;
    static constexpr int kMaxDepth = 60;
    // A sum whose halves are being computed.
    struct Split {
        npy_intp right;    // elements of its second half
        double left;       // sum of its first half, when that is done
        bool left_done;
    };

    int finish_leaf(const char* data);
    void descend(npy_intp n);

    const ReductionLoop& loop_;
    const npy_intp itemsize_;
    const bool pairwise_;
    std::array<char, ReductionLoop::kMaxItemsize> value_;  // result so far; of a pairwise sum what it starts from
    Split splits_[kMaxDepth];
    int depth_ = 0;
    npy_intp leaf_ = 0;    // elements of the leaf that is being filled
    npy_intp filled_ = 0;  // of these, how many are in carried_
    double total_ = 0;
    bool done_ = false;
    bool started_;  // value_ is one
    alignas(16) std::array<char, kLeaf * sizeof(double)> carried_;
};

}  // namespace pyop
