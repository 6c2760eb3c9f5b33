// array/memory/pooled_array.cpp: make ndarrays around blocks of the pool.
#include <algorithm>  // std::min
#include <cstring>    // std::memcpy

#include "array/memory/pool.h"

namespace pyop {

// CPython 3.11 forgets to say that it is a C function.
extern "C" int PyTraceMalloc_Track(unsigned domain, uintptr_t ptr, size_t size);

namespace {

// Below, NumPy has a cache of its own that is as fast.
constexpr npy_intp kPooledFrom = 1024;

// tracemalloc's number for the memory of arrays, given out by NumPy.
constexpr unsigned kTraceDomain = 389047;

void* handler_malloc(void*, size_t bytes) { return pool_take(bytes); }

void* handler_calloc(void*, size_t n, size_t each) {
    size_t bytes;
    if (__builtin_mul_overflow(n, each, &bytes)) return nullptr;
    void* data = pool_take(bytes);
    if (data) std::memset(data, 0, bytes);
    return data;
}

void* handler_realloc(void*, void* data, size_t bytes) {
    if (!data) return pool_take(bytes);
    const size_t room = pool_room(data);
    if (bytes <= room && bytes >= room / 2) return data;
    void* other = pool_take(bytes);
    if (!other) return nullptr;
    std::memcpy(other, data, std::min(bytes, room));
    pool_give(data);
    return other;
}

// Not by `bytes`: it is what the array seems to have at its end.
void handler_free(void*, void* data, size_t) { pool_give(data); }

constinit PyDataMem_Handler handler = {
    "pyop", 1, {nullptr, handler_malloc, handler_calloc, handler_realloc, handler_free}};
PyObject* handler_capsule = nullptr;  // immortal: arrays hold it when the module is gone

}  // namespace

int pool_init() {
    if (!handler_capsule) handler_capsule = PyCapsule_New(&handler, "mem_handler", nullptr);
    return handler_capsule ? 0 : -1;
}

PyObject* pooled_array_new(PyArray_Descr* dtype, int ndim, const npy_intp* dims, const npy_intp* strides) {
    npy_intp bytes = PyDataType_ELSIZE(dtype);
    for (int d = 0; d < ndim; ++d) {
        if (PYOP_UNLIKELY(dims[d] < 0 || __builtin_mul_overflow(bytes, dims[d], &bytes))) bytes = 0;
    }
    Py_INCREF(dtype);  // stolen below
    // PyArray_NewFromDescr takes its shape as npy_intp*, and only reads it.
    auto* shape = const_cast<npy_intp*>(dims);
    auto* steps = const_cast<npy_intp*>(strides);
    // NumPy makes what has no bytes, and finds the words for shapes that cannot be.
    if (bytes < kPooledFrom || PyDataType_FLAGCHK(dtype, NPY_ITEM_REFCOUNT | NPY_NEEDS_INIT) ||
        PyDataType_HASSUBARRAY(dtype)) {
        return PyArray_NewFromDescr(&PyArray_Type, dtype, ndim, shape, steps, nullptr, 0, nullptr);
    }
    void* data = pool_take(static_cast<size_t>(bytes));
    if (PYOP_UNLIKELY(!data)) {
        Py_DECREF(dtype);
        return PyErr_NoMemory();
    }
    PyObject* array =
        PyArray_NewFromDescr(&PyArray_Type, dtype, ndim, shape, steps, data, NPY_ARRAY_WRITEABLE, nullptr);
    if (PYOP_UNLIKELY(!array)) {
        pool_give(data);
        return nullptr;
    }
    auto* fields = reinterpret_cast<PyArrayObject_fields*>(array);
    fields->flags |= NPY_ARRAY_OWNDATA;
    fields->mem_handler = Py_NewRef(handler_capsule);
    // -2: nothing is traced. -1: no memory for the trace, which then lacks this array.
    (void)PyTraceMalloc_Track(kTraceDomain, reinterpret_cast<uintptr_t>(data), static_cast<size_t>(bytes));
    return array;
}

}  // namespace pyop
