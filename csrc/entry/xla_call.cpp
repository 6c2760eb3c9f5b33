// entry/xla_call.cpp: let XLA, and so what JAX compiles, call plans on the memory of XLA's buffers.
//
// One handler serves all plans. A call names its plan by the attributes `plan`, the address of an Entry, and `process`,
// a number that this process has chosen: an executable that was kept in a file has another, and is refused.
// pyop.interop.jax_native keeps every plan that it has named so, since nobody tells when XLA drops an executable.
//
//     a tape          run where the numbers lie, without Python and its lock
//     else            the GIL, arrays over the buffers, the plan with out= of the buffers of the results: no copy
//
// Functions of Python are called in the same way, by the attribute `function`: the address of a tuple of it, the dtypes
// of the arguments and those of the results, which is kept, too. JAX's own callbacks put their arguments on a device
// first, and wait for that on the threads that are to do it: several at once wait for ever. These are given copies.
//
// XLA calls on threads of its own or on that which has called JAX, which has given up the GIL before. So to take it
// waits for nobody who waits for XLA with the GIL held. Only plans without a step of Python come here, which keep none
// of what they are given: the memory is XLA's again when the call returns. That is looked at, all the same.
#include <cstring>

#include "entry/blas_calls.h"
#include "entry/default_floats.h"
#include "entry/entry.h"
#include "entry/xla_c_api.h"
#include "profile/scope.h"
#include "runtime/attach.h"
#include "runtime/errors.h"
#include "runtime/stack_array.h"

namespace pyop {

namespace {

// Set once, before the handler is handed to XLA. The function takes an exception and whether it may be kept, and
// returns the words for XLA. It is never dropped: calls may go on while Python ends.
int64_t xla_process = 0;
PyObject* xla_words = nullptr;

struct XlaCall {
    const Entry& e;
    const void* const* in;
    void* const* out;
    XLA_FFI_CallFrame* frame;
};

XLA_FFI_Error* xla_error(XLA_FFI_CallFrame* frame, const char* text, XLA_FFI_Error_Code code) {
    XLA_FFI_Error_Create_Args args{sizeof args, nullptr, text, code};
    return frame->api->error_create(&args);
}

int type_of_xla(XLA_FFI_DataType type) {
    switch (type) {
        case XLA_FFI_DataType_PRED:
            return NPY_BOOL;
        case XLA_FFI_DataType_S8:
            return NPY_INT8;
        case XLA_FFI_DataType_S16:
            return NPY_INT16;
        case XLA_FFI_DataType_S32:
            return NPY_INT32;
        case XLA_FFI_DataType_S64:
            return NPY_INT64;
        case XLA_FFI_DataType_U8:
            return NPY_UINT8;
        case XLA_FFI_DataType_U16:
            return NPY_UINT16;
        case XLA_FFI_DataType_U32:
            return NPY_UINT32;
        case XLA_FFI_DataType_U64:
            return NPY_UINT64;
        case XLA_FFI_DataType_F16:
            return NPY_HALF;
        case XLA_FFI_DataType_F32:
            return NPY_FLOAT;
        case XLA_FFI_DataType_F64:
            return NPY_DOUBLE;
        case XLA_FFI_DataType_C64:
            return NPY_CFLOAT;
        case XLA_FFI_DataType_C128:
            return NPY_CDOUBLE;
        default:
            return NPY_NOTYPE;
    }
}

bool is_buffer_of(const XLA_FFI_Buffer& b, const EntryArray& a) {
    return PyArray_EquivTypenums(type_of_xla(b.dtype), a.dtype->type_num) && b.rank == a.told.ndim &&
           std::equal(b.dims, b.dims + b.rank, a.shape.begin());
}

// The number of an attribute, 0 if there is none.
int64_t number_of(const XLA_FFI_Attrs& attrs, std::string_view name) {
    for (int64_t k = 0; k < attrs.size; ++k) {
        if (attrs.types[k] != XLA_FFI_AttrType_SCALAR ||
            std::string_view(attrs.names[k]->ptr, attrs.names[k]->len) != name)
            continue;
        const auto& scalar = *static_cast<const XLA_FFI_Scalar*>(attrs.attrs[k]);
        if (scalar.dtype == XLA_FFI_DataType_S64) return *static_cast<const int64_t*>(scalar.value);
    }
    return 0;
}

PyObject* array_over(const EntryArray& a, const void* data, int flags) {
    Py_INCREF(a.dtype);
    return PyArray_NewFromDescr(&PyArray_Type, a.dtype, a.told.ndim, a.dims.data(), nullptr, const_cast<void*>(data),
                                flags, nullptr);
}

bool any_kept(StackRefs<16>& arrays) {
    for (size_t k = 0; k < arrays.size(); ++k)
        if (arrays[k] && Py_REFCNT(arrays[k]) > 1) return true;
    return false;
}

// With the error set.
XLA_FFI_Error* xla_raised(XLA_FFI_CallFrame* frame, StackRefs<16>& arrays) {
    Ref exception = take_pending();
    // Frames of a traceback may hold arrays over memory that ends with this call.
    if (any_kept(arrays)) PyException_SetTraceback(exception.get(), Py_None);
    const Ref words =
        Ref::steal(PyObject_CallFunction(xla_words, "OO", exception.get(), any_kept(arrays) ? Py_False : Py_True));
    const char* text = words ? PyUnicode_AsUTF8(words.get()) : nullptr;
    if (!text) PyErr_Clear();
    return xla_error(frame, text ? text : "a plan has failed, and its error has no words", XLA_FFI_Error_Code_INTERNAL);
}

// Attached threads.
XLA_FFI_Error* call_on_buffers(const XlaCall& call) {
    const Entry& e = call.e;
    const size_t n_in = e.inputs.size(), n_out = e.outputs.size();
    StackRefs<16> arrays(n_in + n_out);
    bool made = true;
    for (size_t k = 0; made && k < n_in; ++k) made = (arrays[k] = array_over(e.inputs[k], call.in[k], 0)) != nullptr;
    for (size_t k = 0; made && k < n_out; ++k)
        made = (arrays[n_in + k] = array_over(e.outputs[k], call.out[k], NPY_ARRAY_WRITEABLE)) != nullptr;
    {
        Ref names = made ? Ref::steal(Py_BuildValue("(s)", "out")) : Ref();
        Ref targets = names ? Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(n_out))) : Ref();
        if (targets) {
            StackArray<PyObject*, 16> arguments(n_in + 1);
            std::copy_n(arrays.data(), n_in, arguments.data());
            arguments[n_in] = targets.get();
            for (size_t k = 0; k < n_out; ++k)
                PyTuple_SET_ITEM(targets.get(), static_cast<Py_ssize_t>(k), Py_NewRef(arrays[n_in + k]));
            Ref::steal(plan_vectorcall(e.plan, arguments.data(), n_in, names.get()));
        }
    }
    if (!PyErr_Occurred() && any_kept(arrays))
        PyErr_Format(errors.base, "a step of %R has kept memory that is JAX's: wrap it as an op", e.plan);
    return PyErr_Occurred() ? xla_raised(call.frame, arrays) : nullptr;
}

// A buffer as an array: a copy of an argument, the memory itself of a result. Null with the error set.
PyObject* array_of_buffer(const void* given, PyObject* dtype, bool result) {
    const auto& b = *static_cast<const XLA_FFI_Buffer*>(given);
    StackArray<npy_intp, 8> dims(static_cast<size_t>(b.rank));
    std::copy_n(b.dims, b.rank, dims.data());
    Py_INCREF(dtype);
    PyObject* made = PyArray_NewFromDescr(&PyArray_Type, reinterpret_cast<PyArray_Descr*>(dtype),
                                          static_cast<int>(b.rank), dims.data(), nullptr, result ? b.data : nullptr,
                                          result ? NPY_ARRAY_WRITEABLE : 0, nullptr);
    if (made && !result && PyArray_NBYTES(as_array(made)) > 0)
        std::memcpy(PyArray_DATA(as_array(made)), b.data, static_cast<size_t>(PyArray_NBYTES(as_array(made))));
    return made;
}

// function(arguments, results), which writes into the results. Attached threads.
XLA_FFI_Error* call_function(XLA_FFI_CallFrame* frame, PyObject* told) {
    PyObject *in = PyTuple_GET_ITEM(told, 1), *out = PyTuple_GET_ITEM(told, 2);
    const Py_ssize_t n_in = PyTuple_GET_SIZE(in), n_out = PyTuple_GET_SIZE(out);
    if (n_in != frame->args.size || n_out != frame->rets.size)
        return xla_error(frame, "XLA hands a function of another number of arrays", XLA_FFI_Error_Code_INTERNAL);
    StackRefs<16> results(static_cast<size_t>(n_out));
    Ref arguments = Ref::steal(PyTuple_New(n_in)), targets = Ref::steal(PyTuple_New(n_out));
    bool made = arguments && targets;
    for (Py_ssize_t k = 0; made && k < n_in; ++k) {
        PyObject* array = array_of_buffer(frame->args.args[k], PyTuple_GET_ITEM(in, k), false);
        made = array != nullptr;
        PyTuple_SET_ITEM(arguments.get(), k, array);
    }
    for (Py_ssize_t k = 0; made && k < n_out; ++k) {
        PyObject* array = array_of_buffer(frame->rets.rets[k], PyTuple_GET_ITEM(out, k), true);
        made = array != nullptr;
        PyTuple_SET_ITEM(targets.get(), k, array);
        results[static_cast<size_t>(k)] = Py_XNewRef(array);
    }
    if (made)
        Ref::steal(PyObject_CallFunctionObjArgs(PyTuple_GET_ITEM(told, 0), arguments.get(), targets.get(), nullptr));
    targets = Ref();
    return PyErr_Occurred() ? xla_raised(frame, results) : nullptr;
}

XLA_FFI_Error* xla_run(XLA_FFI_CallFrame* frame) {
    if (number_of(frame->attrs, "process") != xla_process)
        return xla_error(
            frame,
            "this program calls a plan of pyop's in the process that compiled it, which is another: compile it anew",
            XLA_FFI_Error_Code_FAILED_PRECONDITION);
    if (const int64_t function = number_of(frame->attrs, "function")) {
        const AttachScope scope;
        if (!scope) return xla_error(frame, "Python is shutting down", XLA_FFI_Error_Code_UNAVAILABLE);
        return call_function(frame, reinterpret_cast<PyObject*>(static_cast<uintptr_t>(function)));
    }
    const Entry& e = *reinterpret_cast<const Entry*>(static_cast<uintptr_t>(number_of(frame->attrs, "plan")));
    const size_t n_in = e.inputs.size(), n_out = e.outputs.size();
    bool fits = static_cast<size_t>(frame->args.size) == n_in && static_cast<size_t>(frame->rets.size) == n_out;
    StackArray<const void*, 16> in(n_in);
    StackArray<void*, 16> out(n_out);
    for (size_t k = 0; fits && k < n_in; ++k) {
        const auto& buffer = *static_cast<const XLA_FFI_Buffer*>(frame->args.args[k]);
        fits = is_buffer_of(buffer, e.inputs[k]);
        in[k] = buffer.data;
    }
    for (size_t k = 0; fits && k < n_out; ++k) {
        const auto& buffer = *static_cast<const XLA_FFI_Buffer*>(frame->rets.rets[k]);
        fits = is_buffer_of(buffer, e.outputs[k]);
        out[k] = buffer.data;
    }
    if (!fits)
        return xla_error(frame, "XLA hands a plan of pyop's buffers of another dtype or shape than it was compiled for",
                         XLA_FFI_Error_Code_INVALID_ARGUMENT);
    int done = 0;
    if (e.native && !profiling()) {
        const BlasCall blas(e.tape.calls_blas());
        if (PYOP_LIKELY(blas)) done = e.tape.run(in.data(), out.data());
        if (PYOP_LIKELY(done > 0)) return nullptr;
    }
    const AttachScope scope;
    if (!scope)
        return xla_error(frame, "the plan needs Python, which is shutting down", XLA_FFI_Error_Code_UNAVAILABLE);
    XLA_FFI_Error* error = nullptr;
    // A handler of a signal has raised, if the tape has failed.
    if (done == 0) error = guarded([&] { return call_on_buffers({e, in.data(), out.data(), frame}); }, error);
    if (PYOP_UNLIKELY(PyErr_Occurred())) {
        StackRefs<16> nothing(0);
        error = xla_raised(frame, nothing);
    }
    return error;
}

XLA_FFI_Error* xla_handler(XLA_FFI_CallFrame* frame) {
    if (frame->extension_start && frame->extension_start->type == XLA_FFI_Extension_Metadata) {
        XLA_FFI_Metadata& told = *reinterpret_cast<XLA_FFI_Metadata_Extension*>(frame->extension_start)->metadata;
        told.api_version.major_version = XLA_FFI_API_MAJOR;
        told.api_version.minor_version = XLA_FFI_API_MINOR;
        return nullptr;
    }
    if (frame->stage != XLA_FFI_ExecutionStage_EXECUTE) return nullptr;
    const DefaultFloats floats;
    try {
        return xla_run(frame);
    } catch (const std::bad_alloc&) {
        return xla_error(frame, "there is no memory left for the call of a plan",
                         XLA_FFI_Error_Code_RESOURCE_EXHAUSTED);
    }
}

}  // namespace

PyObject* call_with_subnormals(PyObject*, PyObject* const* arguments, Py_ssize_t n) {
    if (n != 2) return PyErr_Format(PyExc_TypeError, "_with_subnormals(function, argument) takes two arguments");
    const DefaultFloats floats;
    return PyObject_CallOneArg(arguments[0], arguments[1]);
}

PyObject* xla_target(PyObject*, PyObject* arguments) {
    long long process;
    PyObject* words;
    if (!PyArg_ParseTuple(arguments, "LO:_xla_target", &process, &words)) return nullptr;
    if (!xla_words) {
        xla_process = process;
        xla_words = Py_NewRef(words);
    }
    return PyCapsule_New(reinterpret_cast<void*>(xla_handler), "xla._CUSTOM_CALL_TARGET", nullptr);
}

}  // namespace pyop
