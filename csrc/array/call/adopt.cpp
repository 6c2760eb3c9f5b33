// array/call/adopt.cpp: split and adopt each kind of result, and raise errors in the words of py_func.
#include "array/call/adopt.h"

#include "array/call/text.h"
#include "array/contract/describe.h"
#include "array/foreign/foreign.h"
#include "array/memory/copied.h"
#include "array/protocol/containers.h"
#include "runtime/ensure_tuple.h"
#include "runtime/errors.h"
#include "runtime/items.h"
#include "runtime/up_calls.h"

namespace pyop {

namespace {

PyArrayObject* fail(const std::string& message) {
    Ref text = Ref::steal(PyUnicode_DecodeUTF8(message.data(), static_cast<Py_ssize_t>(message.size()), "replace"));
    raise_from_pending(errors.output, text.get());
    return nullptr;
}

std::string ordinal(Py_ssize_t k, const Caller& caller) {
    return std::to_string(k) + "-th value returned by " + caller.name();
}

// "in node 'f' ..." under the first line of every message.
std::string footer(const Caller& caller) { return "\n  in " + caller.description(); }

PYOP_COLD PyArrayObject* mismatch(const Contract& c, Py_ssize_t k, PyArrayObject* a, PyObject* value, const Bindings& b,
                                  const Caller& caller) {
    const ArraySpec& spec = (*c.outputs)[static_cast<size_t>(k)];
    const bool dtype_wrong = spec.dtype && !dtype_fits(spec, PyArray_DESCR(a));
    std::string got = array_text(as_object(a)), want = spec_text(c, spec);
    if (c.text_as_utf8 && dtype_wrong) {  // TensorFlow's words, which ports match on
        got = tf_dtype_text(PyArray_DESCR(a));
        want = tf_dtype_text(spec.descr());
    }
    std::string message = ordinal(k, caller) + " is " + got + ", but expects " + want;
    message +=
        "\n  declared: " + spec_text(c, spec) + bindings_text(c, b) + "\n  returned: " + array_text(as_object(a));
    if (as_object(a) != value) message += " (from a " + type_name(value) + ")";
    if (c.tree_paths && PyList_Check(c.tree_paths) && k < PyList_GET_SIZE(c.tree_paths)) {
        const char* path = PyUnicode_AsUTF8(PyList_GET_ITEM(c.tree_paths, k));
        if (path && *path)
            message += std::string("\n  at: result") + path;
        else
            PyErr_Clear();
    }
    if (dtype_wrong)
        message += "\n  nothing is cast silently: return " + dtype_text(spec.descr()) + ", or declare what is returned";
    return fail(message + footer(caller));
}

// A coroutine that nobody is going to await is closed, or Python warns of it later.
void close_coroutine(PyObject* o) {
    if (!PyCoro_CheckExact(o)) return;
    SavedError keep;
    if (!Ref::steal(PyObject_CallMethod(o, "close", nullptr))) PyErr_Clear();
}

void close_coroutines(PyObject* values) {
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(values); ++k) close_coroutine(PyTuple_GET_ITEM(values, k));
}

// Objects NumPy would wrap whole in a rank-0 object array, though the declaration asks for numbers or text.
PYOP_COLD PyArrayObject* unsupported_object(PyObject* object, Py_ssize_t k, const Caller& caller) {
    close_coroutine(object);
    const char* advice = PyCoro_CheckExact(object)
                             ? "\n  an async function returns before it has run: pass one that runs "
                               "it, with asyncio.run(...)"
                             : "";
    return fail("Unsupported object type " + type_name(object) + ": the " + ordinal(k, caller) +
                " is not an array, a number, text or a nested list of these" + advice + footer(caller));
}

PyObject* first_object_of(PyArrayObject* a) {
    if (PyArray_SIZE(a) == 0) return nullptr;
    return *static_cast<PyObject**>(PyArray_DATA(a));
}

// What is nested deeper than the axes of an array is not: it may hold itself.
bool is_empty_sequence_tree(PyObject* o, int depth = 0) {
    if (depth > NPY_MAXDIMS || (!PyList_Check(o) && !PyTuple_Check(o))) return false;
    for (Py_ssize_t i = 0; i < size_of_sequence(o); ++i)
        if (const Ref item = item_of(o, i); item && !is_empty_sequence_tree(item.get(), depth + 1)) return false;
    return true;
}

// Non-array results: scalars, lists, buffers. `want` (may be null) only decides what cannot be told
// from the value: the dtype of an empty list, and text.
PyArrayObject* convert(PyObject* value, PyArray_Descr* want) {
    if (want && is_empty_sequence_tree(value)) {
        Py_INCREF(want);
        return counted(as_array(PyArray_FromAny(value, want, 0, 0, 0, nullptr)));
    }
    return as_array(foreign_array_new(value));
}

Ref as_native_array(PyObject* value, PyArray_Descr* want) {
    Ref array;
    if (is_exact_array(value))
        array = Ref::borrow(value);
    else if (PyArray_Check(value))
        array = Ref::steal(PyArray_EnsureArray(Py_NewRef(value)));
    else
        array = Ref::steal(as_object(convert(value, want)));
    if (array && is_foreign(as_array(array.get()))) {
        PyArray_Descr* native = PyArray_DescrNewByteorder(PyArray_DESCR(as_array(array.get())), NPY_NATIVE);
        if (!native) return {};
        array = Ref::steal(counted(PyArray_CastToType(as_array(array.get()), native, 0)));
    }
    return array;
}

// The py_func family: text is UTF-8 bytes, object arrays hold nothing but text.
PyArrayObject* adopt_tf(const Contract& c, Py_ssize_t k, PyObject* value, const Caller& caller) {
    const ArraySpec& spec = (*c.outputs)[static_cast<size_t>(k)];
    if (value == Py_None) return unsupported_object(value, k, caller);
    Ref array;
    if (is_text(value))
        array = Ref::steal(as_object(utf8_array_new(value)));
    else
        array = as_native_array(value, spec.descr());
    if (array && PyArray_DESCR(as_array(array.get()))->type_num == NPY_OBJECT && !is_text(value)) {
        PyObject* item = first_object_of(as_array(array.get()));
        if (item && !PyUnicode_Check(item) && !PyBytes_Check(item)) return unsupported_object(item, k, caller);
        array = Ref::steal(as_object(utf8_array_new(array.get())));
    }
    if (!array) {
        if (!PyErr_ExceptionMatches(PyExc_Exception)) return nullptr;
        Ref why = pending_text();
        const char* text = why ? PyUnicode_AsUTF8(why.get()) : nullptr;
        return fail((text ? std::string(text) : "conversion failed") + "\n  converting the " + ordinal(k, caller) +
                    footer(caller));
    }
    PyArray_Descr* descr = PyArray_DESCR(as_array(array.get()));
    if (!is_tensor_dtype(descr))
        return fail("Unsupported numpy type " + dtype_text(descr) + ": the " + ordinal(k, caller) + footer(caller));
    return as_array(array.release());
}

// pyop.op: any NumPy dtype passes as it is.
PyArrayObject* adopt_numpy(const Contract* c, Py_ssize_t k, PyObject* value, const Caller& caller) {
    PyArray_Descr* want = c ? (*c->outputs)[static_cast<size_t>(k)].descr() : nullptr;
    Ref array = PyArray_Check(value) && check_nothing_lost(value) < 0 ? Ref() : as_native_array(value, want);
    if (!array) {
        if (!PyErr_ExceptionMatches(PyExc_Exception)) return nullptr;
        Ref why = pending_text();
        const char* text = why ? PyUnicode_AsUTF8(why.get()) : nullptr;
        return fail("the " + ordinal(k, caller) + ", a " + type_name(value) +
                    ", cannot become an array: " + (text ? text : "?") + footer(caller));
    }
    PyArrayObject* a = as_array(array.get());
    const bool wrapped_whole = PyArray_DESCR(a)->type_num == NPY_OBJECT && !PyArray_Check(value);
    if (wrapped_whole && want && want->type_num != NPY_OBJECT) {
        PyObject* item = first_object_of(a);
        return unsupported_object(item ? item : value, k, caller);
    }
    // Text built from Python strings comes as <U5; a declared "str" or "<U9" takes any that fits.
    if (want && want->type_num == NPY_UNICODE && !PyArray_Check(value) && PyDataType_ELSIZE(want) != 0 &&
        PyArray_DESCR(a)->type_num == NPY_UNICODE && PyArray_ITEMSIZE(a) < PyDataType_ELSIZE(want)) {
        Py_INCREF(want);
        return counted(as_array(PyArray_CastToType(a, want, 0)));
    }
    return as_array(array.release());
}

}  // namespace

PyArrayObject* to_array_new(PyObject* value) {
    return counted(as_array(PyArray_FromAny(value, nullptr, 0, 0, 0, nullptr)));
}

PyArrayObject* adopt_new(const Contract* c, Py_ssize_t k, PyObject* value, Bindings& b, const Caller& caller) {
    PyArrayObject* a = c && c->text_as_utf8 ? adopt_tf(*c, k, value, caller) : adopt_numpy(c, k, value, caller);
    if (!a || !c) return a;
    if (!match((*c->outputs)[static_cast<size_t>(k)], a, b)) {
        mismatch(*c, k, a, value, b, caller);
        Py_DECREF(a);
        return nullptr;
    }
    return a;
}

namespace {

PYOP_COLD Ref wrong_count(const Contract& c, Py_ssize_t got, const Caller& caller) {
    fail(caller.name() + " returns " + std::to_string(got) + " values, but expects to see " +
         std::to_string(c.n_out()) + " values." +
         (c.n_out() == 1 && got > 1 ? " One array is declared: return np.stack of these (of ragged lists, which are no "
                                      "array, pad the shorter ones), or declare an output for each."
                                    : "") +
         footer(caller));
    return {};
}

PYOP_COLD Ref wrong_structure(const Caller& caller) {
    Ref why = pending_text();
    const char* text = why ? PyUnicode_AsUTF8(why.get()) : nullptr;
    fail((text ? std::string(text) : "structure mismatch") + "\n  in the value returned by " + caller.name() +
         footer(caller));
    return {};
}

}  // namespace

Ref split_result(const Contract& c, Ref result, const Caller& caller) {
    if (c.form == ResultForm::Tree) {
        if (result.get() == Py_None && c.n_out() == 0) return Ref::steal(PyTuple_New(0));
        Ref leaves = Ref::steal(
            survive([&] { return PyObject_CallMethodOneArg(c.tree, up_attributes.flatten_up_to, result.get()); }));
        if (!leaves) {
            close_coroutine(result.get());
            return PyErr_ExceptionMatches(PyExc_Exception) ? wrong_structure(caller) : Ref();
        }
        Ref values = Ref::steal(PySequence_Tuple(leaves.get()));
        if (values && c.text_as_utf8) close_coroutines(values.get());
        return values;
    }
    const bool list_is_outputs = c.form != ResultForm::Single && PyList_Check(result.get());
    if (result.get() == Py_None && c.n_out() == 0)
        result = Ref::steal(PyTuple_New(0));
    else if (result.get() == Py_None && c.text_as_utf8)
        return wrong_count(c, 0, caller);
    else if (list_is_outputs)
        result = Ref::steal(PyList_AsTuple(result.get()));
    else if (ensure_tuple(result) < 0)
        return {};
    if (!result) return {};
    const bool counted = PyTuple_GET_SIZE(result.get()) == c.n_out();
    // The py_func family refuses every coroutine, pyop.op those that are not declared to be objects.
    if (c.text_as_utf8 || !counted) close_coroutines(result.get());
    if (counted) return result;
    return wrong_count(c, PyTuple_GET_SIZE(result.get()), caller);
}

}  // namespace pyop
