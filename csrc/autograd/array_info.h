// autograd/array_info.h: share the dtype and shape of an array among everything that has to remember them.
//
// Along a chain of operations that keep dtype and shape, all Tensors and nodes share one ArrayInfo. Counted
// without atomics: attached threads only.
#pragma once

#include <utility>  // std::exchange, std::swap

#include "array/numpy.h"
#include "runtime/ref.h"

namespace pyop {

struct ArrayInfo {
    uint32_t references;
    int32_t ndim;
    PyArray_Descr* descr;  // owned
    npy_intp shape[1];     // ndim of them
};

// New reference, or null with the error set.
ArrayInfo* array_info_new(PyArrayObject* array);
void array_info_free(ArrayInfo* info);

PYOP_INLINE ArrayInfo* share(ArrayInfo* info) {
    ++info->references;
    return info;
}
PYOP_INLINE void unshare(ArrayInfo* info) {
    if (info && --info->references == 0) array_info_free(info);
}

PYOP_INLINE bool has_shape_of(PyArrayObject* array, const ArrayInfo& info) {
    if (PyArray_NDIM(array) != info.ndim) return false;
    const npy_intp* shape = PyArray_DIMS(array);
    for (int i = 0; i < info.ndim; ++i) {
        if (shape[i] != info.shape[i]) return false;
    }
    return true;
}

// Exactly: the same dtype object and shape. A false answer only means that nothing can be shared.
PYOP_INLINE bool is_described_by(PyArrayObject* array, const ArrayInfo& info) {
    return PyArray_DESCR(array) == info.descr && has_shape_of(array, info);
}

// Gradients exist for floating and complex numbers.
PYOP_INLINE bool is_differentiable(PyArray_Descr* descr) {
    return PyTypeNum_ISFLOAT(descr->type_num) || PyTypeNum_ISCOMPLEX(descr->type_num);
}

// "float64 array of shape (2, 3)"
PYOP_COLD Ref array_info_text(const ArrayInfo& info);
PYOP_COLD Ref shape_text(const npy_intp* shape, int ndim);

}  // namespace pyop
