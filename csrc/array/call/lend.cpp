// array/call/lend.cpp: make read-only views from a stack of recycled array objects, for each number of dimensions.
#include "array/call/lend.h"

#include <new>  // std::nothrow

#include "runtime/shared_ref.h"

namespace pyop {

namespace {

constexpr int kRanks = kMostSpareRank + 1;  // views of higher rank are rare enough to be made anew
constexpr int kDepth = 16;  // spare views per rank: as many arguments as nested calls usually hold

struct Stack {
    PyArrayObject* items[kDepth];
    int size = 0;
};
#ifdef Py_GIL_DISABLED
// Of this thread. The capsule frees them: it may be dropped, with the thread, where Python objects may not be touched.
struct Spares {
    Stack* stacks = nullptr;
    SharedRef owner;
};
thread_local Spares spares_here;

void free_stacks(PyObject* capsule) {
    auto* stacks = static_cast<Stack*>(PyCapsule_GetPointer(capsule, nullptr));
    for (int rank = 0; rank < kRanks; ++rank)
        while (stacks[rank].size > 0) Py_DECREF(stacks[rank].items[--stacks[rank].size]);
    delete[] stacks;
}

PYOP_COLD Stack* new_stacks() {
    auto* stacks = new (std::nothrow) Stack[kRanks];
    PyObject* capsule = stacks ? PyCapsule_New(stacks, nullptr, free_stacks) : nullptr;
    if (!capsule) {
        PyErr_Clear();
        delete[] stacks;
        return nullptr;
    }
    spares_here.owner = SharedRef::steal(capsule);
    if (spares_here.owner)
        spares_here.stacks = stacks;
    else
        PyErr_Clear();  // the capsule is gone, and they with it
    return spares_here.stacks;
}

// Null without memory for it.
PYOP_INLINE Stack* stack_of(int ndim) {
    Stack* stacks = spares_here.stacks ? spares_here.stacks : new_stacks();
    return stacks ? stacks + ndim : nullptr;
}
#else
Stack spares[kRanks];

PYOP_INLINE Stack* stack_of(int ndim) { return spares + ndim; }
#endif

PYOP_INLINE PyArrayObject_fields* fields(PyArrayObject* a) { return reinterpret_cast<PyArrayObject_fields*>(a); }

constexpr int kNotInherited = NPY_ARRAY_WRITEABLE | NPY_ARRAY_OWNDATA | NPY_ARRAY_WRITEBACKIFCOPY;

PYOP_COLD PyArrayObject* new_view(PyArrayObject* a) {
    PyArray_Descr* descr = PyArray_DESCR(a);
    Py_INCREF(descr);  // stolen below
    PyObject* view = PyArray_NewFromDescr(&PyArray_Type, descr, PyArray_NDIM(a), PyArray_DIMS(a), PyArray_STRIDES(a),
                                          PyArray_DATA(a), PyArray_FLAGS(a) & ~kNotInherited, nullptr);
    if (!view) return nullptr;
    // Not PyArray_SetBaseObject: it would skip past `a` to its own base, and `a` must stay alive and
    // recognisable as the owner.
    fields(as_array(view))->base = Py_NewRef(as_object(a));
    return as_array(view);
}

}  // namespace

PyArrayObject* lend_view_new(PyArrayObject* a) {
    const int ndim = PyArray_NDIM(a);
    if (PYOP_UNLIKELY(ndim >= kRanks)) return new_view(a);
    Stack* const stack = stack_of(ndim);
    if (PYOP_UNLIKELY(!stack || stack->size == 0)) return new_view(a);
    PyArrayObject* view = stack->items[--stack->size];
    PyArrayObject_fields *v = fields(view), *src = fields(a);
    v->data = src->data;
    for (int d = 0; d < ndim; ++d) {
        v->dimensions[d] = src->dimensions[d];
        v->strides[d] = src->strides[d];
    }
    v->base = Py_NewRef(as_object(a));
    if (v->descr != src->descr) {
        PyArray_Descr* old = v->descr;
        Py_INCREF(src->descr);
        v->descr = src->descr;
        Py_DECREF(old);
    }
    v->flags = src->flags & ~kNotInherited;
    return view;
}

PyArrayObject* take_spare(int ndim) {
    Stack* const stack = stack_of(ndim);
    return stack && stack->size > 0 ? stack->items[--stack->size] : nullptr;
}

void fill_spare(PyArrayObject* spare, void* data, const npy_intp* dims, const npy_intp* strides, PyArray_Descr* descr,
                PyObject* base) {
    PyArrayObject_fields* v = fields(spare);
    v->data = static_cast<char*>(data);
    for (int d = 0; d < v->nd; ++d) {
        v->dimensions[d] = dims[d];
        v->strides[d] = strides[d];
    }
    v->base = base;
    PyArray_Descr* old = std::exchange(v->descr, descr);
    v->flags = 0;
    PyArray_UpdateFlags(spare, NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS | NPY_ARRAY_ALIGNED);
    Py_DECREF(old);
}

void lend_return_steal(PyArrayObject* view) {
    PyArrayObject_fields* v = fields(view);
    const int ndim = v->nd;
    // A function may have turned the view inside out (flags, __setstate__): then it is no view any more. Nor are
    // dtypes kept that own memory (StringDType) or that a user defined.
    Stack* const stack = PYOP_LIKELY(ndim < kRanks) ? stack_of(ndim) : nullptr;
    if (PYOP_UNLIKELY(!stack || !uniquely_owned(as_object(view)) || stack->size == kDepth || v->weakreflist ||
                      v->_buffer_info || (v->flags & kNotInherited) || !v->base || v->descr->type_num >= NPY_USERDEF)) {
        Py_DECREF(view);
        return;
    }
    PyObject* base = v->base;
    v->base = nullptr;
    v->data = nullptr;
    stack->items[stack->size++] = view;
    Py_DECREF(base);  // last: it may run anything
}

PyArrayObject* freeze_steal(PyArrayObject* a) {
    if (!(PyArray_FLAGS(a) & NPY_ARRAY_WRITEABLE)) return a;
    PyArrayObject* view = new_view(a);
    Py_DECREF(a);
    return view;
}

}  // namespace pyop
