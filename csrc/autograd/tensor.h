// autograd/tensor.h: define Tensor, an ndarray with gradient bookkeeping.
//
// Who owns whom: a Tensor owns its array, its gradient and the node that made it (`grad_fn`). A leaf that requires a
// gradient is reached from nodes through an accumulating node, which owns the leaf; the leaf points back at that node
// without owning it, and the node clears the pointer when it dies.
//
// Versions: every change in place that pyop is told of (`mark_dirty`, `+=` on a Tensor) adds one to the version of the
// memory. Tensors over the same memory (views, detach()) share a VersionCounter, which is made when the second one
// appears; a Tensor alone keeps the number itself.
//
// While something is recorded nothing is written. `y += b` makes the handle y stand for the new array instead, with its
// history (tensor_writes.cpp): every name and container that holds y sees the change, and nodes that saved the old
// value keep it. That is right only where nobody else sees the memory; elsewhere it is refused.
//
// The collector sees a Tensor from the moment it refers to anything that could lead back to it; an array cannot.
#pragma once

#include "autograd/array_info.h"
#include "autograd/forward.h"
#include "autograd/state.h"
#include "runtime/python.h"

namespace pyop {

struct GradNode;
struct SavedItem;

struct VersionCounter {
    uint32_t references;  // Tensors, and arrays that nodes saved
    uint32_t version;
    uint32_t tensors;  // of these, Tensors
    uint32_t arguments;  // of these, arguments of functions that a transformation is running
    bool has_history;  // shared by a Tensor that was computed: numbers written here are not those of its history
    bool is_exposed;  // somebody else may have an array over the memory, and write into it
    uint64_t print;  // of all the memory when it was exposed, if a node may have saved it before; else 0
};

// What few Tensors have.
struct TensorExtra {
    PyObject* hooks = nullptr;  // dict id -> callable: on the gradient of a leaf, before it is accumulated
    PyObject* post_hooks = nullptr;  // dict id -> callable(tensor): after .grad of a leaf changed
    PyObject* tangent = nullptr;  // forward mode, and the run that it is of
    ForwardRun* run = nullptr;
    uint64_t print = 0;  // of the numbers of an argument that others can write into, when its function began
};

struct TensorObject {
    PyObject_HEAD
    PyArrayObject* data;  // never null; an exact ndarray
    GradNode* grad_fn;  // owned; null for a leaf
    GradNode* sink;  // borrowed; a leaf's accumulating node while there is one
    PyObject* grad;  // owned Tensor, or null
    ArrayInfo* info;  // owned, made on demand
    VersionCounter* counter;  // owned share, or null: `version` counts
    TensorExtra* extra;  // owned, made on demand
    SavedItem* saves;  // borrowed; what nodes saved of this Tensor as an input, a linked list
    PyObject* weakrefs;
    uint32_t version;
    uint32_t output;  // which output of grad_fn this is
    uint32_t view_version;  // version of the memory when this view was taken, if is_view
    bool requires_grad;
    bool retains_grad;
    bool is_view;  // of the memory of another Tensor, with a history of its own
    bool is_scalar;  // NumPy would have a scalar here, and no array of no dimension
    bool is_argument;  // of a function that a transformation is running
    bool is_opened;  // made by a transformation for an argument: nobody else asks for derivatives by it
    bool tracked;  // known to the collector
};

extern PyTypeObject* tensor_type;
int tensor_init(PyObject* module);

PYOP_INLINE bool is_tensor(PyObject* o) { return Py_IS_TYPE(o, tensor_type); }
PYOP_INLINE TensorObject* as_tensor(PyObject* o) { return reinterpret_cast<TensorObject*>(o); }
PYOP_INLINE PyObject* as_object(TensorObject* t) { return reinterpret_cast<PyObject*>(t); }

// A Tensor without history over `array` (stolen; must be an exact ndarray). New reference.
TensorObject* tensor_new_steal(PyArrayObject* array);

// Without history over the memory of `t`, sharing its version.
TensorObject* tensor_alias_new(TensorObject* t);

// Whether nothing but Tensors, and what nodes saved of them, refers to the array of `t` and those it shows. `more`:
// references that are known of besides.
bool is_unshared(const TensorObject* t, Py_ssize_t more = 0);
// Whether, beyond that, nobody was given an array over its memory.
PYOP_INLINE bool is_private(const TensorObject* t, Py_ssize_t more = 0) {
    return !(t->counter && (t->counter->is_exposed || t->counter->arguments)) && is_unshared(t, more);
}
// The array of `t` is about to be given away: what nodes saved of it is remembered by a print. -1 with the error set.
int tensor_expose(TensorObject* t);
void expose(VersionCounter* counter, PyArrayObject* array);
// The array that owns the memory, as far as arrays go.
PyArrayObject* owner_of(PyArrayObject* array);
// -1 with the error set if the numbers of an argument are not what they were when its function began.
int check_argument(const TensorObject* t);

// Makes `t` output `output` of `node`.
void tensor_set_history(TensorObject* t, GradNode* node, uint32_t output);
void tensor_track(TensorObject* t);

// The counter of the memory of `t`, made if there is none. Borrowed; null with the error set.
VersionCounter* tensor_counter(TensorObject* t);
// `t` shares the version of `base` from now on. -1 with the error set.
int tensor_share_version(TensorObject* t, TensorObject* base);
PYOP_INLINE uint32_t tensor_version(const TensorObject* t) { return t->counter ? t->counter->version : t->version; }
PYOP_INLINE void tensor_bump(TensorObject* t) { ++(t->counter ? t->counter->version : t->version); }
PYOP_INLINE void release_counter(VersionCounter* c) {
    if (c && --c->references == 0) PyMem_Free(c);
}
// `t` has the counter from now on.
PYOP_INLINE void take_counter(TensorObject* t, VersionCounter* c) {
    ++c->references;
    ++c->tensors;
    t->counter = c;
}
PYOP_INLINE void drop_counter(TensorObject* t) {
    VersionCounter* c = t->counter;
    if (!c) return;
    --c->tensors;
    if (t->is_argument) --c->arguments;
    t->counter = nullptr;
    release_counter(c);
}
// Marks an argument of a function that a transformation runs, or unmarks it. -1 with the error set.
int tensor_set_argument(TensorObject* t, bool on);

// Borrowed, null with the error set.
PYOP_INLINE ArrayInfo* tensor_info(TensorObject* t) {
    if (PYOP_UNLIKELY(!t->info)) t->info = array_info_new(t->data);
    return t->info;
}

// Made if there is none; null with the error set.
TensorExtra* tensor_extra(TensorObject* t);
// The tangent that moves along with it here, or null.
PYOP_INLINE PyObject* tensor_tangent(const TensorObject* t) {
    return PYOP_UNLIKELY(t->extra != nullptr) && is_moving(t->extra->run) ? t->extra->tangent : nullptr;
}
PYOP_INLINE bool is_leaf(const TensorObject* t) { return !t->grad_fn; }

// Whether what is done with it is recorded, or moved along in forward mode: its numbers must not leave the record.
PYOP_INLINE bool is_watched(const TensorObject* t) { return (t->requires_grad && is_recording()) || tensor_tangent(t); }
PYOP_INLINE bool is_watched(PyObject* o) { return is_tensor(o) && is_watched(as_tensor(o)); }

// 0, or -1 with the error set when the base of a view was changed in place after the view was taken: its history is
// then not that of its values.
PYOP_COLD int stale_view_error(TensorObject* t);
PYOP_INLINE int check_view(TensorObject* t) {
    if (PYOP_UNLIKELY(t->is_view) && t->grad_fn && tensor_version(t) != t->view_version) return stale_view_error(t);
    return 0;
}

// What a Tensor or array-like is as an exact ndarray: its own array, or a conversion. New reference.
Ref to_array(PyObject* o);

}  // namespace pyop
