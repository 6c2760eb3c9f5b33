// array/call/lend_tensor.cpp: recycle an array object over foreign memory.
#include "array/call/lend_tensor.h"

#include "array/call/lend.h"
#include "array/foreign/managed.h"
#include "runtime/ref.h"

namespace pyop {

PyObject* lend_tensor_new(PyObject* value, const Exporter& exporter) {
    DLManagedTensorVersioned* tensor = exported_tensor(value, exporter);
    if (PYOP_UNLIKELY(!tensor)) return nullptr;
    const DLTensor& t = tensor->dl_tensor;
    npy_intp dims[kMostSpareRank + 1], strides[kMostSpareRank + 1];
    // What is not as usual is looked at where errors are made.
    const bool usual = t.data && t.ndim >= 0 && t.ndim <= kMostSpareRank && t.byte_offset == 0 && t.dtype.lanes == 1 &&
                       (t.ndim == 0 || (t.shape && t.strides));
    PyArrayObject* spare = usual ? take_spare(t.ndim) : nullptr;
    if (!spare) return managed_array_steal(tensor, MayCopy::IfNeeded, true);
    PyArray_Descr* descr = dlpack_descr_new(t.dtype);
    Ref dtype = Ref::steal(reinterpret_cast<PyObject*>(descr));
    const ForeignLayout layout{t.data, t.ndim, t.shape, t.strides, false};
    if (!descr || descr->type_num >= NPY_USERDEF || wrong_layout(layout, PyDataType_ELSIZE(descr), dims, strides)) {
        Py_DECREF(spare);
        PyErr_Clear();
        return managed_array_steal(tensor, MayCopy::IfNeeded, true);
    }
    PyObject* owner = tensor_owner_new(tensor);
    if (!owner) {
        Py_DECREF(spare);
        return nullptr;
    }
    fill_spare(spare, layout.data, dims, strides, reinterpret_cast<PyArray_Descr*>(dtype.release()), owner);
    return as_object(spare);
}

}  // namespace pyop
