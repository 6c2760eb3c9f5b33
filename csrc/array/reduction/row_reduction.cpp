// array/reduction/row_reduction.cpp: put together rows that begin and end within blocks.
#include "array/reduction/row_reduction.h"

#include <cstring>

namespace pyop {

RowReduction::RowReduction(const ReductionLoop& loop, const char* initial, npy_intp row, char* out)
    : loop_(loop), initial_(initial ? initial : loop.initial()), row_(row), out_(out) {}

char* RowReduction::next_result() {
    if (!out_) return unread_.data();
    char* const result = out_;
    out_ += loop_.itemsize();
    return result;
}

int RowReduction::add_whole_row(const char* data) {
    const npy_intp itemsize = loop_.itemsize();
    char* const result = next_result();
    std::memcpy(result, initial_ ? initial_ : data, static_cast<size_t>(itemsize));
    return initial_ ? loop_.extend(result, data, itemsize, row_)
                    : loop_.extend(result, data + itemsize, itemsize, row_ - 1);
}

// How many elements were taken: those of whole rows, if there is a loop for many at once.
npy_intp RowReduction::add_short_rows(const char* data, npy_intp count) {
    const RowSums sums = out_ && !open_ ? loop_.row_sums(row_ - (initial_ ? 0 : 1)) : nullptr;
    if (!sums) return 0;
    const npy_intp itemsize = loop_.itemsize(), rows = count / row_;
    sums({initial_, data, itemsize, row_, row_ * itemsize, rows, out_, itemsize});
    out_ += rows * itemsize;
    return rows * row_;
}

int RowReduction::add(const char* data, npy_intp count) {
    while (count > 0) {
        const npy_intp summed = add_short_rows(data, count);
        data += summed * loop_.itemsize();
        count -= summed;
        if (count == 0) break;
        npy_intp taken = row_;
        if (!open_ && count >= row_) {
            if (add_whole_row(data) < 0) return -1;
        } else {
            if (!open_) {
                open_.emplace(loop_, initial_, row_);
                missing_ = row_;
            }
            taken = std::min(count, missing_);
            if (open_->add(data, taken) < 0) return -1;
            missing_ -= taken;
            if (missing_ == 0) {
                open_->finish(next_result());
                open_.reset();
            }
        }
        data += taken * loop_.itemsize();
        count -= taken;
    }
    return 0;
}

}  // namespace pyop
