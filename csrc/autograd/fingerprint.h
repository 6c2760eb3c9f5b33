// autograd/fingerprint.h: tell whether the numbers of an array are still what they were.
//
// NumPy counts no writes. What a node saves, and somebody else can write into (an array of the caller, a buffer, what
// x.numpy() gave away), is remembered by a hash of its bytes.
#pragma once

#include "array/numpy.h"

namespace pyop {

// How much of an array is read. A product with a vector reads its matrix once, several times as fast as a hash does:
// where an operand is much larger than the result, that is Loosely. Under detect_anomaly all is read.
enum class Reading : uint8_t {
    Wholly,   // all of up to 1 MiB, and a cache line of every 4 KiB of larger arrays
    Loosely,  // all of up to 16 KiB, and a cache line of every KiB of up to 1 MiB
};
Reading reading_of(npy_intp bytes, npy_intp bytes_of_result);

// Other bytes that were read have another number, but for a chance of 2^-64; never 0 unless the array holds objects.
uint64_t fingerprint(PyArrayObject* array, Reading reading);

}  // namespace pyop
