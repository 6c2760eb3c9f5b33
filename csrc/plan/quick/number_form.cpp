// plan/quick/number_form.cpp: convert numbers to NumPy's scalars and Python's numbers.
#include "plan/quick/number_form.h"

#include "plan/result_forms.h"
#include "runtime/lazy.h"
#include "runtime/ref.h"

#include <numpy/arrayscalars.h>

namespace pyop {

namespace {

PyObject* item_method() {
    static constinit Lazy item;
    PyObject* method =
        item.get([] { return PyObject_GetAttrString(reinterpret_cast<PyObject*>(&PyArray_Type), "item"); });
    if (!method) PyErr_Clear();
    return method;
}

PyObject* scalar_of(PyObject*, PyObject* array) { return in_form_steal(Py_NewRef(array), NumberForm::Scalar); }

PyMethodDef form_functions[] = {
    {"scalar_of", scalar_of, METH_O, "scalar_of(x): NumPy's scalar for an array of no dimension, else x."},
    {},
};

}  // namespace

PyObject* scalar_new(PyArray_Descr* dtype, const void* number) {
    if (PYOP_LIKELY(dtype->type_num == NPY_DOUBLE)) {
        PyObject* made = PyDoubleArrType_Type.tp_alloc(&PyDoubleArrType_Type, 0);
        if (made) reinterpret_cast<PyDoubleScalarObject*>(made)->obval = *static_cast<const double*>(number);
        return made;
    }
    return PyArray_Scalar(const_cast<void*>(number), dtype, nullptr);
}

NumberForm number_form_of(PyObject* finish) {
    if (!finish) return NumberForm::AsIs;
    if (finish == item_method()) return NumberForm::Python;
    if (result_forms_of(finish)) return NumberForm::Listed;
    if (PyCFunction_Check(finish) && PyCFunction_GetFunction(finish) == scalar_of) return NumberForm::Scalar;
    return NumberForm::Other;
}

PyObject* in_form_steal(PyObject* array, NumberForm form) {
    if (!array || !is_exact_array(array) || PyArray_NDIM(as_array(array)) != 0) return array;
    if (form != NumberForm::Python && form != NumberForm::Scalar) return array;
    const Ref given = Ref::steal(array);
    PyArrayObject* a = as_array(array);
    if (form == NumberForm::Python) return PyArray_GETITEM(a, PyArray_BYTES(a));
    return PyArray_ISALIGNED(a) ? scalar_new(PyArray_DESCR(a), PyArray_DATA(a))
                                : PyArray_Scalar(PyArray_DATA(a), PyArray_DESCR(a), array);
}

int number_form_init(PyObject* module) { return PyModule_AddFunctions(module, form_functions); }

}  // namespace pyop
