// array/call/arguments.cpp: convert numbers, lists and text into arrays for a call (foreign.h has the rest), and
// refuse other objects.
#include "array/call/arguments.h"

#include <memory>

#include "array/call/checked_call.h"
#include "array/call/remedy.h"
#include "array/call/text.h"
#include "array/contract/describe.h"
#include "array/foreign/foreign.h"
#include "array/memory/copied.h"
#include "runtime/errors.h"

namespace pyop {

namespace {

std::string argument_text(Py_ssize_t k, const Caller& caller) {
    const std::string name = caller.argument_name(k);
    return "argument " + std::to_string(k) + (name.empty() ? "" : " ('" + name + "')");
}

// Python numbers, and lists of them, have no dtype of their own: they take the declared one, if every value
// survives (3 for float64, but not 3.5 for int64).
bool is_weak(PyObject* value) {
    return !PyArray_Check(value) && !PyArray_CheckScalar(value) &&
           (PyFloat_Check(value) || PyLong_Check(value) || PyComplex_Check(value) || PyList_Check(value) ||
            PyTuple_Check(value));
}

// Whether `cast` holds the same integers as `array`; NumPy compares any two integer dtypes exactly.
bool integers_survive(PyObject* array, PyObject* cast) {
    Ref equal = Ref::steal(PyObject_RichCompare(cast, array, Py_EQ));
    Ref all = equal ? Ref::steal(PyObject_CallMethod(equal.get(), "all", nullptr)) : Ref();
    return all && PyObject_IsTrue(all.get()) == 1;
}

PyObject* cast_weak_steal(PyObject* array, PyArray_Descr* want) {
    PyArray_Descr* have = PyArray_DESCR(as_array(array));
    const bool integers = PyTypeNum_ISINTEGER(want->type_num) && PyTypeNum_ISINTEGER(have->type_num);
    const bool widening = PyTypeNum_ISNUMBER(want->type_num) && PyTypeNum_ISNUMBER(have->type_num) &&
                          PyArray_CanCastTypeTo(have, want, NPY_SAME_KIND_CASTING);
    if (PyArray_EquivTypes(have, want) || !(integers || widening || PyArray_SIZE(as_array(array)) == 0)) return array;
    Py_INCREF(want);
    PyObject* cast = counted(PyArray_CastToType(as_array(array), want, 0));
    if (cast && integers && !integers_survive(array, cast)) {
        Py_DECREF(cast);
        cast = nullptr;
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_OverflowError, "not every value fits into %s", dtype_text(want).c_str());
    }
    Py_DECREF(array);
    return cast;
}

}  // namespace

namespace {

// What the py_func family takes: no dtype that a tensor cannot have, and objects only as text.
PyObject* tensor_steal(PyObject* array) {
    PyArray_Descr* descr = PyArray_DESCR(as_array(array));
    if (descr->type_num == NPY_OBJECT) {
        Py_SETREF(array, as_object(utf8_array_new(array)));
        return array;
    }
    if (is_tensor_dtype(descr)) return array;
    PyErr_Format(PyExc_TypeError, "Unsupported numpy type %s", dtype_text(descr).c_str());
    Py_DECREF(array);
    return nullptr;
}

}  // namespace

namespace {

bool is_object_array(PyObject* array) { return PyArray_DESCR(as_array(array))->type_num == NPY_OBJECT; }

// Sparse matrices, datetimes, ragged lists: an array of the objects themselves is not what was asked for.
PYOP_COLD PyObject* made_objects(PyObject* value, PyArray_Descr* want) {
    const char* instead = nullptr;
    for (const char* name : {"toarray", "to_numpy", "numpy"}) {
        if (instead || PyList_Check(value) || PyTuple_Check(value)) break;
        Ref method = Ref::steal(PyObject_GetAttrString(value, name));
        if (method) instead = name;
        PyErr_Clear();
    }
    const std::string dtype = dtype_text(want);
    const std::string call = instead ? std::string("x.") + instead + "()" : "an array of " + dtype;
    PyErr_Format(PyExc_TypeError, "NumPy makes objects of it, but %s is expected: pass %s", dtype.c_str(),
                 call.c_str());
    return nullptr;
}

}  // namespace

PyObject* convert_argument_new(PyObject* value, PyArray_Descr* want, bool utf8) {
    if (utf8 && is_text(value)) return as_object(utf8_array_new(value));
    PyObject* array = foreign_array_new(value, true);
    if (array && !PyArray_Check(value) && is_object_array(array) && want && want->type_num != NPY_OBJECT && !utf8) {
        Py_DECREF(array);
        return made_objects(value, want);
    }
    if (array && is_foreign(as_array(array))) {
        PyArray_Descr* native = PyArray_DescrNewByteorder(PyArray_DESCR(as_array(array)), NPY_NATIVE);
        Py_SETREF(array, native ? counted(PyArray_CastToType(as_array(array), native, 0)) : nullptr);
    }
    if (array && utf8) return tensor_steal(array);
    return array && want && is_weak(value) ? cast_weak_steal(array, want) : array;
}

PyObject* argument_new(const Contract* c, Py_ssize_t k, PyObject* value, const Caller& caller) {
    const ArraySpec* spec = c && c->inputs_declared && k < c->n_in() ? &(*c->inputs)[static_cast<size_t>(k)] : nullptr;
    PyObject* array = convert_argument_new(value, spec ? spec->descr() : nullptr, c && c->text_as_utf8);
    if (array && spec && c->casting != NPY_NO_CASTING) return cast_declared_steal(array, *c, *spec);
    if (array || !PyErr_ExceptionMatches(PyExc_Exception)) return array;
    Ref why = pending_text();
    Ref message =
        Ref::steal(PyUnicode_FromFormat("%s of %s, a %s, cannot become an array: %U", argument_text(k, caller).c_str(),
                                        caller.description().c_str(), type_name(value).c_str(), why.get()));
    raise_from_pending(errors.input, message.get());
    return nullptr;
}

namespace {

// Why an argument of another dtype was not cast, and what to do.
PYOP_COLD std::string cast_text(const Contract& c, const ArraySpec& spec, PyObject* given, PyArray_Descr* have) {
    const std::string remedy = cast_remedy(given, have, spec.descr());
    if (c.casting == NPY_NO_CASTING) {
        const bool safe = is_cast(spec, have, NPY_SAFE_CASTING);
        return "\n  nothing is cast silently: " + remedy + (safe ? ", or declare the op with cast=\"safe\"" : "");
    }
    return std::string("\n  cast=\"") + (c.casting == NPY_SAFE_CASTING ? "safe" : "same_kind") +
           "\" does not allow this: " + remedy;
}

}  // namespace

bool is_cast(const ArraySpec& spec, PyArray_Descr* have, NPY_CASTING casting) {
    const auto is_number = [](PyArray_Descr* d) {
        return PyTypeNum_ISNUMBER(d->type_num) || PyTypeNum_ISBOOL(d->type_num) || is_of_kind(d, TypeKind::Number);
    };
    PyArray_Descr* want = spec.descr();
    return want && !dtype_fits(spec, have) && is_number(have) && is_number(want) &&
           PyArray_CanCastTypeTo(have, want, casting);
}

PyObject* cast_declared_steal(PyObject* array, const Contract& c, const ArraySpec& spec) {
    PyArray_Descr* want = spec.descr();
    if (!is_cast(spec, PyArray_DESCR(as_array(array)), c.casting)) return array;
    Py_INCREF(want);
    Py_SETREF(array, counted(PyArray_CastToType(as_array(array), want, 0)));
    return array;
}

int wrong_input(const Contract& c, Py_ssize_t k, PyObject* const* arrays, const Caller& caller) {
    // Bind again without the offender, to say what the names stand for.
    auto b = std::make_unique<Bindings>(c);
    auto* const* a = reinterpret_cast<PyArrayObject* const*>(arrays);
    auto loop = std::make_unique<LoopShape>();
    if (c.gufunc) match_gufunc(c, a, *b, *loop);
    for (Py_ssize_t i = 0; i < k && !c.gufunc; ++i) match((*c.inputs)[static_cast<size_t>(i)], a[i], *b);
    const ArraySpec& spec = (*c.inputs)[static_cast<size_t>(k)];
    std::string message = argument_text(k, caller) + " of " + caller.name() + " is " + array_text(arrays[k]) +
                          ", but expects " + spec_text(c, spec) + bindings_text(c, *b);
    if (c.gufunc) message += " as its last dimensions, and leading ones that broadcast";
    if (spec.dtype && !dtype_fits(spec, PyArray_DESCR(a[k])))
        message += cast_text(c, spec, static_cast<PyObject*>(caller.given(k)), PyArray_DESCR(a[k]));
    message += "\n  in " + caller.description();
    PyErr_SetString(errors.input, message.c_str());
    return -1;
}

PyObject* allocate_output_new(const Contract& c, Py_ssize_t k, const Bindings& b, const Caller& caller) {
    npy_intp dims[NPY_MAXDIMS];
    PyArray_Descr* descr = nullptr;
    const ArraySpec& spec = (*c.outputs)[static_cast<size_t>(k)];
    const int ndim = resolve_output(spec, b, dims, &descr);
    if (ndim < 0 || !descr) {
        PyErr_Format(errors.output,
                     "output %zd of %s is declared %s, whose %s is not known before the call, so no out= array can "
                     "be made for it; pass out=, or give the function's `out` parameter the default None\n  in %s",
                     k, caller.name().c_str(), spec_text(c, spec).c_str(), descr ? "shape" : "dtype",
                     caller.description().c_str());
        return nullptr;
    }
    Py_INCREF(descr);
    return PyArray_NewFromDescr(&PyArray_Type, descr, ndim, dims, nullptr, nullptr, 0, nullptr);
}

// What there is to do about a function that writes into an argument: only an op can declare that it does.
static std::string remedy_of_writes(const Contract* c) {
    if (!c) return "write to a copy";
    if (!c->text_as_utf8) return "name those the function writes to in mutates=(...), or write to a copy";
    return "write to a copy, x = x.copy(), or call the function as a pyop.op(..., mutates=(...))";
}

void note_call(const Caller& caller, PyObject* const* arrays, Py_ssize_t n) {
    if (!PyErr_ExceptionMatches(PyExc_Exception)) return;
    std::string note = "in " + caller.description() + ", called with ";
    for (Py_ssize_t k = 0; k < n; ++k) note += (k ? ", " : "") + array_text(arrays[k]);
    if (n == 0) note += "no arrays";
    if (PyErr_ExceptionMatches(PyExc_ValueError) || PyErr_ExceptionMatches(PyExc_TypeError)) {
        Ref text = pending_text();
        Ref hit = text ? Ref::steal(PyUnicode_FromString("read-only")) : Ref();
        if (hit && PyUnicode_Contains(text.get(), hit.get()) == 1)
            note += "; arguments are read-only: " + remedy_of_writes(caller.declared());
    }
    Ref message = Ref::steal(PyUnicode_DecodeUTF8(note.data(), static_cast<Py_ssize_t>(note.size()), "replace"));
    note_pending(message.get());
}

}  // namespace pyop
