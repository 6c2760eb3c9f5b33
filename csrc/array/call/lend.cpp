// array/call/lend.cpp: read-only views from a stack of recycled array objects, for each number of dimensions.
#include "array/call/lend.h"

#include "runtime/ref.h"

namespace pyop {

namespace {

constexpr int kRanks = 5;   // views of higher rank are rare enough to be made anew
constexpr int kDepth = 16;  // spare views per rank: as many arguments as nested calls usually hold

struct Stack {
    PyArrayObject* items[kDepth];
    int size = 0;
};
Stack spares[kRanks];

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
    if (PYOP_UNLIKELY(ndim >= kRanks || spares[ndim].size == 0)) return new_view(a);
    PyArrayObject* view = spares[ndim].items[--spares[ndim].size];
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

void lend_return_steal(PyArrayObject* view) {
    PyArrayObject_fields* v = fields(view);
    const int ndim = v->nd;
    // A function may have turned the view inside out (flags, __setstate__): then it is no view any more. Nor are
    // dtypes kept that own memory (StringDType) or that a user defined.
    if (PYOP_UNLIKELY(!uniquely_owned(as_object(view)) || ndim >= kRanks || spares[ndim].size == kDepth ||
                      v->weakreflist || v->_buffer_info || (v->flags & kNotInherited) || !v->base ||
                      v->descr->type_num >= NPY_USERDEF)) {
        Py_DECREF(view);
        return;
    }
    PyObject* base = v->base;
    v->base = nullptr;
    v->data = nullptr;
    spares[ndim].items[spares[ndim].size++] = view;
    Py_DECREF(base);  // last: it may run anything
}

PyArrayObject* freeze_steal(PyArrayObject* a) {
    if (!(PyArray_FLAGS(a) & NPY_ARRAY_WRITEABLE)) return a;
    PyArrayObject* view = new_view(a);
    Py_DECREF(a);
    return view;
}

}  // namespace pyop
