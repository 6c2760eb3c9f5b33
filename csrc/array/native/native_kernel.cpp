// array/native/native_kernel.cpp: define the Python type of NativeKernel.
#include "array/native/native_kernel.h"

#include "array/native/native_ufunc.h"
#include "runtime/errors.h"
#include "runtime/shared_ref.h"

namespace pyop {

PyTypeObject* native_kernel_type = nullptr;

namespace {

NativeKernel* as_kernel(PyObject* o) { return reinterpret_cast<NativeKernel*>(o); }

// As NumPy's loops are called. Any thread; the caller reports failures, with a Python error or another way.
int direct_loop(void* code, char* const* data, const npy_intp* sizes, const npy_intp* strides, void*) {
    return static_cast<const NativeCode*>(code)->run(data, sizes, strides) == 0 ? 0 : -1;
}

void make_ready(NativeKernel& kernel) {
    const NativeCode& code = *kernel.code;
    PyObject* dtypes[NativeCode::kMaxOperands];
    for (int i = 0; i < code.n_operands; ++i) {
        PyArray_Descr* descr = PyArray_DescrFromType((*code.types)[static_cast<size_t>(i)]);
        Py_DECREF(descr);  // NumPy's own live for ever
        dtypes[i] = reinterpret_cast<PyObject*>(descr);
    }
    NativeKernel::Ready& ready = *kernel.ready;
    for (int i = 0; i < code.n_operands; ++i) ready.dtypes[i] = reinterpret_cast<PyArray_Descr*>(dtypes[i]);
    if (code.needs_gil || code.n_operands > StridedLoop::kMaxOperands) return;
    ready.loop.assign(direct_loop, kernel.code, dtypes, code.n_in, code.n_operands, code.may_raise);
    ready.has_loop = code.elementwise();
    if (!ready.has_loop) ready.has_core_loop = ready.core_loop.assign(kernel.ufunc, ready.loop);
}

PyObject* kernel_call(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
    return PyObject_Vectorcall(as_kernel(self)->ufunc, args, nargsf, kwnames);
}

PyObject* kernel_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
    static const char* keywords[] = {"code", "source", "parameters", nullptr};
    PyObject *code, *source, *parameters;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!OO!", const_cast<char**>(keywords), native_code_type, &code,
                                     &source, &PyTuple_Type, &parameters))
        return nullptr;
    return guarded(
        [&]() -> PyObject* {
            Ref ufunc = native_ufunc_new(*reinterpret_cast<NativeCode*>(code));
            Ref self = ufunc ? Ref::steal(type->tp_alloc(type, 0)) : Ref();
            if (!self) return nullptr;
            NativeKernel& kernel = *as_kernel(self.get());
            kernel.vectorcall = kernel_call;
            kernel.code = reinterpret_cast<NativeCode*>(Py_NewRef(code));
            kernel.ufunc = ufunc.release();
            kernel.source = Py_NewRef(source);
            kernel.parameters = Py_NewRef(parameters);
            kernel.ready = new NativeKernel::Ready;
            make_ready(kernel);
            return self.release();
        },
        static_cast<PyObject*>(nullptr));
}

int kernel_traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(as_kernel(self)->code);
    Py_VISIT(as_kernel(self)->ufunc);
    Py_VISIT(as_kernel(self)->source);
    return 0;
}

int kernel_clear(PyObject* self) {
    Py_CLEAR(as_kernel(self)->source);
    return 0;
}

void kernel_dealloc(PyObject* self) {
    PyObject_GC_UnTrack(self);
    NativeKernel& kernel = *as_kernel(self);
    delete kernel.ready;
    Py_XDECREF(kernel.ufunc);
    Py_XDECREF(reinterpret_cast<PyObject*>(kernel.code));
    Py_XDECREF(kernel.source);
    Py_XDECREF(kernel.parameters);
    PyTypeObject* type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyObject* kernel_repr(PyObject* self) { return PyUnicode_FromFormat("<pyop native %R>", as_kernel(self)->code); }

PyObject* kernel_reduce(PyObject* self, PyObject*) {
    PyObject* source = as_kernel(self)->source;
    if (source && PyTuple_Check(source)) return Py_NewRef(source);
    Ref pickling = Ref::steal(PyImport_ImportModule("pickle"));
    Ref error = pickling ? Ref::steal(PyObject_GetAttrString(pickling.get(), "PicklingError")) : Ref();
    if (error)
        PyErr_Format(error.get(),
                     "kernel '%s' cannot be pickled: %S; one that native_op finds by module and name can be, or name "
                     "the op itself in a module that can be imported",
                     as_kernel(self)->code->name->c_str(), source ? source : Py_None);
    return nullptr;
}

PyObject* kernel_name(PyObject* self, void*) { return PyUnicode_FromString(as_kernel(self)->code->name->c_str()); }

PyMethodDef kernel_methods[] = {
    {"__reduce__", kernel_reduce, METH_NOARGS, "Pickle where it was found."},
    {},
};

PyGetSetDef kernel_getset[] = {
    {"__name__", kernel_name, nullptr, "The name of its ufunc.", nullptr},
    {},
};

PyMemberDef kernel_members[] = {
    {"code", T_OBJECT, offsetof(NativeKernel, code), READONLY, "The NativeCode."},
    {"parameters", T_OBJECT, offsetof(NativeKernel, parameters), READONLY, "The names of its arguments."},
    {"ufunc", T_OBJECT, offsetof(NativeKernel, ufunc), READONLY, "NumPy's ufunc of it."},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(NativeKernel, vectorcall), READONLY, nullptr},
    {},
};

PyType_Slot kernel_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(kernel_new)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_repr, reinterpret_cast<void*>(kernel_repr)},
    {Py_tp_traverse, reinterpret_cast<void*>(kernel_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(kernel_clear)},
    {Py_tp_dealloc, reinterpret_cast<void*>(kernel_dealloc)},
    {Py_tp_methods, kernel_methods},
    {Py_tp_getset, kernel_getset},
    {Py_tp_members, kernel_members},
    {0, nullptr},
};

PyType_Spec kernel_spec = {
    "pyop._core.NativeKernel", sizeof(NativeKernel), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_IMMUTABLETYPE, kernel_slots};

}  // namespace

std::shared_ptr<const StridedLoop> native_loop_of(PyObject* kernel) {
    const NativeKernel::Ready& ready = *as_native_kernel(kernel).ready;
    if (!ready.has_loop) return nullptr;
    auto keeps = std::make_shared<SharedRef>(SharedRef::borrow(kernel));
    if (!*keeps) {
        PyErr_Clear();
        return nullptr;
    }
    return {std::move(keeps), &ready.loop};
}

int native_kernel_init(PyObject* module) {
    native_kernel_type = reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(module, &kernel_spec, nullptr));
    return native_kernel_type ? PyModule_AddType(module, native_kernel_type) : -1;
}

}  // namespace pyop
