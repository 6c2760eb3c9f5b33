// plan/steps/store_parts.cpp: convert values to elements, make copies to write into, and views of what is written.
#include "plan/steps/store_parts.h"

#include <cstring>

#include "array/loop/fp_flags.h"
#include "array/memory/pool.h"
#include "graph/value_item.h"
#include "plan/steps/computed_key.h"
#include "plan/steps/view_reading.h"
#include "plan/tape/element_cast.h"
#include "plan/tape/tape_builder.h"
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
    double parts[2] = {};
    int64_t whole = 0;
    int type = NPY_INT64, overflow = 0;
    if (PyFloat_CheckExact(number)) {
        type = NPY_DOUBLE;
        parts[0] = PyFloat_AS_DOUBLE(number);
    } else if (PyComplex_CheckExact(number)) {
        type = NPY_CDOUBLE;
        parts[0] = PyComplex_RealAsDouble(number);
        parts[1] = PyComplex_ImagAsDouble(number);
    } else if (PyLong_CheckExact(number) || PyBool_Check(number)) {
        whole = PyLong_AsLongLongAndOverflow(number, &overflow);
        if (overflow > 0 && dtype->type_num == NPY_UINT64) {
            whole = static_cast<int64_t>(PyLong_AsUnsignedLongLong(number));
            if (PyErr_Occurred())
                PyErr_Clear();
            else
                overflow = 0, type = NPY_UINT64;
        }
    } else {
        return false;
    }
    PyArray_Descr* const have = PyArray_DescrFromType(type);  // lives for ever
    Py_DECREF(have);
    const void* const from = type == NPY_DOUBLE || type == NPY_CDOUBLE ? static_cast<const void*>(parts) : &whole;
    return !overflow && converted_element(from, have, dtype, element);
}

bool converted_element(const void* from, PyArray_Descr* have, PyArray_Descr* dtype, char* element) {
    TapeCall::Function* const cast = find_store_cast(have->type_num, dtype->type_num);
    if (!cast) return false;
    TapeCell x[2] = {}, made[2] = {};
    std::memcpy(x, from, static_cast<size_t>(PyDataType_ELSIZE(have)));
    if (all_fp_errors()) clear_all_fp_errors();
    const bool done = cast(nullptr, x, nullptr, made) && !all_fp_errors();
    if (all_fp_errors()) clear_all_fp_errors();
    std::memcpy(element, made, static_cast<size_t>(PyDataType_ELSIZE(dtype)));
    return done;
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
    PyArray_Descr* const have = PyArray_DESCR(as_array(given));
    if (have != dtype && PyArray_NDIM(as_array(given)) == 0 && PyArray_ISBEHAVED_RO(as_array(given)) &&
        TapeBuilder::fits(have))
        return converted_element(PyArray_DATA(as_array(given)), have, dtype, found.element);
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
