// autograd/array_info.cpp: make an ArrayInfo, and word its dtype and shape.
#include "autograd/array_info.h"

#include <algorithm>  // std::copy_n
#include <cstddef>    // offsetof

namespace pyop {

ArrayInfo* array_info_new(PyArrayObject* array) {
    const int ndim = PyArray_NDIM(array);
    const size_t size = offsetof(ArrayInfo, shape) + sizeof(npy_intp) * static_cast<size_t>(ndim > 0 ? ndim : 1);
    auto* info = static_cast<ArrayInfo*>(PyMem_Malloc(size));
    if (!info) {
        PyErr_NoMemory();
        return nullptr;
    }
    info->references = 1;
    info->ndim = ndim;
    info->descr = PyArray_DESCR(array);
    Py_INCREF(reinterpret_cast<PyObject*>(info->descr));
    std::copy_n(PyArray_DIMS(array), ndim, info->shape);
    return info;
}

void array_info_free(ArrayInfo* info) {
    Py_DECREF(reinterpret_cast<PyObject*>(info->descr));
    PyMem_Free(info);
}

Ref shape_text(const npy_intp* shape, int ndim) {
    Ref tuple = Ref::steal(PyTuple_New(ndim));
    if (!tuple) return {};
    for (int i = 0; i < ndim; ++i) {
        PyObject* size = PyLong_FromSsize_t(shape[i]);
        if (!size) return {};
        PyTuple_SET_ITEM(tuple.get(), i, size);
    }
    return Ref::steal(PyObject_Repr(tuple.get()));
}

Ref array_info_text(const ArrayInfo& info) {
    Ref shape = shape_text(info.shape, info.ndim);
    if (!shape) return {};
    return Ref::steal(PyUnicode_FromFormat("%S array of shape %U", info.descr, shape.get()));
}

}  // namespace pyop
