// plan/steps/view_arguments.cpp: read integers, shapes and axes from static arguments.
#include "plan/steps/view_arguments.h"

#include "runtime/items.h"

#include <algorithm>

namespace pyop {

bool read_int(PyObject* o, npy_intp& value) {
    if (!PyLong_CheckExact(o) && !PyArray_IsScalar(o, Integer)) return false;
    value = PyNumber_AsSsize_t(o, PyExc_OverflowError);
    if (value != -1 || !PyErr_Occurred()) return true;
    PyErr_Clear();
    return false;
}

bool read_size(PyObject* o, const TreeCallObject::Layout* sizes, ViewSize& size) {
    for (size_t k = 0; sizes && k < sizes->sizes.size(); ++k) {
        if (sizes->sizes[k].dim.get() != o) continue;
        size.expr = static_cast<int32_t>(k);
        return sizes->sizes[k].is_poly;
    }
    return read_int(o, size.value);
}

bool read_shape(PyObject* o, const TreeCallObject::Layout* sizes, std::vector<ViewSize>& shape) {
    if (!PyTuple_CheckExact(o) && !PyList_CheckExact(o)) return read_size(o, sizes, shape.emplace_back());
    const Py_ssize_t n = size_of_sequence(o);
    if (n > NPY_MAXDIMS) return false;
    for (Py_ssize_t i = 0; i < n; ++i)
        if (const Ref item = item_of(o, i); !item || !read_size(item.get(), sizes, shape.emplace_back())) return false;
    return true;
}

bool read_axis(PyObject* o, int ndim, int& axis) {
    npy_intp value;
    if (!read_int(o, value) || value < -ndim || value >= ndim) return false;
    axis = static_cast<int>(value < 0 ? value + ndim : value);
    return true;
}

bool read_axes(PyObject* o, int ndim, std::vector<int>& axes) {
    if (!PyTuple_CheckExact(o) && !PyList_CheckExact(o)) return read_axis(o, ndim, axes.emplace_back());
    for (Py_ssize_t i = 0; i < size_of_sequence(o); ++i) {
        int axis;
        if (const Ref item = item_of(o, i); !item || !read_axis(item.get(), ndim, axis)) return false;
        if (std::find(axes.begin(), axes.end(), axis) != axes.end()) return false;
        axes.push_back(axis);
    }
    return true;
}

}  // namespace pyop
