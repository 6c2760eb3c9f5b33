// array/reduction/row_sums.h: sums of many short rows, and of short columns: the squared lengths of points in space,
// and their mean.
//
// NumPy's loop takes some 15 ns a call, for the three elements of a row as for ten. The elements of a row, if they are
// few, it adds one after the other, and what it starts from last; rows that are added up, one after the other. So does
// this.
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
    npy_intp pitch;   // from a row to the next
    npy_intp count;   // of rows
    char* to;
    npy_intp to_pitch;  // from a sum to the next
};

using RowSums = void (*)(const ShortRows& rows);

// NumPy's loop for sums adds so many elements one after the other.
constexpr npy_intp kShortRow = 7;
constexpr npy_intp kShortColumns = 16;

// Null if there is none for sums of that dtype. Whether NumPy's loop gives the same bits is for the caller to try.
RowSums find_row_sums(int type_num);

// Adds all rows to the one row at `to`, from the first to the last; `initial` is not looked at. As above.
RowSums find_column_sums(int type_num);

}  // namespace pyop
