// array/loop/strided_loop.cpp: ask NumPy for a loop, and refuse what is unusual about it.
#include "array/loop/strided_loop.h"

#include <string_view>

#define NO_IMPORT_UFUNC  // only the struct is used
#include <numpy/ufuncobject.h>

namespace pyop {

namespace {

constexpr const char* kCallInfoCapsule = "numpy_1.24_ufunc_call_info";

// The content of that capsule, as NumPy documents it.
struct CallInfo {
    int (*loop)(void*, char* const*, const npy_intp*, const npy_intp*, void*);
    void* context;
    void* auxdata;
    npy_bool requires_python;
    npy_bool no_floating_point_errors;
};

// Dtypes whose elements are plain numbers in native order and whose floating-point errors SSE flags report.
bool is_plain(PyArray_Descr* d) {
    const bool number = PyTypeNum_ISNUMBER(d->type_num) || d->type_num == NPY_BOOL;
    return number && d->type_num != NPY_LONGDOUBLE && d->type_num != NPY_CLONGDOUBLE && PyArray_ISNBO(d->byteorder);
}

}  // namespace

bool is_ufunc(PyObject* o) { return std::string_view(Py_TYPE(o)->tp_name) == "numpy.ufunc"; }

bool is_elementwise_ufunc(PyObject* o) {
    if (!is_ufunc(o)) return false;
    auto* u = reinterpret_cast<PyUFuncObject*>(o);
    return !u->core_enabled && u->nin >= 1 && u->nout >= 1 && u->nargs <= StridedLoop::kMaxOperands;
}

int StridedLoop::resolve(PyObject* ufunc, PyObject* const* kinds, int n) {
    return is_elementwise_ufunc(ufunc) ? resolve_any(ufunc, kinds, n) : 0;
}

int StridedLoop::resolve_any(PyObject* ufunc, PyObject* const* kinds, int n) {
    if (!is_ufunc(ufunc) || !PyObject_HasAttrString(ufunc, "_get_strided_loop")) return 0;
    auto* u = reinterpret_cast<PyUFuncObject*>(ufunc);
    if (n != u->nin || u->nargs > kMaxOperands) return 0;
    Ref asked = Ref::steal(PyTuple_New(u->nargs));
    for (int i = 0; asked && i < u->nargs; ++i) PyTuple_SET_ITEM(asked.get(), i, Py_NewRef(i < n ? kinds[i] : Py_None));
    if (!asked) return -1;
    Ref answer = Ref::steal(PyObject_CallMethod(ufunc, "_resolve_dtypes_and_context", "(O)", asked.get()));
    PyObject *dtypes, *capsule;
    if (!answer || !PyArg_ParseTuple(answer.get(), "O!O", &PyTuple_Type, &dtypes, &capsule)) {
        PyErr_Clear();  // the ufunc will say it better, when it is called
        return 0;
    }
    if (!PyCapsule_IsValid(capsule, kCallInfoCapsule) || PyTuple_GET_SIZE(dtypes) != u->nargs) return 0;
    Ref filled = Ref::steal(PyObject_CallMethod(ufunc, "_get_strided_loop", "(O)", capsule));
    if (!filled) {
        PyErr_Clear();
        return 0;
    }
    const auto* info = static_cast<const CallInfo*>(PyCapsule_GetPointer(capsule, kCallInfoCapsule));
    if (!info || !info->loop || info->requires_python) return info ? 0 : -1;
    for (int i = 0; i < u->nargs; ++i) {
        PyObject* dtype = PyTuple_GET_ITEM(dtypes, i);
        if (!PyArray_DescrCheck(dtype) || !is_plain(reinterpret_cast<PyArray_Descr*>(dtype))) return 0;
        dtypes_[static_cast<size_t>(i)] = Ref::borrow(dtype);
    }
    loop_ = reinterpret_cast<Function*>(info->loop);
    context_ = info->context;
    auxdata_ = info->auxdata;
    ignores_flags_ = info->no_floating_point_errors;
    n_inputs_ = u->nin;
    n_operands_ = u->nargs;
    capsule_ = Ref::borrow(capsule);
    return 1;
}

void StridedLoop::assign(Function* loop, void* context, PyObject* const* dtypes, int n_inputs, int n_operands,
                         bool may_raise) {
    loop_ = loop;
    context_ = context;
    n_inputs_ = n_inputs;
    n_operands_ = n_operands;
    is_foreign_ = true;
    may_raise_ = may_raise;
    for (int i = 0; i < n_operands; ++i) dtypes_[static_cast<size_t>(i)] = Ref::borrow(dtypes[i]);
}

}  // namespace pyop
