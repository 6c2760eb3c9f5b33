// array/memory/recycle.cpp: search beyond the array whose turn it is, and make a fresh result where none is free.
#include "array/memory/recycle.h"

#include <utility>  // std::exchange

#include "array/memory/pool.h"

namespace pyop {

namespace {

constexpr unsigned kPatience = 16;
constexpr unsigned kRecycleRest = 256;

}  // namespace

ResultRecycler::ResultRecycler(ResultRecycler&& other) noexcept
    : turn_(other.turn_), in_vain_(other.in_vain_), rest_(other.rest_) {
    for (unsigned i = 0; i < kKept; ++i) kept_[i] = std::exchange(other.kept_[i], Kept{});
}

void ResultRecycler::clear() {
    for (Kept& kept : kept_) {
        // The end of an array may call whoever watches it weakly, and that may call us.
        if (PyObject* array = std::exchange(kept.array, nullptr)) Py_DECREF(array);
    }
}

PyObject* ResultRecycler::take_other(unsigned turn, PyArray_Descr* dtype, int ndim, const npy_intp* dims) {
#ifdef Py_GIL_DISABLED
    constexpr bool kKeeps = false;
#else
    constexpr bool kKeeps = true;
#endif
    if constexpr (!kKeeps) return pooled_array_new(dtype, ndim, dims, nullptr);
    if (rest_ > 0) {
        --rest_;
        return pooled_array_new(dtype, ndim, dims, nullptr);
    }
    for (unsigned i = 1; i < kKept; ++i) {
        const Kept& kept = kept_[(turn + i) % kKept];
        if (kept.array && fits(kept, dtype, ndim, dims)) {
            in_vain_ = 0;
            return Py_NewRef(kept.array);
        }
    }
    PyObject* array = pooled_array_new(dtype, ndim, dims, nullptr);
    if (!array || PyArray_NBYTES(as_array(array)) > kMostBytes ||
        PyDataType_FLAGCHK(dtype, NPY_ITEM_REFCOUNT | NPY_NEEDS_INIT)) {
        return array;
    }
    const int flags = PyArray_FLAGS(as_array(array));
    if (PYOP_UNLIKELY(++in_vain_ > kPatience)) {
        in_vain_ = 0;
        rest_ = kRecycleRest;
        clear();
        return array;
    }
    if (!(flags & NPY_ARRAY_OWNDATA)) return array;
    PyObject* old = std::exchange(kept_[turn].array, Py_NewRef(array));
    kept_[turn].flags = flags;
    Py_XDECREF(old);  // last: it may run anything, this function too
    return array;
}

}  // namespace pyop
