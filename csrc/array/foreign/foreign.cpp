// array/foreign/foreign.cpp: implement the table of foreign.h, in its order.
#include "array/foreign/foreign.h"

#include <string_view>

#include "array/foreign/arrow.h"
#include "array/foreign/dlpack.h"
#include "array/memory/copied.h"
#include "array/protocol/containers.h"
#include "runtime/attribute.h"
#include "runtime/errors.h"
#include "runtime/forced_exit.h"
#include "runtime/ref.h"
#include "runtime/up_calls.h"

namespace pyop {

namespace {

// What NumPy's constructor takes without asking for any protocol of other libraries.
bool is_python(PyObject* o) {
    return PyFloat_Check(o) || PyLong_Check(o) || PyComplex_Check(o) || PyUnicode_Check(o) || PyBytes_Check(o) ||
           PyList_Check(o) || PyTuple_Check(o) || PyArray_IsScalar(o, Generic) || o == Py_None;
}

bool is_pyops(PyObject* o) {
    const char* name = Py_TYPE(o)->tp_name;
    return std::string_view(name).substr(0, 5) == "pyop.";
}

bool is_inexact(int type_num) { return PyTypeNum_ISFLOAT(type_num) || PyTypeNum_ISCOMPLEX(type_num); }

PyObject* by_numpy(PyObject* value) { return counted(PyArray_FromAny(value, nullptr, 0, 0, 0, nullptr)); }

// Floating-point numbers may stand for nulls, which the container told from NaN.
PyObject* check_nulls_steal(PyObject* array, PyObject* value) {
    if (!array || !is_inexact(PyArray_TYPE(as_array(array)))) return array;
    if (!type_has<"__arrow_c_stream__", "isna">(value)) return array;
    const Ref owner = Ref::steal(array);
    const Ref text = Ref::steal(survive([&] { return PyObject_CallOneArg(up_calls.lost_nulls, value); }));
    if (!text) return nullptr;
    if (text.get() == Py_None) return owner.new_ref();
    PyErr_SetObject(PyExc_TypeError, text.get());
    return nullptr;
}

}  // namespace

PyObject* foreign_array_new(PyObject* value, bool read_only) {
    if (is_exact_array(value)) return Py_NewRef(value);
    if (is_python(value)) return check_nothing_lost(value) < 0 ? nullptr : by_numpy(value);
    if (const Exporter* known = exporter_of(value)) return exported_array_new(value, *known, read_only);
    if (check_nothing_lost(value) < 0) return nullptr;
    if (PyArray_Check(value)) return PyArray_EnsureArray(Py_NewRef(value));
    if (is_pyops(value)) return by_numpy(value);
    if (const Exporter* found = exporter_found(value)) return exported_array_new(value, *found, read_only);
    if (offers_arrow(value)) {
        PyObject* array = arrow_array_new(value);
        return array || PyErr_Occurred() ? array : by_numpy(value);
    }
    if (offers_dlpack(value)) {
        if (check_on_cpu(value) < 0) return nullptr;
        const bool otherwise = type_has<"__array__">(value);
        PyObject* array = dlpack_array_new(value);
        if (array && read_only) PyArray_CLEARFLAGS(as_array(array), NPY_ARRAY_WRITEABLE);
        // A dtype that DLPack has not, or that its library does not export.
        if (array || !otherwise || !PyErr_ExceptionMatches(PyExc_BufferError)) return array;
        PyErr_Clear();
    }
    return check_nulls_steal(by_numpy(value), value);
}

}  // namespace pyop
