// entry/ort_call.cpp: run ops and plans as operators of ONNX Runtime, on the memory of its tensors.
//
// ONNX Runtime loads a library and calls its RegisterCustomOps, which here adds what pyop.interop.onnxruntime has
// declared just before on the same thread. An operator and its domain are never dropped: nobody tells when the last
// session that knows them is gone. Registered again, they are the same.
//
//     a model is loaded           infer(context) in Python tells the shapes of outputs that follow from those of inputs
//     a session makes a kernel    make(info) in Python reads the attributes, and returns what computes
//     a kernel computes           arrays over the inputs, read-only; compute(arrays, call), which asks ort_output for
//                                 each output by its shape and writes into it: no copy of what goes in
//
// Whatever fails is a status with the words of the exception. The memory is ONNX Runtime's again when a call returns:
// arrays that are kept are looked for, and are an error.
//
// Sessions compute on threads of theirs, without the GIL. All that is static here is guarded by the GIL.
#include <cstring>
#include <string>
#include <vector>

#include "entry/default_floats.h"
#include "entry/entry.h"
#include "entry/ort_c_api.h"
#include "runtime/attach.h"
#include "runtime/errors.h"
#include "runtime/stack_array.h"

namespace pyop {

namespace {

struct OrtOp {
    ort::CustomOp head;
    std::string name, in, out;  // a byte a tensor: its type
    PyObject *make, *infer;
    ort::Api api;
};
static_assert(offsetof(OrtOp, head) == 0);

struct OrtKernel {
    ort::Api api;
    PyObject* compute;
    const OrtOp* op;
};

struct OrtCall {
    const OrtKernel& kernel;
    ort::Context* context;
    PyObject* outputs;  // list of the arrays that were handed out
};

struct OrtLibrary {
    std::string name;
    std::vector<OrtOp*> ops;
    ort::Domain* domain = nullptr;  // once it has been registered
};

PyObject* ort_words = nullptr;
// Between ort_declare and RegisterCustomOps, which the thread calls with nothing in between.
thread_local OrtLibrary* ort_declared = nullptr;

const OrtOp& op_of(const ort::CustomOp* op) { return *reinterpret_cast<const OrtOp*>(op); }

ort::Status* ort_error(ort::Api api, const char* text) { return ort::call(api, ort::kCreateStatus, ort::kFail, text); }

// For a thread that cannot attach any more. One of Python's, once it is back in the binding, would be ended there, and
// what it unwinds on the way does not allow that: the process would abort. So it stays here, as daemon threads do.
ort::Status* ort_ended(ort::Api api) {
    if (PyGILState_GetThisThreadState()) park_thread();
    return ort_error(api, "Python is shutting down");
}

// With the error set.
ort::Status* ort_raised(ort::Api api) {
    Ref exception = take_pending();
    const Ref words = Ref::steal(PyObject_CallOneArg(ort_words, exception.get()));
    const char* text = words ? PyUnicode_AsUTF8(words.get()) : nullptr;
    if (!text) PyErr_Clear();
    // ONNX Runtime hands on words alone. It is raised once more when the caller is back in Python.
    if (PyErr_GivenExceptionMatches(exception.get(), PyExc_KeyboardInterrupt)) PyErr_SetInterrupt();
    return ort_error(api, text ? text : "an op of pyop's has failed, and its error has no words");
}

int numpy_type(int type) {
    static const signed char types[] = {NPY_NOTYPE, NPY_FLOAT,  NPY_UINT8,  NPY_INT8,   NPY_UINT16,
                                        NPY_INT16,  NPY_INT32,  NPY_INT64,  NPY_NOTYPE, NPY_BOOL,
                                        NPY_HALF,   NPY_DOUBLE, NPY_UINT32, NPY_UINT64};
    return type >= 0 && type < static_cast<int>(sizeof types) ? types[type] : NPY_NOTYPE;
}

// A new array over an input, read-only. Null with the status, or with the error set and no status.
PyObject* input_array(const OrtKernel& kernel, ort::Context* context, size_t index, ort::Status** failed) {
    ort::Api api = kernel.api;
    const ort::Value* value = nullptr;
    ort::Shape* shape = nullptr;
    int type = 0;
    size_t rank = 0;
    void* data = nullptr;
    if ((*failed = ort::call(api, ort::kKernelContextGetInput, context, index, &value))) return nullptr;
    if ((*failed = ort::call(api, ort::kGetTensorTypeAndShape, value, &shape))) return nullptr;
    PyObject* made = nullptr;
    if (!(*failed = ort::call(api, ort::kGetTensorElementType, shape, &type)) &&
        !(*failed = ort::call(api, ort::kGetDimensionsCount, shape, &rank)) &&
        !(*failed = ort::call(api, ort::kGetTensorMutableData, value, &data))) {
        StackArray<int64_t, 8> sizes(rank);
        StackArray<npy_intp, 8> dims(rank);
        if (!(*failed = ort::call(api, ort::kGetDimensions, shape, sizes.data(), rank))) {
            std::copy_n(sizes.data(), rank, dims.data());
            if (type != kernel.op->in[index])
                PyErr_Format(errors.base, "ONNX Runtime hands %s another element type than it declares",
                             kernel.op->name.c_str());
            else if (rank > 64)
                PyErr_Format(PyExc_ValueError, "a tensor of %zu dimensions, and NumPy's arrays have 64", rank);
            else
                made = PyArray_New(&PyArray_Type, static_cast<int>(rank), dims.data(), numpy_type(type), nullptr,
                                   data ? data : &type, 0, 0, nullptr);
        }
    }
    reinterpret_cast<void (*)(ort::Shape*)>(api[ort::kReleaseTensorTypeAndShapeInfo])(shape);
    return made;
}

bool kept(StackRefs<16>& arrays, PyObject* outputs) {
    for (size_t k = 0; k < arrays.size(); ++k)
        if (Py_REFCNT(arrays[k]) > 1) return true;
    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(outputs); ++k)
        if (Py_REFCNT(PyList_GET_ITEM(outputs, k)) > 1) return true;
    return false;
}

ort::Status* compute_attached(const OrtKernel& kernel, ort::Context* context) {
    const size_t n = kernel.op->in.size();
    StackRefs<16> arrays(n);
    for (size_t k = 0; k < n; ++k) {
        ort::Status* failed = nullptr;
        arrays[k] = input_array(kernel, context, k, &failed);
        if (!arrays[k]) return failed ? failed : ort_raised(kernel.api);
    }
    const Ref outputs = Ref::steal(PyList_New(0));
    if (!outputs) return ort_raised(kernel.api);
    const OrtCall call{kernel, context, outputs.get()};
    {
        Ref arguments = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(n)));
        const Ref address = Ref::steal(PyLong_FromVoidPtr(const_cast<OrtCall*>(&call)));
        if (!arguments || !address) return ort_raised(kernel.api);
        for (size_t k = 0; k < n; ++k)
            PyTuple_SET_ITEM(arguments.get(), static_cast<Py_ssize_t>(k), Py_NewRef(arrays[k]));
        Ref::steal(PyObject_CallFunctionObjArgs(kernel.compute, arguments.get(), address.get(), nullptr));
    }
    ort::Status* status = PyErr_Occurred() ? ort_raised(kernel.api) : nullptr;
    // What waits for the collector of cycles is not kept.
    if (PYOP_UNLIKELY(kept(arrays, outputs.get()))) PyGC_Collect();
    if (PYOP_UNLIKELY(!status && kept(arrays, outputs.get()))) {
        PyErr_Format(errors.base,
                     "%s has kept an argument, whose memory is ONNX Runtime's: keep a copy of it, or register the op "
                     "with copy=True",
                     kernel.op->name.c_str());
        status = ort_raised(kernel.api);
    }
    return status;
}

ort::Status* ort_compute(void* given, ort::Context* context) {
    const OrtKernel& kernel = *static_cast<const OrtKernel*>(given);
    const DefaultFloats floats;
    const AttachScope scope;
    if (!scope) return ort_ended(kernel.api);
    try {
        return compute_attached(kernel, context);
    } catch (const std::bad_alloc&) {
        return ort_error(kernel.api, "there is no memory left for the call of an op");
    }
}

PyObject* address_of(const void* x) { return PyLong_FromVoidPtr(const_cast<void*>(x)); }

ort::Status* ort_make(const ort::CustomOp* op, ort::Api api, const ort::Info* info, void** kernel) {
    const AttachScope scope;
    if (!scope) return ort_ended(api);
    PyObject* compute = PyObject_CallFunction(op_of(op).make, "NN", address_of(info), address_of(api));
    if (!compute) return ort_raised(api);
    *kernel = new (std::nothrow) OrtKernel{api, compute, &op_of(op)};
    return *kernel ? nullptr : ort_error(api, "there is no memory left for a kernel");
}

// ONNX Runtime reads no status here. What is not told is found out by the call.
ort::Status* ort_infer(const ort::CustomOp* op, void* context) {
    const AttachScope scope;
    if (!scope) return nullptr;
    const Ref told =
        Ref::steal(PyObject_CallFunction(op_of(op).infer, "NN", address_of(context), address_of(op_of(op).api)));
    if (!told) {  // a KeyboardInterrupt, for errors are caught there
        PyErr_Clear();
        PyErr_SetInterrupt();
    }
    return nullptr;
}

void ort_destroy(void* given) {
    OrtKernel* kernel = static_cast<OrtKernel*>(given);
    const AttachScope scope;
    if (scope) Py_DECREF(kernel->compute);
    delete kernel;
}

size_t size_in(const ort::CustomOp* op) { return op_of(op).in.size(); }
size_t size_out(const ort::CustomOp* op) { return op_of(op).out.size(); }
int type_in(const ort::CustomOp* op, size_t k) { return op_of(op).in[k]; }
int type_out(const ort::CustomOp* op, size_t k) { return op_of(op).out[k]; }
const char* name_of_op(const ort::CustomOp* op) { return op_of(op).name.c_str(); }
const char* any_provider(const ort::CustomOp*) { return nullptr; }
int zero(const ort::CustomOp*) { return 0; }
int zero_at(const ort::CustomOp*, size_t) { return 0; }
int first_version(const ort::CustomOp*) { return 1; }
int any_version(const ort::CustomOp*) { return INT32_MAX; }

constexpr ort::CustomOp kHead{ort::kVersion, nullptr,   name_of_op,    any_provider, type_in, size_in,
                              type_out,      size_out,  nullptr,       ort_destroy,  zero_at, zero_at,
                              zero_at,       zero,      zero,          zero,         zero,    ort_make,
                              ort_compute,   ort_infer, first_version, any_version};

}  // namespace

PyObject* ort_declare(PyObject*, PyObject* arguments) {
    const char* domain;
    PyObject *operators, *words;
    if (!PyArg_ParseTuple(arguments, "sOO:_ort_declare", &domain, &operators, &words)) return nullptr;
    ort_declared = nullptr;
    if (operators == Py_None) Py_RETURN_NONE;
    if (PyLong_Check(operators)) {
        ort_declared = static_cast<OrtLibrary*>(PyLong_AsVoidPtr(operators));
        return Py_NewRef(operators);
    }
    if (!ort_words) ort_words = Py_NewRef(words);
    OrtLibrary* library = new OrtLibrary{domain, {}};
    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(operators); ++k) {
        const char *name, *in, *out;
        Py_ssize_t n_in, n_out;
        PyObject *make, *infer;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(operators, k), "sy#y#OO", &name, &in, &n_in, &out, &n_out, &make, &infer))
            return nullptr;
        OrtOp* made = new OrtOp{kHead,
                                name,
                                std::string(in, static_cast<size_t>(n_in)),
                                std::string(out, static_cast<size_t>(n_out)),
                                Py_NewRef(make),
                                Py_NewRef(infer),
                                nullptr};
        if (infer == Py_None) made->head.infer_shapes = nullptr;
        library->ops.push_back(made);
    }
    ort_declared = library;
    return PyLong_FromVoidPtr(library);
}

PyObject* ort_output(PyObject*, PyObject* arguments) {
    PyObject *address, *shape;
    PyArray_Descr* dtype;
    Py_ssize_t index;
    if (!PyArg_ParseTuple(arguments, "OnO!O!:_ort_output", &address, &index, &PyArrayDescr_Type, &dtype, &PyTuple_Type,
                          &shape))
        return nullptr;
    const OrtCall& call = *static_cast<const OrtCall*>(PyLong_AsVoidPtr(address));
    const OrtOp& op = *call.kernel.op;
    const size_t rank = static_cast<size_t>(PyTuple_GET_SIZE(shape));
    if (index < 0 || static_cast<size_t>(index) >= op.out.size() || dtype->type_num != numpy_type(op.out[index]))
        return PyErr_Format(errors.base, "result %zd of %s is of dtype %S, which its declaration does not say", index,
                            op.name.c_str(), dtype);
    StackArray<int64_t, 8> sizes(rank);
    StackArray<npy_intp, 8> dims(rank);
    for (size_t k = 0; k < rank; ++k) {
        sizes[k] = dims[k] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, static_cast<Py_ssize_t>(k)));
        if (sizes[k] < 0) {
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "a size is negative");
            return nullptr;
        }
    }
    ort::Value* value = nullptr;
    void* data = nullptr;
    if (ort::call(call.kernel.api, ort::kKernelContextGetOutput, call.context, static_cast<size_t>(index),
                  static_cast<const int64_t*>(sizes.data()), rank, &value) ||
        !value || ort::call(call.kernel.api, ort::kGetTensorMutableData, value, &data))
        return PyErr_Format(errors.base,
                            "ONNX Runtime has no memory for result %zd of %s, of shape %S: it may know another shape",
                            index, op.name.c_str(), shape);
    Py_INCREF(dtype);
    const Ref made = Ref::steal(PyArray_NewFromDescr(&PyArray_Type, dtype, static_cast<int>(rank), dims.data(), nullptr,
                                                     data ? data : &data, NPY_ARRAY_WRITEABLE, nullptr));
    if (!made || PyList_Append(call.outputs, made.get()) < 0) return nullptr;
    return Py_NewRef(made.get());
}

}  // namespace pyop

// What ONNX Runtime looks for in a library of operators.
extern "C" __attribute__((visibility("default"))) pyop::ort::Status* RegisterCustomOps(pyop::ort::Options* options,
                                                                                       const pyop::ort::ApiBase* base) {
    using namespace pyop;
    ort::Api api = base->get_api(ort::kVersion);
    if (!api) return nullptr;  // earlier than 1.17, which pyop.interop.onnxruntime refuses
    if (!ort_declared) return ort_error(api, "operators of pyop's are registered by pyop.interop.onnxruntime.register");
    OrtLibrary& library = *ort_declared;
    ort::Status* failed = nullptr;
    if (!library.domain) {
        ort::Domain* domain = nullptr;
        failed = ort::call(api, ort::kCreateCustomOpDomain, library.name.c_str(), &domain);
        for (OrtOp* op : library.ops) {
            op->api = api;
            if (!failed) failed = ort::call(api, ort::kCustomOpDomainAdd, domain, &op->head);
        }
        if (!failed) library.domain = domain;
    }
    if (!failed) failed = ort::call(api, ort::kAddCustomOpDomain, options, library.domain);
    // Sessions use it from here on, and what has failed is left.
    ort_declared = nullptr;
    return failed;
}
