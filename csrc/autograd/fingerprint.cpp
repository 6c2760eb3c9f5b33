// autograd/fingerprint.cpp: hash the bytes of an array, at the speed of memory.
#include "autograd/fingerprint.h"

#include <algorithm>  // std::min
#include <bit>        // std::rotl
#include <cstring>    // std::memcpy

#include "autograd/state.h"

namespace pyop {

namespace {

constexpr npy_intp kWordsAtOnce = 64;
constexpr npy_intp kMegabyte = npy_intp{1} << 20;
constexpr npy_intp kLittle = npy_intp{1} << 14;
constexpr npy_intp kSampled = 4096;  // elements of a large array that lies scattered

// Eight chains side by side, since each waits for its multiplications. Every step can be undone, so that no change of a
// single word is lost.
class Hash {
  public:
    void line(const char* bytes) {
        uint64_t words[kLanes];
        std::memcpy(words, bytes, sizeof words);
        for (int k = 0; k < kLanes; ++k) lanes_[k] = step(lanes_[k], words[k]);
    }
    void bytes(const char* bytes, npy_intp n) {
        npy_intp at = 0;
        for (; at + kWordsAtOnce <= n; at += kWordsAtOnce) line(bytes + at);
        for (; at < n; at += 8) {
            uint64_t word = 0;
            std::memcpy(&word, bytes + at, static_cast<size_t>(std::min<npy_intp>(8, n - at)));
            this->word(word);
        }
    }
    void word(uint64_t word) {
        lanes_[next_] = step(lanes_[next_], word);
        next_ = (next_ + 1) % kLanes;
    }
    uint64_t result() const {
        uint64_t all = 0;
        for (const uint64_t lane : lanes_) all = step(all, lane ^ (lane >> 29));
        all ^= all >> 32;
        return all | 1;
    }

  private:
    static constexpr int kLanes = 8;
    static uint64_t step(uint64_t lane, uint64_t word) { return std::rotl((lane ^ word) * 0x9E3779B97F4A7C15u, 29); }
    uint64_t lanes_[kLanes] = {1, 2, 3, 4, 5, 6, 7, 8};
    int next_ = 0;
};

// All elements, or some of very many, wherever they lie. Axes without a stride are read once.
void scattered(Hash& hash, PyArrayObject* array, npy_intp whole) {
    npy_intp sizes[NPY_MAXDIMS], strides[NPY_MAXDIMS], at[NPY_MAXDIMS] = {};
    int ndim = 0;
    npy_intp count = 1;
    for (int axis = 0; axis < PyArray_NDIM(array); ++axis) {
        if (!PyArray_STRIDE(array, axis)) continue;
        sizes[ndim] = PyArray_DIM(array, axis);
        strides[ndim++] = PyArray_STRIDE(array, axis);
        count *= sizes[ndim - 1];
    }
    const npy_intp item = PyArray_ITEMSIZE(array);
    const npy_intp every = count * item <= whole ? 1 : count / kSampled | 1;
    const char* element = PyArray_BYTES(array);
    if (every == 1 && ndim && strides[ndim - 1] == item) {  // rows
        const npy_intp row = sizes[--ndim] * item;
        for (npy_intp k = 0, rows = row ? count * item / row : 0; k < rows; ++k) {
            hash.bytes(element, row);
            for (int axis = ndim; axis-- > 0;) {
                element += strides[axis];
                if (++at[axis] < sizes[axis]) break;
                element -= strides[axis] * sizes[axis];
                at[axis] = 0;
            }
        }
        return;
    }
    for (npy_intp k = 0; k < count; k += every) {
        npy_intp rest = k, offset = 0;
        for (int axis = ndim; axis-- > 0;) {
            offset += rest % sizes[axis] * strides[axis];
            rest /= sizes[axis];
        }
        hash.bytes(element + offset, item);
    }
}

}  // namespace

Reading reading_of(npy_intp bytes, npy_intp bytes_of_result) {
    return bytes > kLittle && bytes / 8 > bytes_of_result ? Reading::Loosely : Reading::Wholly;
}

uint64_t fingerprint(PyArrayObject* array, Reading reading) {
    if (PyDataType_REFCHK(PyArray_DESCR(array))) return 0;
    npy_intp whole = reading == Reading::Wholly ? kMegabyte : kLittle;
    if (PYOP_UNLIKELY(autograd_state.anomaly)) whole = NPY_MAX_INTP;
    const npy_intp size = PyArray_NBYTES(array);
    Hash hash;
    if (!PyArray_ISONESEGMENT(array)) {
        scattered(hash, array, whole);
    } else if (size <= whole) {
        hash.bytes(PyArray_BYTES(array), size);
    } else {
        const npy_intp step = size <= kMegabyte ? 1024 : 4096;
        for (npy_intp at = 0; at + kWordsAtOnce <= size; at += step) hash.line(PyArray_BYTES(array) + at);
    }
    return hash.result();
}

}  // namespace pyop
