// plan/steps/store_parts.cpp: values as elements, copies to write into, views of what is written.
#include "plan/steps/store_parts.h"

#include <cstring>

#include "array/memory/pool.h"
#include "graph/value_item.h"
#include "plan/steps/computed_key.h"
#include "plan/steps/view_reading.h"
#include "runtime/up_calls.h"

namespace pyop {

bool scalar_as_element(PyObject* given, PyArray_Descr* dtype, char* element) {
    if (!PyArray_IsScalar(given, Generic)) return false;
    Ref own = Ref::steal(reinterpret_cast<PyObject*>(PyArray_DescrFromScalar(given)));
    if (!own) PyErr_Clear();
    if (!own || reinterpret_cast<PyArray_Descr*>(own.get())->type_num != dtype->type_num) return false;
    PyArray_ScalarAsCtype(given, element);
    return true;
}

bool number_as_element(PyObject* number, PyArray_Descr* dtype, char* element) {
    const int type = dtype->type_num;
    bool exact = false;
    if (PyFloat_CheckExact(number)) {
        const double x = PyFloat_AS_DOUBLE(number);
        exact = type == NPY_DOUBLE || type == NPY_CDOUBLE ||
                (type == NPY_FLOAT && static_cast<double>(static_cast<float>(x)) == x);
    } else if (PyBool_Check(number)) {
        exact = type == NPY_BOOL;
    } else if (PyLong_CheckExact(number)) {
        exact = type == NPY_DOUBLE || PyTypeNum_ISINTEGER(type);
    }
    if (!exact) return false;
    Ref array = Ref::steal(
        PyArray_Zeros(0, nullptr, reinterpret_cast<PyArray_Descr*>(Py_NewRef(reinterpret_cast<PyObject*>(dtype))), 0));
    if (!array || PyArray_SETITEM(as_array(array.get()), PyArray_BYTES(as_array(array.get())), number) < 0) {
        PyErr_Clear();  // NumPy's error is for the run
        return false;
    }
    std::memcpy(element, PyArray_DATA(as_array(array.get())), static_cast<size_t>(PyDataType_ELSIZE(dtype)));
    return true;
}

bool WrittenValue::bind(const NodeArgument& argument, PyArray_Descr* dtype) {
    input = argument.input;
    return !argument.nested && (input >= 0 || number_as_element(argument.value, dtype, constant));
}

bool WrittenValue::read(PyObject* const* inputs, PyArray_Descr* dtype, Elements& found) const {
    found.from = input < 0 ? constant : found.element;
    if (input < 0) return true;
    PyObject* given = inputs[input];
    if (!is_exact_array(given)) return scalar_as_element(given, dtype, found.element);
    found.array = as_array(given);
    found.from = PyArray_BYTES(found.array);
    return PyArray_DESCR(found.array) == dtype && PyArray_ISALIGNED(found.array);
}

Ref copy_to_write(PyArrayObject* x, ResultRecycler& recycler) {
    if (!PyArray_IS_C_CONTIGUOUS(x)) return Ref::steal(PyArray_NewCopy(x, NPY_KEEPORDER));
    PyArray_Descr* const dtype = PyArray_DESCR(x);
    const npy_intp bytes = PyArray_NBYTES(x);
    Ref made = Ref::steal(bytes <= ResultRecycler::kMostBytes
                              ? recycler.take(dtype, PyArray_NDIM(x), PyArray_DIMS(x))
                              : pooled_array_new(dtype, PyArray_NDIM(x), PyArray_DIMS(x), nullptr));
    if (made) std::memcpy(PyArray_DATA(as_array(made.get())), PyArray_DATA(x), static_cast<size_t>(bytes));
    return made;
}

namespace {

int ndim_behind(PyObject* key, int ndim) {
    const bool several = PyTuple_CheckExact(key);
    for (Py_ssize_t i = 0; i < (several ? PyTuple_GET_SIZE(key) : 1); ++i) {
        PyObject* item = several ? PyTuple_GET_ITEM(key, i) : key;
        if (item == Py_None) ++ndim;
        if (!PySlice_Check(item) && item != Py_Ellipsis && item != Py_None) --ndim;
    }
    return ndim;
}

// The index by which an entry of `views` shows what it is of; null, without an error, if it is another function.
Ref key_of_view(PyObject* view) {
    if (!PyTuple_CheckExact(view) || PyTuple_GET_SIZE(view) != 4) return Ref();
    PyObject *function = PyTuple_GET_ITEM(view, 0), *arguments = PyTuple_GET_ITEM(view, 1);
    if (!PyTuple_CheckExact(arguments) || PyTuple_GET_SIZE(arguments) != 1) return Ref();
    PyObject* key = PyTuple_GET_ITEM(arguments, 0);
    if (function == up_calls.getitem_with_bounds) return spelled_key(key);
    return function == getitem_function ? Ref::borrow(key) : Ref();
}

}  // namespace

bool read_views(PyObject* views, PyObject* last, int ndim, const TreeCallObject::Layout* sizes,
                std::vector<ViewRecipe>& recipes) {
    if (!PyTuple_CheckExact(views)) return false;
    const Py_ssize_t n = PyTuple_GET_SIZE(views);
    for (Py_ssize_t i = 0; i < n + (last != nullptr); ++i) {
        const Ref key = i < n ? key_of_view(PyTuple_GET_ITEM(views, i)) : Ref::borrow(last);
        if (!key || !read_key(key.get(), ndim, sizes, recipes.emplace_back())) return false;
        ndim = ndim_behind(key.get(), ndim);
    }
    return true;
}

}  // namespace pyop
