// array/reduction/row_sums.cpp: loop over rows, of lengths known at compile time and others.
#include "array/reduction/row_sums.h"

#include <cstring>

#include "array/view/known_length.h"

namespace pyop {

namespace {

template <class T>
T load(const char* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

// `known`: the length of a row, or 0.
template <class T, npy_intp known>
void sum_rows(const ShortRows& rows) {
    const npy_intp length = known ? known : rows.length, first = rows.initial ? 0 : 1;
    const char* row = rows.from;
    char* to = rows.to;
    for (npy_intp i = 0; i < rows.count; ++i, row += rows.pitch, to += rows.to_pitch) {
        T result = load<T>(rows.initial ? rows.initial : row);
        if (first < length) {
            T sum = load<T>(row + first * rows.stride);
            for (npy_intp k = first + 1; k < length; ++k) sum += load<T>(row + k * rows.stride);
            result += sum;
        }
        std::memcpy(to, &result, sizeof result);
    }
}

template <class T, npy_intp known>
void add_rows(const ShortRows& rows) {
    const npy_intp length = known ? known : rows.length;
    T sums[kShortColumns];
    for (npy_intp k = 0; k < length; ++k) sums[k] = load<T>(rows.to + k * rows.to_pitch);
    const char* row = rows.from;
    for (npy_intp i = 0; i < rows.count; ++i, row += rows.pitch)
        for (npy_intp k = 0; k < length; ++k) sums[k] += load<T>(row + k * rows.stride);
    for (npy_intp k = 0; k < length; ++k) std::memcpy(rows.to + k * rows.to_pitch, &sums[k], sizeof(T));
}

template <class T>
void sum_rows_of(const ShortRows& rows) {
    with_known_length(rows.length, [&](auto known) { sum_rows<T, known>(rows); });
}

template <class T>
void add_rows_of(const ShortRows& rows) {
    with_known_length(rows.length, [&](auto known) { add_rows<T, known>(rows); });
}

}  // namespace

RowSums find_row_sums(int type_num) {
    if (type_num == NPY_DOUBLE) return sum_rows_of<double>;
    if (type_num == NPY_FLOAT) return sum_rows_of<float>;
    return nullptr;
}

RowSums find_column_sums(int type_num) {
    if (type_num == NPY_DOUBLE) return add_rows_of<double>;
    if (type_num == NPY_FLOAT) return add_rows_of<float>;
    return nullptr;
}

}  // namespace pyop
