// tests/cpp/results.cpp: pooled arrays and recycled results, for tests/array/test_pool.py.
#include <vector>  // std::vector

#include "array/memory/pool.h"
#include "array/memory/recycle.h"
#include "registry.h"
#include "runtime/ref.h"

namespace {

using pyop::Ref;
using pyop::ResultRecycler;

// The shape or strides in a tuple of int.
bool read_sizes(PyObject* tuple, std::vector<npy_intp>& out) {
    out.resize(static_cast<size_t>(PyTuple_GET_SIZE(tuple)));
    for (size_t i = 0; i < out.size(); ++i) {
        out[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(tuple, static_cast<Py_ssize_t>(i)));
        if (out[i] == -1 && PyErr_Occurred()) return false;
    }
    return true;
}

PyObject* pooled_empty(PyObject*, PyObject* args) {
    PyObject *dtype, *shape, *steps = nullptr;
    if (!PyArg_ParseTuple(args, "O!O!|O!", &PyArrayDescr_Type, &dtype, &PyTuple_Type, &shape, &PyTuple_Type, &steps)) {
        return nullptr;
    }
    std::vector<npy_intp> dims, strides;
    if (!read_sizes(shape, dims) || (steps && !read_sizes(steps, strides))) return nullptr;
    return pyop::pooled_array_new(reinterpret_cast<PyArray_Descr*>(dtype), static_cast<int>(dims.size()), dims.data(),
                                  steps ? strides.data() : nullptr);
}

PyObject* pool_kept(PyObject*, PyObject*) {
    const pyop::PoolStats s = pyop::pool_stats();
    return Py_BuildValue("nnKKK", static_cast<Py_ssize_t>(s.kept), static_cast<Py_ssize_t>(s.blocks), s.hits, s.misses,
                         s.evicted);
}

PyObject* pool_trim(PyObject*, PyObject*) { return PyLong_FromSize_t(pyop::pool_trim()); }

PyObject* pool_limit(PyObject*, PyObject* bytes) {
    const size_t n = PyLong_AsSize_t(bytes);
    return PyErr_Occurred() ? nullptr : PyLong_FromSize_t(pyop::pool_set_limit(n));
}

constexpr const char* kRecycler = "pyop.tests.recycler";

PyObject* recycler_new(PyObject*, PyObject*) {
    return PyCapsule_New(new ResultRecycler, kRecycler, [](PyObject* capsule) {
        delete static_cast<ResultRecycler*>(PyCapsule_GetPointer(capsule, kRecycler));
    });
}

PyObject* recycler_take(PyObject*, PyObject* args) {
    PyObject *capsule, *dtype, *shape;
    if (!PyArg_ParseTuple(args, "OO!O!", &capsule, &PyArrayDescr_Type, &dtype, &PyTuple_Type, &shape)) return nullptr;
    auto* recycler = static_cast<ResultRecycler*>(PyCapsule_GetPointer(capsule, kRecycler));
    std::vector<npy_intp> dims;
    if (!recycler || !read_sizes(shape, dims)) return nullptr;
    return recycler->take(reinterpret_cast<PyArray_Descr*>(dtype), static_cast<int>(dims.size()), dims.data());
}

// bench_take(capsule or None, dtype, shape, n): makes n arrays, holding one while the next is made; from the
// recycler, or for None from the pool. bench_take(False, ...) asks NumPy.
PyObject* bench_take(PyObject*, PyObject* args) {
    PyObject *how, *dtype, *shape;
    Py_ssize_t n;
    if (!PyArg_ParseTuple(args, "OO!O!n", &how, &PyArrayDescr_Type, &dtype, &PyTuple_Type, &shape, &n)) return nullptr;
    std::vector<npy_intp> dims;
    if (!read_sizes(shape, dims)) return nullptr;
    ResultRecycler* recycler = nullptr;
    if (PyCapsule_CheckExact(how)) {
        recycler = static_cast<ResultRecycler*>(PyCapsule_GetPointer(how, kRecycler));
        if (!recycler) return nullptr;
    }
    auto* descr = reinterpret_cast<PyArray_Descr*>(dtype);
    const int ndim = static_cast<int>(dims.size());
    Ref held;
    for (Py_ssize_t i = 0; i < n; ++i) {
        PyObject* next;
        if (recycler) {
            next = recycler->take(descr, ndim, dims.data());
        } else if (how == Py_None) {
            next = pyop::pooled_array_new(descr, ndim, dims.data(), nullptr);
        } else {
            Py_INCREF(descr);
            next = PyArray_NewFromDescr(&PyArray_Type, descr, ndim, dims.data(), nullptr, nullptr, 0, nullptr);
        }
        if (!next) return nullptr;
        held = Ref::steal(next);
    }
    Py_RETURN_NONE;
}

}  // namespace

namespace ctests {

PyMethodDef result_methods[] = {
    {"pooled_empty", pooled_empty, METH_VARARGS, "pooled_empty(dtype, shape, strides=C order)"},
    {"pool_kept", pool_kept, METH_NOARGS, "(bytes kept, blocks kept, hits, misses, evicted)"},
    {"pool_trim", pool_trim, METH_NOARGS, "Empty the pool; how many bytes it kept."},
    {"pool_limit", pool_limit, METH_O, "Keep so many bytes; the old limit."},
    {"recycler_new", recycler_new, METH_NOARGS, "A new recycler."},
    {"recycler_take", recycler_take, METH_VARARGS, "recycler_take(recycler, dtype, shape)"},
    {"bench_take", bench_take, METH_VARARGS,
     "bench_take(recycler, None for the pool or False for NumPy, dtype, shape, n)"},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace ctests
