// array/foreign/element_types.cpp: the dtypes of DLPack, those of ml_dtypes among them, and the names of its devices.
#include <array>

#include "array/foreign/managed.h"
#include "runtime/errors.h"
#include "runtime/lazy.h"

namespace pyop {

namespace {

int number_of_bits(int bits, std::initializer_list<int> types) {
    for (const int type : types) {
        PyArray_Descr* descr = PyArray_DescrFromType(type);  // one of NumPy's own, which live for ever
        const bool found = PyDataType_ELSIZE(descr) * 8 == bits;
        Py_DECREF(descr);
        if (found) return type;
    }
    return NPY_NOTYPE;
}

int number_type(DLDataType type) {
    switch (type.code) {
        case kDLInt:
            return number_of_bits(type.bits, {NPY_INT8, NPY_INT16, NPY_INT32, NPY_INT64});
        case kDLUInt:
            return number_of_bits(type.bits, {NPY_UINT8, NPY_UINT16, NPY_UINT32, NPY_UINT64});
        case kDLFloat:
            return number_of_bits(type.bits, {NPY_FLOAT16, NPY_FLOAT32, NPY_FLOAT64, NPY_LONGDOUBLE});
        case kDLComplex:
            return number_of_bits(type.bits, {NPY_COMPLEX64, NPY_COMPLEX128, NPY_CLONGDOUBLE});
        case kDLBool:
            return number_of_bits(type.bits, {NPY_BOOL});
        default:
            return NPY_NOTYPE;
    }
}

// Of one element a byte or more: those of fewer bits lie packed in DLPack and apart in ml_dtypes.
struct SmallFloat {
    uint8_t code, bits;
    const char* name;
};
constexpr std::array<SmallFloat, 9> kSmallFloats = {{
    {kDLBfloat, 16, "bfloat16"},
    {kDLFloat8_e3m4, 8, "float8_e3m4"},
    {kDLFloat8_e4m3, 8, "float8_e4m3"},
    {kDLFloat8_e4m3b11fnuz, 8, "float8_e4m3b11fnuz"},
    {kDLFloat8_e4m3fn, 8, "float8_e4m3fn"},
    {kDLFloat8_e4m3fnuz, 8, "float8_e4m3fnuz"},
    {kDLFloat8_e5m2, 8, "float8_e5m2"},
    {kDLFloat8_e5m2fnuz, 8, "float8_e5m2fnuz"},
    {kDLFloat8_e8m0fnu, 8, "float8_e8m0fnu"},
}};

PyArray_Descr* small_float_new(size_t k) {
    static constinit std::array<Lazy, kSmallFloats.size()> dtypes;
    PyObject* dtype = dtypes[k].get([k]() -> PyObject* {
        PyObject* module = PyImport_ImportModule("ml_dtypes");
        if (!module) {
            if (PyErr_ExceptionMatches(PyExc_ImportError))
                PyErr_Format(PyExc_BufferError,
                             "its elements are %s, which NumPy has with the package ml_dtypes: "
                             "install it, or pass another dtype",
                             kSmallFloats[k].name);
            return nullptr;
        }
        PyObject* type = PyObject_GetAttrString(module, kSmallFloats[k].name);
        Py_DECREF(module);
        PyArray_Descr* descr = nullptr;
        if (type) PyArray_DescrConverter(type, &descr);
        Py_XDECREF(type);
        return reinterpret_cast<PyObject*>(descr);
    });
    return reinterpret_cast<PyArray_Descr*>(Py_XNewRef(dtype));
}

}  // namespace

PyArray_Descr* dlpack_descr_new(DLDataType type) {
    if (PYOP_LIKELY(type.lanes == 1)) {
        const int number = number_type(type);
        if (PYOP_LIKELY(number != NPY_NOTYPE)) return PyArray_DescrFromType(number);
        for (size_t k = 0; k < kSmallFloats.size(); ++k)
            if (kSmallFloats[k].code == type.code && kSmallFloats[k].bits == type.bits) return small_float_new(k);
    }
    PyErr_Format(PyExc_BufferError,
                 "its elements are of DLPack's type code %d with %d bits and %d lanes, which no dtype of NumPy is",
                 static_cast<int>(type.code), static_cast<int>(type.bits), static_cast<int>(type.lanes));
    return nullptr;
}

bool is_host_memory(int64_t device_type) {
    return device_type == kDLCPU || device_type == kDLCUDAHost || device_type == kDLROCMHost ||
           device_type == kDLCUDAManaged;
}

const char* device_name(int64_t device_type) {
    static constexpr const char* names[] = {
        "?",    "cpu",       "cuda",      "cuda_host",    "opencl", "?",      "?",       "vulkan", "metal", "vpi",
        "rocm", "rocm_host", "extension", "cuda_managed", "oneapi", "webgpu", "hexagon", "maia",   "trn"};
    return device_type >= 0 && device_type < static_cast<int64_t>(std::size(names)) ? names[device_type] : "?";
}

}  // namespace pyop
