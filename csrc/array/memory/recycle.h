// array/memory/recycle.h: hand out again a small result that the caller has dropped.
//
// Making an ndarray and destroying it costs some 60 ns, ten times what a small plan computes. So an output of a
// plan keeps the last few arrays it has handed out, and when nobody else holds one any more it is the next result:
// in `for ...: y = plan(x)` two arrays take turns, since `y` holds the last one while the next is computed.
//
// What makes this safe: an array is handed out only if this object holds the one reference to it (a view, a buffer,
// a DLPack capsule and a base all hold one), if nothing weak points to it, and if it still is what it was: an
// ndarray that owns its data, with the same flags, dtype and shape in C order. Whatever was exported as a buffer or
// twisted is let go. What remains visible is that reference: sys.getrefcount(y) says one more, y.resize(...) wants
// refcheck=False, and a weak reference lives until the next call or the end of the plan.
//
// Threads: attached only; the GIL makes "one reference" and "take it" one step, so two callers never get the same
// array. On a free-threaded build they are two, so nothing is kept there. Neither is it with arrays of Python objects,
// nor above kMostBytes: every such result is fresh.
#pragma once

#include "array/numpy.h"

namespace pyop {

class ResultRecycler {
  public:
    // Larger results cost more to compute than to make, and their memory comes back through the pool.
    static constexpr npy_intp kMostBytes = 16 << 10;

    ResultRecycler() = default;
    ResultRecycler(ResultRecycler&& other) noexcept;
    ResultRecycler(const ResultRecycler&) = delete;
    ResultRecycler& operator=(const ResultRecycler&) = delete;
    ~ResultRecycler() { clear(); }

    // A writable array in C order of undefined content. New reference, or nullptr with the error set.
    PYOP_INLINE PyObject* take(PyArray_Descr* dtype /* borrowed */, int ndim, const npy_intp* dims) {
#ifdef Py_GIL_DISABLED
        return take_other(0, dtype, ndim, dims);
#else
        const unsigned turn = turn_;
        turn_ = (turn + 1) % kKept;
        const Kept& oldest = kept_[turn];
        if (PYOP_LIKELY(oldest.array && fits(oldest, dtype, ndim, dims))) {
            in_vain_ = 0;
            return Py_NewRef(oldest.array);
        }
        return take_other(turn, dtype, ndim, dims);
#endif
    }

    // An array that is kept and free, or null, which is no error: nothing is made, and nothing goes.
    PYOP_INLINE PyObject* again([[maybe_unused]] PyArray_Descr* dtype /* borrowed */, [[maybe_unused]] int ndim,
                                [[maybe_unused]] const npy_intp* dims) {
#ifdef Py_GIL_DISABLED
        return nullptr;
#else
        for (unsigned i = 0; i < kKept; ++i) {
            const unsigned at = (turn_ + i) % kKept;
            if (!kept_[at].array || !fits(kept_[at], dtype, ndim, dims)) continue;
            turn_ = (at + 1) % kKept;
            in_vain_ = 0;
            return Py_NewRef(kept_[at].array);
        }
        return nullptr;
#endif
    }

    // Lets go of everything. Arrays that are handed out live on.
    void clear();

  private:
    struct Kept {
        PyObject* array = nullptr;
        int flags = 0;  // as they were made
    };
    static constexpr unsigned kKept = 2;

    static bool fits(const Kept& kept, PyArray_Descr* dtype, int ndim, const npy_intp* dims) {
        PyObject* array = kept.array;
        const auto* a = reinterpret_cast<const PyArrayObject_fields*>(array);
        if (!uniquely_owned(array) || a->descr != dtype || a->nd != ndim || a->flags != kept.flags || a->base ||
            a->weakreflist || a->_buffer_info || !PyArray_CheckExact(array)) {
            return false;
        }
        npy_intp step = PyDataType_ELSIZE(dtype);
        for (int d = ndim - 1; d >= 0; --d) {
            if (a->dimensions[d] != dims[d] || a->strides[d] != step) return false;
            if (dims[d]) step *= dims[d];  // as NumPy counts
        }
        return true;
    }

    PYOP_COLD PyObject* take_other(unsigned turn, PyArray_Descr* dtype, int ndim, const npy_intp* dims);

    Kept kept_[kKept];
    unsigned turn_ = 0;
    // A caller that keeps its results makes every look at ours in vain: after so many in a row we rest.
    unsigned in_vain_ = 0, rest_ = 0;
};

}  // namespace pyop
