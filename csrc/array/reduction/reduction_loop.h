// array/reduction/reduction_loop.h: find how NumPy reduces by a ufunc: its loop, its dtype, its start.
//
// NumPy keeps some of that to itself (whether it starts from the identity or from the first element, and which zero
// the identity is) and it differs by release, so it is found out by trying: a ReductionLoop exists only if the loop,
// called here, gives the bits that ufunc.reduce gives over trial arrays.
#pragma once

#include <array>
#include <memory>

#include "array/loop/strided_loop.h"
#include "array/reduction/row_sums.h"

namespace pyop {

class ReductionLoop {
  public:
    static constexpr npy_intp kMaxItemsize = 16;

    // The loop for reducing arrays of dtype `in` with the argument dtype=`wanted` (null: none). Null if there is none
    // that can be trusted. 0, or -1 with an error set. Remembered for the life of the process. Attached threads.
    static int find(PyObject* ufunc, PyArray_Descr* in, PyArray_Descr* wanted,
                    std::shared_ptr<const ReductionLoop>& loop);

    const StridedLoop& loop() const { return loop_; }
    // Of the result, and of what the loop reads: arrays of another are cast on the way. Borrowed.
    PyArray_Descr* dtype() const { return loop_.dtype(0); }
    npy_intp itemsize() const { return loop_.itemsize(0); }
    // What a result starts from; null: from the first element.
    const char* initial() const { return starts_with_first_ ? nullptr : initial_.data(); }
    // What NumPy returns for no elements, where initial() is not null.
    const char* of_nothing() const { return of_nothing_.data(); }
    // More than one axis may be reduced at once.
    bool reorderable() const { return reorderable_; }
    // The result does not depend on how many elements each call of the loop gets.
    bool is_sequential() const { return sequential_; }

    // One step for each of many results depends on how many of them a call of the loop gets: some loops pick another
    // of two equal numbers, or of two NaNs, in what does not fill a vector.
    bool place_matters() const { return place_matters_; }

    // For many rows at once, each of so many elements beside what it starts from; null if there is no such loop.
    RowSums row_sums(npy_intp added) const { return added <= kShortRow ? row_sums_ : nullptr; }
    // For adding many rows, of no more than kShortColumns elements, to one; null if there is no such loop.
    RowSums column_sums() const { return column_sums_; }

    // Continues the value at `out` over n elements. Any thread; 0, or -1 if the loop reports failure.
    int extend(char* out, const char* data, npy_intp stride, npy_intp n) const {
        char* const operands[] = {out, const_cast<char*>(data), out};
        const npy_intp strides[] = {0, stride, 0};
        return loop_(operands, n, strides);
    }

  private:
    int try_out(PyObject* ufunc, int& fits);
    int try_places();
    int try_rows();

    StridedLoop loop_;
    std::array<char, kMaxItemsize> initial_{}, of_nothing_{};
    bool starts_with_first_ = false, reorderable_ = false, sequential_ = false, place_matters_ = false;
    RowSums row_sums_ = nullptr, column_sums_ = nullptr;
};

// How many elements at most NumPy gives a loop at once where the result does not move: 0 for any number, else its
// buffer size. Differs by release.
npy_intp reduction_chunk();
// The buffer size now in force on this thread (np.setbufsize). -1 with an error set.
npy_intp buffer_size();

int reduction_init();

}  // namespace pyop
