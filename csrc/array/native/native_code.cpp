// array/native/native_code.cpp: define the Python type of NativeCode, and call each kind of function.
#include "array/native/native_code.h"

#include <algorithm>  // std::copy_n

#include "runtime/errors.h"
#include "runtime/ref.h"

namespace pyop {

PyTypeObject* native_code_type = nullptr;

namespace {

NativeCode* as_code(PyObject* o) { return reinterpret_cast<NativeCode*>(o); }

// An address as Python has it: an int, 0 for none.
int read_address(PyObject* number, void*& address) {
    address = PyLong_AsVoidPtr(number);
    return !address && PyErr_Occurred() ? -1 : 0;
}

int read_types(PyObject* tuple, std::vector<int>& types) {
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(tuple); ++k) {
        PyArray_Descr* descr = nullptr;
        if (PyArray_DescrConverter(PyTuple_GET_ITEM(tuple, k), &descr) != NPY_SUCCEED) return -1;
        const bool plain = (PyTypeNum_ISNUMBER(descr->type_num) || PyTypeNum_ISBOOL(descr->type_num)) &&
                           PyArray_ISNBO(descr->byteorder);
        if (plain)
            types.push_back(descr->type_num);
        else
            PyErr_Format(PyExc_TypeError,
                         "a kernel takes arrays of numbers or booleans in native byte order, not of %S", descr);
        Py_DECREF(descr);
        if (!plain) return -1;
    }
    return 0;
}

PyObject* code_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
    static const char* keywords[] = {"function", "kind",   "types", "n_in",    "cores", "name", "owner",
                                     "gil",      "raises", "data",  "message", "zeros", nullptr};
    PyObject *function, *types, *data = nullptr, *message = nullptr, *owner;
    int kind, n_in, gil, raises, zeros = 0;
    const char *cores, *name;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OiO!issOpp|OOi", const_cast<char**>(keywords), &function, &kind,
                                     &PyTuple_Type, &types, &n_in, &cores, &name, &owner, &gil, &raises, &data,
                                     &message, &zeros))
        return nullptr;
    return guarded(
        [&]() -> PyObject* {
            std::vector<int> type_numbers;
            void *address, *data_address = nullptr, *message_address = nullptr;
            if (read_address(function, address) < 0 || (data && read_address(data, data_address) < 0) ||
                (message && read_address(message, message_address) < 0) || read_types(types, type_numbers) < 0)
                return nullptr;
            if (!address) {
                PyErr_Format(PyExc_ValueError, "kernel '%s' has the address 0, where no function is", name);
                return nullptr;
            }
            const auto n = static_cast<int>(type_numbers.size());
            if (n > NativeCode::kMaxOperands || n_in < 1 || n_in >= n) {
                PyErr_Format(PyExc_ValueError,
                             "kernel '%s' has %d inputs and %d outputs: pyop takes one of each at least, and %d in all",
                             name, n_in, n - n_in, NativeCode::kMaxOperands);
                return nullptr;
            }
            ScalarLoop scalar = nullptr;
            if (kind == static_cast<int>(NativeCode::Kind::Scalar)) {
                scalar =
                    n - n_in == 1 && !*cores ? find_scalar_loop(type_numbers, static_cast<size_t>(zeros)) : nullptr;
                if (!scalar) {
                    PyErr_Format(PyExc_TypeError,
                                 "pyop cannot loop over the C function '%s': it takes functions that return one number "
                                 "and take up to 6 integers and 6 floating-point numbers (float, double); write a "
                                 "kernel over arrays (<pyop/kernel.h>) for any other",
                                 name);
                    return nullptr;
                }
            }
            PyObject* self = type->tp_alloc(type, 0);
            if (!self) return nullptr;
            NativeCode& code = *as_code(self);
            code.types = new std::vector<int>(std::move(type_numbers));
            code.name = new std::string(name);
            code.cores = new std::string(cores);
            code.function = reinterpret_cast<void (*)()>(address);
            code.data = data_address;
            code.message = reinterpret_cast<const char* (*)(int, void*)>(message_address);
            code.scalar = scalar;
            code.kind = static_cast<NativeCode::Kind>(kind);
            code.needs_gil = gil;
            code.may_raise = raises;
            code.n_in = n_in;
            code.n_operands = n;
            code.owner = Py_NewRef(owner);
            return self;
        },
        static_cast<PyObject*>(nullptr));
}

int code_traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(as_code(self)->owner);
    return 0;
}

// No tp_clear: the owner keeps the machine code, which a ufunc may still run. What refers to the code breaks a cycle.

void code_dealloc(PyObject* self) {
    PyObject_GC_UnTrack(self);
    NativeCode& code = *as_code(self);
    delete code.types;
    delete code.name;
    delete code.cores;
    Py_XDECREF(code.owner);
    PyTypeObject* type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyObject* code_repr(PyObject* self) {
    static constexpr const char* kKinds[] = {"kernel", "ufunc loop", "C function"};
    const NativeCode& code = *as_code(self);
    return PyUnicode_FromFormat("<%s '%s'>", kKinds[static_cast<int>(code.kind)], code.name->c_str());
}

PyObject* code_owner(PyObject* self, void*) { return Py_NewRef(as_code(self)->owner); }
PyObject* code_gil(PyObject* self, void*) { return PyBool_FromLong(as_code(self)->needs_gil); }
PyObject* code_address(PyObject* self, void*) {
    return PyLong_FromVoidPtr(reinterpret_cast<void*>(as_code(self)->function));
}

PyGetSetDef code_getset[] = {
    {"owner", code_owner, nullptr, "Return what keeps the machine code in memory.", nullptr},
    {"gil", code_gil, nullptr, "Return whether it is called with the GIL held.", nullptr},
    {"address", code_address, nullptr, "Return where the function is.", nullptr},
    {},
};

PyType_Slot code_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(code_new)},
    {Py_tp_repr, reinterpret_cast<void*>(code_repr)},
    {Py_tp_traverse, reinterpret_cast<void*>(code_traverse)},
    {Py_tp_dealloc, reinterpret_cast<void*>(code_dealloc)},
    {Py_tp_getset, code_getset},
    {0, nullptr},
};

PyType_Spec code_spec = {"pyop._core.NativeCode", sizeof(NativeCode), 0,
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE, code_slots};

}  // namespace

int NativeCode::run(char* const* operands, const npy_intp* sizes, const npy_intp* strides) const {
    static_assert(sizeof(npy_intp) == sizeof(intptr_t));
    switch (kind) {
        case Kind::Scalar:
            scalar(*this, operands, sizes[0], strides);
            return 0;
        case Kind::WithStatus:
            return reinterpret_cast<int (*)(char* const*, const npy_intp*, const npy_intp*, void*)>(function)(
                operands, sizes, strides, data);
        case Kind::UfuncLoop:
            break;
    }
    char* moving[kMaxOperands];  // such loops may advance their pointers
    std::copy_n(operands, n_operands, moving);
    reinterpret_cast<void (*)(char**, const npy_intp*, const npy_intp*, void*)>(function)(moving, sizes, strides, data);
    return 0;
}

void native_call_failed(const NativeCode& code, int status) {
    if (PyErr_Occurred()) return;
    const char* words = code.message ? code.message(status, code.data) : nullptr;
    PyErr_Format(PyExc_RuntimeError, "kernel '%s' failed with status %d%s%s", code.name->c_str(), status,
                 words ? ": " : "", words ? printable(words).c_str() : "");
}

int native_code_init(PyObject* module) {
    native_code_type = reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(module, &code_spec, nullptr));
    return native_code_type ? PyModule_AddType(module, native_code_type) : -1;
}

}  // namespace pyop
