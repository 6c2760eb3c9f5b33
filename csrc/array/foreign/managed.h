// array/foreign/managed.h: make an ndarray over memory that another library keeps.
//
// Lifetime. The array's base is an object that owns the other library's structure and gives it back when the last view
// of the memory dies. An object of Python dies on an attached thread, whichever that is, so the other library's deleter
// runs with the GIL held, with no error pending, and may take the GIL itself or let it go.
#pragma once

#include "include/pyop/dlpack.h"

#include "array/numpy.h"

namespace pyop {

// What is known of memory before there is an array over it.
struct ForeignLayout {
    void* data = nullptr;
    int ndim = 0;
    const int64_t* shape = nullptr;
    const int64_t* strides = nullptr;  // in elements; null: C order
    bool writable = false;
};

// The owner of `memory`, which `release` gives back. New reference; null with the error set, and `memory` given back.
PyObject* foreign_owner_new(void* memory, void (*release)(void*));

// An ndarray over memory that `owner` keeps. Steals `descr` and `owner`, also in an error; a BufferError if the layout
// cannot be that of an array.
PyObject* foreign_array_steal(const ForeignLayout& layout, PyArray_Descr* descr, PyObject* owner);

// Null, or in words why the layout cannot be that of an array; else sizes, and strides in bytes.
const char* wrong_layout(const ForeignLayout& layout, npy_intp itemsize, npy_intp* dims, npy_intp* strides);

// What from_dlpack may ask for.
enum class MayCopy : int8_t { IfNeeded, Always, Never };

// An ndarray over a tensor of DLPack. Steals the tensor, also in an error. MayCopy::Never: a BufferError if its
// producer has made a copy.
PyObject* managed_array_steal(DLManagedTensorVersioned* tensor, MayCopy copy = MayCopy::IfNeeded,
                              bool read_only = false);
PyObject* managed_array_steal(DLManagedTensor* tensor);

// The owner of a tensor. Steals it, also in an error.
PyObject* tensor_owner_new(DLManagedTensorVersioned* tensor);

// The dtype of a tensor. New reference; null with a BufferError that says which it is.
PyArray_Descr* dlpack_descr_new(DLDataType type);

// Whether memory of this kind of device can be read by the CPU.
bool is_host_memory(int64_t device_type);

// "CUDA": a kind of device in words.
const char* device_name(int64_t device_type);

// Makes the type of owners.
int foreign_init(PyObject* module);

}  // namespace pyop
