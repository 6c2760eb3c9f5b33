// array/call/gufunc_operands.h: present arrays one core at a time, as a loop over their leading dimensions moves
// along. Used by gufunc_call.cpp alone.
#pragma once

#include <algorithm>  // std::equal, std::fill_n, std::copy_n
#include <vector>

#include "array/contract/match.h"
#include "array/memory/copied.h"
#include "runtime/ref.h"

namespace pyop {

// A place in an array that moves along the loop, and what is there: the array itself may be given another shape or
// dtype by the function that is called.
struct CoreCursor {
    char* data = nullptr;
    npy_intp strides[NPY_MAXDIMS];  // along the loop, 0 where broadcast
    Ref dtype;
    std::vector<npy_intp> core_dims, core_strides;

    int core_ndim() const { return static_cast<int>(core_dims.size()); }
    PyArray_Descr* descr() const { return reinterpret_cast<PyArray_Descr*>(dtype.get()); }

    void start(PyArrayObject* a, int core_ndim, const LoopShape& loop) {
        data = PyArray_BYTES(a);
        dtype = Ref::borrow(reinterpret_cast<PyObject*>(PyArray_DESCR(a)));
        const int outer = PyArray_NDIM(a) - core_ndim;
        core_dims.assign(PyArray_DIMS(a) + outer, PyArray_DIMS(a) + PyArray_NDIM(a));
        core_strides.assign(PyArray_STRIDES(a) + outer, PyArray_STRIDES(a) + PyArray_NDIM(a));
        std::fill_n(strides, loop.ndim, 0);
        for (int d = 0; d < outer; ++d)
            if (PyArray_DIM(a, d) != 1) strides[loop.ndim - outer + d] = PyArray_STRIDE(a, d);
    }

    // A view of what is here, which keeps `a` alive. New reference.
    PyObject* view_new(PyArrayObject* a, int flags) const {
        Py_INCREF(descr());
        Ref view = Ref::steal(PyArray_NewFromDescr(&PyArray_Type, descr(), core_ndim(), core_dims.data(),
                                                   core_strides.data(), data, flags, nullptr));
        if (view && PyArray_SetBaseObject(as_array(view.get()), Py_NewRef(as_object(a))) < 0) return nullptr;
        return view.release();
    }
};

// One argument.
struct CoreOperand {
    PyArrayObject* array = nullptr;  // borrowed
    bool mutated = false;            // named in mutates=: the function gets a copy of each core
    CoreCursor at;
    Ref view;
    PyObject* base = nullptr;        // of the view, borrowed from it

    // What the function gets at the current index: the last view moved on, unless somebody kept or changed it.
    PyObject* current() {
        if (!mutated && view && reusable()) {
            reinterpret_cast<PyArrayObject_fields*>(view.get())->data = at.data;
            return view.get();
        }
        view = Ref::steal(at.view_new(array, PyArray_FLAGS(array) & NPY_ARRAY_ALIGNED));
        if (view && mutated) view = Ref::steal(counted(PyArray_NewCopy(as_array(view.get()), NPY_KEEPORDER)));
        if (view) base = PyArray_BASE(as_array(view.get()));
        return view.get();
    }

  private:
    bool reusable() const {
        const auto* v = reinterpret_cast<PyArrayObject_fields*>(view.get());
        constexpr int changed = NPY_ARRAY_WRITEABLE | NPY_ARRAY_OWNDATA;
        return uniquely_owned(view.get()) && !v->weakreflist && !v->_buffer_info && !(v->flags & changed) &&
               v->base == base && v->descr == at.descr() && v->nd == at.core_ndim() &&
               std::equal(at.core_dims.begin(), at.core_dims.end(), v->dimensions) &&
               std::equal(at.core_strides.begin(), at.core_strides.end(), v->strides);
    }
};

// One output: given by the caller, or allocated when its core shape and dtype are known.
struct Result {
    Ref array;
    bool given = false;
    std::vector<npy_intp> whole;  // its shape as it was made
    CoreCursor at;

    void use(PyObject* out, int core, const LoopShape& loop) {
        array = Ref::borrow(out);
        whole.assign(PyArray_DIMS(as_array(out)), PyArray_DIMS(as_array(out)) + PyArray_NDIM(as_array(out)));
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
        return at.view_new(a, PyArray_FLAGS(a) & (NPY_ARRAY_ALIGNED | NPY_ARRAY_WRITEABLE));
    }

    bool fits(PyArrayObject* value) const {
        return PyArray_EquivTypes(at.descr(), PyArray_DESCR(value)) &&
               std::equal(at.core_dims.begin(), at.core_dims.end(), PyArray_DIMS(value),
                          PyArray_DIMS(value) + PyArray_NDIM(value));
    }

    // False if the function has changed what it only had parts of.
    bool as_made() const {
        PyArrayObject* a = as_array(array.get());
        return PyArray_DESCR(a) == at.descr() &&
               std::equal(whole.begin(), whole.end(), PyArray_DIMS(a), PyArray_DIMS(a) + PyArray_NDIM(a));
    }
};

}  // namespace pyop
