// array/foreign/element_types.cpp: map the dtypes of DLPack, those of ml_dtypes among them, and name its devices.
#include <array>

#include "array/foreign/managed.h"
#include "runtime/errors.h"
#include "runtime/lazy.h"

namespace pyop {

namespace {

constexpr unsigned kind(unsigned code, unsigned bits) { return code << 8 | bits; }

int number_type(DLDataType type) {
    switch (kind(type.code, type.bits)) {
        case kind(kDLFloat, 64):
            return NPY_FLOAT64;
        case kind(kDLFloat, 32):
            return NPY_FLOAT32;
        case kind(kDLFloat, 16):
            return NPY_FLOAT16;
        case kind(kDLInt, 8):
            return NPY_INT8;
        case kind(kDLInt, 16):
            return NPY_INT16;
        case kind(kDLInt, 32):
            return NPY_INT32;
        case kind(kDLInt, 64):
            return NPY_INT64;
        case kind(kDLUInt, 8):
            return NPY_UINT8;
        case kind(kDLUInt, 16):
            return NPY_UINT16;
        case kind(kDLUInt, 32):
            return NPY_UINT32;
        case kind(kDLUInt, 64):
            return NPY_UINT64;
        case kind(kDLComplex, 64):
            return NPY_COMPLEX64;
        case kind(kDLComplex, 128):
            return NPY_COMPLEX128;
        case kind(kDLBool, 8):
            return NPY_BOOL;
        default:
            break;
    }
    if (type.code == kDLFloat && type.bits == 8 * sizeof(npy_longdouble)) return NPY_LONGDOUBLE;
    return NPY_NOTYPE;
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
