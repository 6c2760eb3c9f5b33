// array/foreign/managed.cpp: own foreign memory, and check what another library says of its tensor.
#include "array/foreign/managed.h"

#include "runtime/errors.h"
#include "runtime/forced_exit.h"
#include "runtime/ref.h"

namespace pyop {

namespace {

PyTypeObject* owner_type = nullptr;

struct OwnerObject {
    PyObject_HEAD
    void* memory;
    void (*release)(void*);
};

void give_back(void* memory, void (*release)(void*)) {
    const SavedError keep;
    survive([&] { release(memory); });
    if (PyErr_Occurred()) PyErr_WriteUnraisable(nullptr);
}

void owner_dealloc(PyObject* self) {
    auto* owner = reinterpret_cast<OwnerObject*>(self);
    PyTypeObject* type = Py_TYPE(self);
    void* memory = owner->memory;
    void (*release)(void*) = owner->release;
    PyObject_Free(self);
    Py_DECREF(type);
    give_back(memory, release);
}

PyType_Slot owner_slots[] = {
    {Py_tp_doc, const_cast<char*>("Keeps memory of another library for the arrays that show it.")},
    {Py_tp_dealloc, reinterpret_cast<void*>(owner_dealloc)},
    {0, nullptr},
};
PyType_Spec owner_spec = {"pyop._core.ForeignMemory", sizeof(OwnerObject), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
                          owner_slots};

template <typename Tensor>
void release_tensor(void* memory) {
    auto* tensor = static_cast<Tensor*>(memory);
    if (tensor->deleter) tensor->deleter(tensor);
}

PYOP_COLD PyObject* bad_layout(const char* why) {
    PyErr_Format(PyExc_BufferError, "the other library describes no array: %s", why);
    return nullptr;
}

// What a tensor says that no array could be made of.
PYOP_COLD PyObject* on_device(DLDevice device) {
    PyErr_Format(PyExc_BufferError, "its memory is on device %s:%d, which the CPU cannot read",
                 device_name(device.device_type), static_cast<int>(device.device_id));
    return nullptr;
}

PyObject* tensor_array_steal(const DLTensor& t, bool writable, PyObject* owner) {
    Ref owned = Ref::steal(owner);
    if (!owned) return nullptr;
    if (PYOP_UNLIKELY(!is_host_memory(t.device.device_type))) return on_device(t.device);
    PyArray_Descr* descr = dlpack_descr_new(t.dtype);
    if (!descr) return nullptr;
    ForeignLayout layout{t.data, t.ndim, t.shape, t.strides, writable};
    if (t.data && __builtin_add_overflow(reinterpret_cast<uintptr_t>(t.data), t.byte_offset,
                                         reinterpret_cast<uintptr_t*>(&layout.data))) {
        Py_DECREF(descr);
        return bad_layout("its byte_offset overflows");
    }
    return foreign_array_steal(layout, descr, owned.release());
}

}  // namespace

const char* wrong_layout(const ForeignLayout& layout, npy_intp itemsize, npy_intp* dims, npy_intp* strides) {
    if (layout.ndim > 0 && !layout.shape) return "its shape is a null pointer";
    npy_intp size = itemsize, extent = itemsize;
    bool empty = false;
    for (int d = 0; d < layout.ndim; ++d) {
        if (layout.shape[d] < 0) return "a size is negative";
        dims[d] = layout.shape[d];
        empty |= dims[d] == 0;
        if (dims[d] > 0 && __builtin_mul_overflow(size, dims[d], &size)) return "its sizes overflow";
    }
    for (int d = layout.ndim - 1; d >= 0; --d) {
        if (layout.strides && !empty) {
            npy_intp reach;
            if (__builtin_mul_overflow(layout.strides[d], itemsize, &strides[d]) ||
                __builtin_mul_overflow(strides[d], dims[d], &reach))
                return "its strides overflow";
        } else {
            strides[d] = extent;
            extent *= dims[d] > 0 ? dims[d] : 1;  // no more than `size`
        }
    }
    if (!empty && !layout.data) return "its data is a null pointer, but its size is not zero";
    return nullptr;
}

PyObject* foreign_owner_new(void* memory, void (*release)(void*)) {
    auto* owner = PyObject_New(OwnerObject, owner_type);
    if (!owner) {
        give_back(memory, release);
        return nullptr;
    }
    owner->memory = memory;
    owner->release = release;
    return reinterpret_cast<PyObject*>(owner);
}

PyObject* foreign_array_steal(const ForeignLayout& layout, PyArray_Descr* descr, PyObject* owner) {
    Ref owned = Ref::steal(owner), dtype = Ref::steal(reinterpret_cast<PyObject*>(descr));
    npy_intp dims[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    if (PYOP_UNLIKELY(layout.ndim < 0 || layout.ndim > NPY_MAXDIMS))
        return bad_layout("its number of dimensions is not from 0 to 64");
    if (const char* why = wrong_layout(layout, PyDataType_ELSIZE(descr), dims, strides)) return bad_layout(why);
    // Given no data NumPy makes memory of its own, and there is none to show.
    PyObject* array = PyArray_NewFromDescr(&PyArray_Type, reinterpret_cast<PyArray_Descr*>(dtype.release()),
                                           layout.ndim, dims, layout.data ? strides : nullptr, layout.data,
                                           layout.writable ? NPY_ARRAY_WRITEABLE : 0, nullptr);
    if (!array || !layout.data) return array;
    reinterpret_cast<PyArrayObject_fields*>(array)->base = owned.release();
    return array;
}

PyObject* tensor_owner_new(DLManagedTensorVersioned* tensor) {
    return foreign_owner_new(tensor, release_tensor<DLManagedTensorVersioned>);
}

PyObject* managed_array_steal(DLManagedTensorVersioned* tensor, MayCopy copy, bool read_only) {
    const DLPackVersion version = tensor->version;
    const uint64_t flags = tensor->flags;
    Ref owner = Ref::steal(tensor_owner_new(tensor));
    if (!owner) return nullptr;
    if (PYOP_UNLIKELY(version.major != DLPACK_MAJOR_VERSION)) {
        PyErr_Format(PyExc_BufferError, "it comes as DLPack %u.%u, and pyop reads DLPack 1",
                     static_cast<unsigned>(version.major), static_cast<unsigned>(version.minor));
        return nullptr;
    }
    if (copy == MayCopy::Never && (flags & DLPACK_FLAG_BITMASK_IS_COPIED)) {
        PyErr_SetString(PyExc_BufferError, "copy=False, but the other library gives a copy");
        return nullptr;
    }
    return tensor_array_steal(tensor->dl_tensor, !read_only && !(flags & DLPACK_FLAG_BITMASK_READ_ONLY),
                              owner.release());
}

PyObject* managed_array_steal(DLManagedTensor* tensor) {
    // These do not say whether they may be written: NumPy makes them read-only too.
    return tensor_array_steal(tensor->dl_tensor, false, foreign_owner_new(tensor, release_tensor<DLManagedTensor>));
}

int foreign_init(PyObject* module) {
    owner_type = reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(module, &owner_spec, nullptr));
    return owner_type ? 0 : -1;
}

}  // namespace pyop
