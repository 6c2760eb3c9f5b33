// array/reduction/row_sums.h: sum over few columns, along the rows and down the columns: the squared lengths of points
// in space, and their mean.
//
// A call of NumPy's loop takes some 15 ns, and NumPy makes one for each row. Along a row of few elements its loop adds
// one after the other, and to what it starts from last; down the columns it adds row after row. So do these.
//
// Any thread.
#pragma once

#include "array/numpy.h"

namespace pyop {

struct ShortRows {
    const char* initial;  // what a sum starts from; null: from the first element of its row
    const char* from;
    npy_intp stride;  // from an element of a row to the next, in bytes
    npy_intp length;  // of a row; 1 at least
    npy_intp pitch;  // from a row to the next
    npy_intp count;  // of rows
    char* to;
    npy_intp to_pitch;  // from a sum to the next
};

using RowSums = void (*)(const ShortRows& rows);

// NumPy's loop for sums adds so many elements one after the other.
constexpr npy_intp kShortRow = 7;
constexpr npy_intp kShortColumns = 16;

// A sum for each row. Null if there is none for that dtype. Whether NumPy's loop gives the same bits is for the caller
// to try (ReductionLoop::try_rows).
RowSums find_row_sums(int type_num);

// All rows added to the one at `to`, from the first to the last; `initial` is not looked at. As above.
RowSums find_column_sums(int type_num);

}  // namespace pyop
