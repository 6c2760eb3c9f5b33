// array/gufunc_operands.h: arrays seen one core at a time, as a loop over their leading dimensions moves along.
// Used by gufunc_call.cpp alone.
#pragma once

#include <algorithm>  // std::equal, std::fill_n, std::copy_n

#include "array/copied.h"
#include "array/match.h"
#include "runtime/ref.h"

namespace pyop {

// A place in an array that moves along the loop.
struct Cursor {
    char* data = nullptr;
    npy_intp strides[NPY_MAXDIMS];  // along the loop, 0 where broadcast

    void start(PyArrayObject* a, int core_ndim, const LoopShape& loop) {
        data = PyArray_BYTES(a);
        const int outer = PyArray_NDIM(a) - core_ndim;
        std::fill_n(strides, loop.ndim, 0);
        for (int d = 0; d < outer; ++d)
            if (PyArray_DIM(a, d) != 1) strides[loop.ndim - outer + d] = PyArray_STRIDE(a, d);
    }
};

// A view of the last `core_ndim` dimensions of `a`, which keeps `a` alive. New reference.
inline PyObject* core_view_new(PyArrayObject* a, int core_ndim, char* data, int flags) {
    const int outer = PyArray_NDIM(a) - core_ndim;
    PyArray_Descr* descr = PyArray_DESCR(a);
    Py_INCREF(descr);
    Ref view = Ref::steal(PyArray_NewFromDescr(&PyArray_Type, descr, core_ndim, PyArray_DIMS(a) + outer,
                                               PyArray_STRIDES(a) + outer, data, flags, nullptr));
    if (view && PyArray_SetBaseObject(as_array(view.get()), Py_NewRef(as_object(a))) < 0) return nullptr;
    return view.release();
}

// One argument.
struct Operand {
    PyArrayObject* array = nullptr;  // borrowed
    bool mutated = false;            // named in mutates=: the function gets a copy of each core
    int core_ndim = 0;
    Cursor at;
    Ref view;
    PyObject* base = nullptr;        // of the view, borrowed from it

    // What the function gets at the current index: the last view moved on, unless somebody kept or changed it.
    PyObject* current() {
        if (!mutated && view && reusable()) {
            reinterpret_cast<PyArrayObject_fields*>(view.get())->data = at.data;
            return view.get();
        }
        view = Ref::steal(core_view_new(array, core_ndim, at.data, PyArray_FLAGS(array) & NPY_ARRAY_ALIGNED));
        if (view && mutated) view = Ref::steal(counted(PyArray_NewCopy(as_array(view.get()), NPY_KEEPORDER)));
        if (view) base = PyArray_BASE(as_array(view.get()));
        return view.get();
    }

  private:
    bool reusable() const {
        const auto* v = reinterpret_cast<PyArrayObject_fields*>(view.get());
        const npy_intp* dims = PyArray_DIMS(array) + PyArray_NDIM(array) - core_ndim;
        const npy_intp* strides = PyArray_STRIDES(array) + PyArray_NDIM(array) - core_ndim;
        constexpr int changed = NPY_ARRAY_WRITEABLE | NPY_ARRAY_OWNDATA;
        return uniquely_owned(view.get()) && !v->weakreflist && !v->_buffer_info && !(v->flags & changed) &&
               v->base == base && v->descr == PyArray_DESCR(array) && v->nd == core_ndim &&
               std::equal(dims, dims + core_ndim, v->dimensions) &&
               std::equal(strides, strides + core_ndim, v->strides);
    }
};

// One output: given by the caller, or allocated when its core shape and dtype are known.
struct Result {
    Ref array;
    bool given = false;
    int core_ndim = 0;
    Cursor at;

    void use(PyObject* out, int core, const LoopShape& loop) {
        array = Ref::borrow(out);
        core_ndim = core;
        at.start(as_array(out), core, loop);
    }

    int allocate(const LoopShape& loop, int ndim, const npy_intp* dims, PyArray_Descr* descr) {
        npy_intp shape[NPY_MAXDIMS];
        if (loop.ndim + ndim > NPY_MAXDIMS) {
            PyErr_Format(PyExc_ValueError, "the result would have %d dimensions, NumPy allows %d", loop.ndim + ndim,
                         NPY_MAXDIMS);
            return -1;
        }
        std::copy_n(loop.dims, loop.ndim, shape);
        std::copy_n(dims, ndim, shape + loop.ndim);
        Py_INCREF(descr);
        Ref made = Ref::steal(
            PyArray_NewFromDescr(&PyArray_Type, descr, loop.ndim + ndim, shape, nullptr, nullptr, 0, nullptr));
        if (!made) return -1;
        use(made.get(), ndim, loop);
        return 0;
    }

    // Where this call's result goes. New reference.
    PyObject* place_new() const {
        PyArrayObject* a = as_array(array.get());
        return core_view_new(a, core_ndim, at.data, PyArray_FLAGS(a) & (NPY_ARRAY_ALIGNED | NPY_ARRAY_WRITEABLE));
    }

    bool fits(PyArrayObject* value) const {
        PyArrayObject* a = as_array(array.get());
        return PyArray_EquivTypes(PyArray_DESCR(a), PyArray_DESCR(value)) && PyArray_NDIM(value) == core_ndim &&
               std::equal(PyArray_DIMS(value), PyArray_DIMS(value) + core_ndim,
                          PyArray_DIMS(a) + PyArray_NDIM(a) - core_ndim);
    }
};

}  // namespace pyop
