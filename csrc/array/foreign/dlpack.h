// array/foreign/dlpack.h: read objects that hand out their memory by DLPack.
#pragma once

#include "include/pyop/dlpack.h"

#include "array/foreign/managed.h"
#include "array/numpy.h"

namespace pyop {

// A type whose objects are exported by C functions (`__dlpack_c_exchange_api__`, DLPack 1.2).
struct Exporter {
    PyTypeObject* type;  // owned, so that no other type is ever at its address
    const DLPackExchangeAPI* api;
    PyGetSetDef* requires_grad;  // of the type (or null): the C functions know nothing of gradients,
    PyObject* is_neg;       // and this method (or null): the memory of some tensors has the sign turned round,
    PyObject* is_conj;      // and of some the conjugate
};

// What the type of `value` exports by, where that was found already; else null, with no error set.
const Exporter* exporter_of(PyObject* value);

// The same, looked up if it was not found yet. Few types have it.
const Exporter* exporter_found(PyObject* value);

// The tensor of an object that has an exporter, in memory of the CPU, and of elements that are what they are in memory.
// To be given back; null with the error set.
DLManagedTensorVersioned* exported_tensor(PyObject* value, const Exporter& exporter);

// An ndarray over that. New reference; null with the error set.
PyObject* exported_array_new(PyObject* value, const Exporter& exporter, bool read_only = false);

// Whether the type has __dlpack__.
bool offers_dlpack(PyObject* value);

// An ndarray over the memory of an object that has __dlpack__. `to_cpu`: also of one on another device, which its
// library copies then. New reference; null with the error set, a BufferError if the library will not.
PyObject* dlpack_array_new(PyObject* value, MayCopy copy = MayCopy::IfNeeded, bool to_cpu = false);

// 0 if the memory of `value`, which has __dlpack__, is the CPU's, or nothing is said about that; -1 with a BufferError
// that says what to do.
int check_on_cpu(PyObject* value);

// pyop.from_dlpack; python/pyop/interop/dlpack.py says what it does.
PyObject* from_dlpack_new(PyObject* value, MayCopy copy, bool to_cpu);

}  // namespace pyop
