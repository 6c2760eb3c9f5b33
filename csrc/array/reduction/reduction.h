// array/reduction/reduction.h: reduce an array as NumPy does, bit for bit, without calling it.
#pragma once

#include "array/loop/convert.h"
#include "array/reduction/reduction_loop.h"

namespace pyop {

struct ReductionWalk;

struct Reduction {
    std::shared_ptr<const ReductionLoop> loop;
    PyArray_Descr* in = nullptr;       // of the arrays to reduce; borrowed, lives for ever
    Convert convert = nullptr;         // to loop->dtype(), if that is another
    bool keepdims = false;
    bool has_initial = false;          // one was given
    std::array<char, ReductionLoop::kMaxItemsize> initial{};

    // For arrays of dtype `in`. 1, 0 if it cannot be done here, -1 with an error set.
    int make(PyObject* ufunc, PyArray_Descr* in, PyArray_Descr* wanted);

    // Reduces `a`, an exact ndarray, over the axes whose bits are set. 1, and a new reference in `result`; 0 where
    // NumPy must be asked (an array that is not as promised, an order that only NumPy's iterator knows, a
    // floating-point error, nothing to reduce); -1 with an error set. Attached threads; releases the GIL for large
    // arrays.
    // `where`, if not null: bools that choose the elements; they must lie in memory in the order of those of `a`.
    int run(PyArrayObject* a, uint32_t axes, PyObject** result, PyArrayObject* where = nullptr) const;
    // As run(), into memory laid out as a walk of (a, axes) says.
    int run_into(PyArrayObject* a, const ReductionWalk& walk, char* out, const char* where = nullptr) const;
};

// The axes of an `axis=` argument, which is None, an int or a tuple of ints.
struct AxisSet {
    // False for anything else, or for too many.
    bool read(PyObject* axis);
    // As bits, for an array of `ndim` dimensions. False if one is out of range or repeated.
    bool bits(int ndim, uint32_t& axes) const;

    bool all = true;
    int n = 0;
    std::array<int, 8> axis{};
};

}  // namespace pyop
