// array/numpy.cpp: import NumPy's C API once; every other file refers to it.
#define PYOP_IMPORTS_NUMPY
#include "array/numpy.h"

#include "runtime/lazy.h"

namespace pyop {

int numpy_init() {
    import_array1(-1);
    return 0;
}

PyObject* numpy_module() {
    static constinit Lazy module;
    return module.get([] { return PyImport_ImportModule("numpy"); });
}

bool has_foreign_field(PyArray_Descr* descr) {
    PyObject* native = PyObject_GetAttrString(reinterpret_cast<PyObject*>(descr), "isnative");
    if (!native) PyErr_Clear();
    const bool foreign = native == Py_False;
    Py_XDECREF(native);
    return foreign;
}

}  // namespace pyop
