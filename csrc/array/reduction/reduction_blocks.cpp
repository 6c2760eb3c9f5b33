// array/reduction/reduction_blocks.cpp: walk the tree of pairwise summation leaf by leaf, and try that it is
// NumPy's.
#include "array/reduction/reduction_blocks.h"

#include <cstring>
#include <vector>

#include "array/loop/fp_flags.h"
#include "runtime/memo.h"

namespace pyop {

namespace {

bool adds_in_pairs(const ReductionLoop& loop) {
    const int type = loop.dtype()->type_num;
    return !loop.is_sequential() && (type == NPY_DOUBLE || type == NPY_FLOAT);
}

// The trial: sizes around the borders of the tree, in blocks that fit none of them.
bool agrees(const ReductionLoop& loop) {
    constexpr npy_intp kLongest = 5000;
    const auto itemsize = static_cast<size_t>(loop.itemsize());
    std::vector<char> data(kLongest * itemsize);
    for (npy_intp k = 0; k < kLongest; ++k) {
        const double value = static_cast<double>((k * 7919) % 1009 - 504) / 509.0 * static_cast<double>(1 + k % 13);
        const auto single = static_cast<float>(value);
        if (itemsize == sizeof(double))
            std::memcpy(data.data() + k * 8, &value, 8);
        else
            std::memcpy(data.data() + k * 4, &single, 4);
    }
    for (const npy_intp n : {1, 7, 8, 127, 128, 129, 136, 255, 256, 257, 1000, 1024, 4999, 5000}) {
        std::array<char, ReductionLoop::kMaxItemsize> whole, parts;
        std::memcpy(whole.data(), loop.initial(), itemsize);
        if (loop.extend(whole.data(), data.data(), loop.itemsize(), n) < 0) return false;
        BlockReduction blocks(loop, nullptr, n);
        for (npy_intp at = 0; at < n; at += 77)
            if (blocks.add(data.data() + at * loop.itemsize(), std::min<npy_intp>(77, n - at)) < 0) return false;
        blocks.finish(parts.data());
        if (std::memcmp(whole.data(), parts.data(), itemsize) != 0) return false;
    }
    return true;
}

}  // namespace

int BlockReduction::available(const ReductionLoop& loop) {
    static constinit Memo<const ReductionLoop*, bool> known;  // loops live as long as the process
    if (loop.is_sequential()) return 1;
    if (!loop.initial()) return 0;
    // One chunk for NumPy too, whatever the size: else its sum has the borders of its buffers in it.
    if (!adds_in_pairs(loop) || reduction_chunk() != 0) return 0;
    if (const bool* agreed = known.find(&loop)) return *agreed;
    const bool agreed = agrees(loop);
    clear_all_fp_errors();
    return known.keep(&loop, agreed);
}

BlockReduction::BlockReduction(const ReductionLoop& loop, const char* initial, npy_intp n)
    : loop_(loop), itemsize_(loop.itemsize()), pairwise_(adds_in_pairs(loop)) {
    if (!initial) initial = loop.initial();
    started_ = initial != nullptr;
    if (started_) std::memcpy(value_.data(), initial, static_cast<size_t>(itemsize_));
    if (pairwise_) descend(n);
}

void BlockReduction::descend(npy_intp n) {
    while (n > kLeaf) {
        npy_intp left = n / 2;
        left -= left % 8;
        splits_[depth_++] = {n - left, 0, false};
        n = left;
    }
    leaf_ = n;
    filled_ = 0;
}

int BlockReduction::finish_leaf(const char* data) {
    const bool wide = itemsize_ == sizeof(double);
    // The loop adds the sum to what is there: nothing, which of the two zeros is the negative one.
    double sum = -0.0;
    float single = -0.0f;
    if (loop_.extend(wide ? reinterpret_cast<char*>(&sum) : reinterpret_cast<char*>(&single), data, itemsize_, leaf_) <
        0)
        return -1;
    if (!wide) sum = single;
    const auto plus = [wide](double a, double b) {
        return wide ? a + b : static_cast<double>(static_cast<float>(a) + static_cast<float>(b));
    };
    while (depth_ > 0 && splits_[depth_ - 1].left_done) sum = plus(splits_[--depth_].left, sum);
    if (depth_ == 0) {
        total_ = sum;
        done_ = true;
        leaf_ = 0;
        return 0;
    }
    Split& split = splits_[depth_ - 1];
    split.left = sum;
    split.left_done = true;
    descend(split.right);
    return 0;
}

int BlockReduction::add(const char* data, npy_intp count) {
    if (PYOP_UNLIKELY(!started_) && count > 0) {
        std::memcpy(value_.data(), data, static_cast<size_t>(itemsize_));
        started_ = true;
        data += itemsize_;
        --count;
    }
    if (!pairwise_) return loop_.extend(value_.data(), data, itemsize_, count);
    while (count > 0 && !done_) {
        if (filled_ == 0 && count >= leaf_) {
            const npy_intp taken = leaf_;
            if (finish_leaf(data) < 0) return -1;
            data += taken * itemsize_;
            count -= taken;
            continue;
        }
        const npy_intp taken = std::min(count, leaf_ - filled_);
        std::memcpy(carried_.data() + filled_ * itemsize_, data, static_cast<size_t>(taken * itemsize_));
        filled_ += taken;
        data += taken * itemsize_;
        count -= taken;
        if (filled_ == leaf_ && finish_leaf(carried_.data()) < 0) return -1;
    }
    return 0;
}

void BlockReduction::finish(char* out) const {
    std::memcpy(out, value_.data(), static_cast<size_t>(itemsize_));
    if (!pairwise_ || !done_) return;
    if (itemsize_ == sizeof(double)) {
        double start;
        std::memcpy(&start, value_.data(), sizeof start);
        start += total_;
        std::memcpy(out, &start, sizeof start);
    } else {
        float start;
        std::memcpy(&start, value_.data(), sizeof start);
        start += static_cast<float>(total_);
        std::memcpy(out, &start, sizeof start);
    }
}

}  // namespace pyop
