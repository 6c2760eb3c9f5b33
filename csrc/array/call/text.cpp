// array/call/text.cpp: convert str and bytes to object arrays of UTF-8, item by item where NumPy would cut at a NUL.
#include "array/call/text.h"

#include "runtime/errors.h"
#include "runtime/items.h"

namespace pyop {

namespace {

bool is_text_dtype(PyArray_Descr* d) {
    return d->type_num == NPY_STRING || d->type_num == NPY_UNICODE || d->type_num == NPY_VSTRING;
}

// A list is text if its first leaf is; mixed lists are sorted out item by item later.
bool first_leaf_is_text(PyObject* o) {
    Ref leaf = Ref::borrow(o);
    for (int depth = 0; depth < NPY_MAXDIMS; ++depth) {
        if (PyUnicode_Check(leaf.get()) || PyBytes_Check(leaf.get())) return true;
        if (!PyList_Check(leaf.get()) && !PyTuple_Check(leaf.get())) return false;
        leaf = item_of(leaf.get(), 0);
        if (!leaf) return false;
    }
    return false;
}

bool all_bytes(PyArrayObject* objects) {
    auto* const* items = static_cast<PyObject* const*>(PyArray_DATA(objects));
    for (npy_intp i = 0; i < PyArray_SIZE(objects); ++i)
        if (!items[i] || !PyBytes_CheckExact(items[i])) return false;
    return true;
}

bool ends_in_nul(PyObject* o) {
    if (PyBytes_Check(o)) return PyBytes_GET_SIZE(o) > 0 && PyBytes_AS_STRING(o)[PyBytes_GET_SIZE(o) - 1] == 0;
    return PyUnicode_Check(o) && PyUnicode_GET_LENGTH(o) > 0 &&
           PyUnicode_READ_CHAR(o, PyUnicode_GET_LENGTH(o) - 1) == 0;
}

}  // namespace

bool is_text(PyObject* o) {
    if (PyArray_Check(o)) return is_text_dtype(PyArray_DESCR(as_array(o)));
    if (PyArray_CheckScalar(o)) return PyArray_IsScalar(o, String) || PyArray_IsScalar(o, Unicode);
    return first_leaf_is_text(o);
}

bool is_tensor_dtype(PyArray_Descr* d) {
    return (PyTypeNum_ISNUMBER(d->type_num) && d->type_num != NPY_LONGDOUBLE && d->type_num != NPY_CLONGDOUBLE) ||
           d->type_num == NPY_BOOL || d->type_num == NPY_OBJECT || PyTypeNum_ISUSERDEF(d->type_num);
}

PyObject* keep_nuls_steal(PyObject* array, PyObject* value) {
    if (!array || PyArray_Check(value) || !PyArray_ISSTRING(as_array(array))) return array;
    Ref objects = Ref::steal(PyArray_FromAny(value, PyArray_DescrFromType(NPY_OBJECT), 0, 0, 0, nullptr));
    if (!objects) {
        Py_DECREF(array);
        return nullptr;
    }
    auto** items = static_cast<PyObject**>(PyArray_DATA(as_array(objects.get())));
    for (npy_intp i = 0; i < PyArray_SIZE(as_array(objects.get())); ++i) {
        if (!items[i] || !ends_in_nul(items[i])) continue;
        Py_DECREF(array);
        return objects.release();
    }
    return array;
}

PyArrayObject* utf8_array_new(PyObject* o) {
    // dtype=object keeps every str as it is; going through a U dtype would cut trailing NULs.
    Ref objects = Ref::steal(PyArray_FromAny(o, PyArray_DescrFromType(NPY_OBJECT), 0, 0,
                                             NPY_ARRAY_CARRAY_RO | NPY_ARRAY_FORCECAST, nullptr));
    if (!objects) return nullptr;
    PyArrayObject* source = as_array(objects.get());
    if (all_bytes(source)) {
        const bool unchanged = is_exact_array(o) && PyArray_DESCR(as_array(o))->type_num == NPY_OBJECT;
        return as_array(unchanged ? Py_NewRef(o) : objects.release());
    }
    Ref result = Ref::steal(PyArray_NewLikeArray(source, NPY_CORDER, nullptr, 0));
    if (!result) return nullptr;
    auto** from = static_cast<PyObject**>(PyArray_DATA(source));
    auto** to = static_cast<PyObject**>(PyArray_DATA(as_array(result.get())));
    for (npy_intp i = 0; i < PyArray_SIZE(source); ++i) {
        PyObject* item = from[i];
        PyObject* bytes;
        if (item && PyUnicode_Check(item))
            bytes = PyUnicode_AsUTF8String(item);
        else if (item && PyBytes_CheckExact(item))
            bytes = Py_NewRef(item);
        else if (item && PyBytes_Check(item))
            bytes = PyBytes_FromStringAndSize(PyBytes_AS_STRING(item), PyBytes_GET_SIZE(item));
        else {
            PyErr_Format(PyExc_TypeError, "Unsupported object type %s", item ? type_name(item).c_str() : "NoneType");
            return nullptr;
        }
        if (!bytes) return nullptr;
        Py_XSETREF(to[i], bytes);
    }
    return as_array(result.release());
}

}  // namespace pyop
