// array/native/native_ufunc.cpp: make the ufunc and its loop, and promote other dtypes to those of the loop.
#include "array/native/native_ufunc.h"

#include <array>

#include "runtime/attach.h"

#include <numpy/ufuncobject.h>

namespace pyop {

namespace {

constexpr const char* kPromoterCapsule = "numpy._ufunc_promoter";

int import_ufunc_api() {
    static bool imported = false;  // the GIL guards it
    if (imported) return 0;
    import_umath1(-1);
    imported = true;
    return 0;
}

const NativeCode& code_of(PyObject* ufunc) {
    return *reinterpret_cast<const NativeCode*>(reinterpret_cast<PyUFuncObject*>(ufunc)->obj);
}

// With the GIL or without.
int native_loop(PyArrayMethod_Context* context, char* const* data, const npy_intp* sizes, const npy_intp* strides,
                NpyAuxData*) {
    const NativeCode& code = code_of(context->caller);
    const int status = code.run(data, sizes, strides);
    if (PYOP_LIKELY(status == 0 && !code.may_raise)) return 0;
    const PyGILState_STATE gil = PyGILState_Ensure();
    if (status != 0) native_call_failed(code, status);
    const bool failed = PyErr_Occurred();
    PyGILState_Release(gil);
    return failed ? -1 : 0;
}

// Whatever the operands are, the loop is that of the code: whether they may be cast to it NumPy looks at next.
int promote(PyObject* ufunc, PyArray_DTypeMeta* const*, PyArray_DTypeMeta* const*, PyArray_DTypeMeta** to) {
    const NativeCode& code = code_of(ufunc);
    for (int i = 0; i < code.n_operands; ++i) {
        PyArray_Descr* descr = PyArray_DescrFromType((*code.types)[static_cast<size_t>(i)]);
        to[i] = reinterpret_cast<PyArray_DTypeMeta*>(Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(descr))));
        Py_DECREF(descr);
    }
    return 0;
}

int add_loop(PyObject* ufunc, const NativeCode& code) {
    std::array<PyArray_DTypeMeta*, NativeCode::kMaxOperands> dtypes;
    promote(ufunc, nullptr, nullptr, dtypes.data());
    PyType_Slot slots[] = {{NPY_METH_strided_loop, reinterpret_cast<void*>(native_loop)}, {0, nullptr}};
    PyArrayMethod_Spec spec{};
    spec.name = code.name->c_str();
    spec.nin = code.n_in;
    spec.nout = code.n_operands - code.n_in;
    spec.casting = NPY_NO_CASTING;
    spec.flags = code.needs_gil ? NPY_METH_REQUIRES_PYAPI : static_cast<NPY_ARRAYMETHOD_FLAGS>(0);
    spec.dtypes = dtypes.data();
    spec.slots = slots;
    const int status = PyUFunc_AddLoopFromSpec(ufunc, &spec);
    for (int i = 0; i < code.n_operands; ++i) Py_DECREF(dtypes[static_cast<size_t>(i)]);
    return status;
}

int add_promoter(PyObject* ufunc, const NativeCode& code) {
    Ref any = Ref::steal(PyTuple_New(code.n_operands));
    for (int i = 0; any && i < code.n_operands; ++i)
        PyTuple_SET_ITEM(any.get(), i, Py_NewRef(reinterpret_cast<PyObject*>(&PyArrayDescr_Type)));
    Ref promoter = Ref::steal(PyCapsule_New(reinterpret_cast<void*>(promote), kPromoterCapsule, nullptr));
    return any && promoter ? PyUFunc_AddPromoter(ufunc, any.get(), promoter.get()) : -1;
}

}  // namespace

Ref native_ufunc_new(NativeCode& code) {
    if (import_ufunc_api() < 0) return {};
    // NumPy keeps the pointer to the name: the code lives as long as the ufunc, and has it.
    Ref ufunc = Ref::steal(PyUFunc_FromFuncAndDataAndSignature(
        nullptr, nullptr, nullptr, 0, code.n_in, code.n_operands - code.n_in, PyUFunc_None, code.name->c_str(), "", 0,
        code.elementwise() ? nullptr : code.cores->c_str()));
    if (!ufunc) return {};
    auto* u = reinterpret_cast<PyUFuncObject*>(ufunc.get());
    u->obj = Py_NewRef(reinterpret_cast<PyObject*>(&code));
    // As np.frompyfunc does, for what the code's owner refers to.
    if (!PyObject_GC_IsTracked(ufunc.get())) PyObject_GC_Track(ufunc.get());
    if (add_loop(ufunc.get(), code) < 0 || add_promoter(ufunc.get(), code) < 0) return {};
    return ufunc;
}

}  // namespace pyop
