// array/foreign/arrow.cpp: read a schema and an array of Arrow's C data interface.
#include "array/foreign/arrow.h"

#include <cstring>
#include <memory>  // std::unique_ptr
#include <new>     // std::nothrow
#include <string>

#include "array/foreign/managed.h"
#include "array/memory/copied.h"
#include "runtime/attribute.h"
#include "runtime/errors.h"
#include "runtime/forced_exit.h"
#include "runtime/ref.h"

namespace pyop {

namespace {

// The ABI of https://arrow.apache.org/docs/format/CDataInterface.html.
struct ArrowSchema {
    const char* format;
    const char* name;
    const char* metadata;
    int64_t flags;
    int64_t n_children;
    ArrowSchema** children;
    ArrowSchema* dictionary;
    void (*release)(ArrowSchema*);
    void* private_data;
};
struct ArrowArray {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void** buffers;
    ArrowArray** children;
    ArrowArray* dictionary;
    void (*release)(ArrowArray*);
    void* private_data;
};

void release_array(void* memory) {
    auto* array = static_cast<ArrowArray*>(memory);
    if (array->release) array->release(array);
    delete array;
}

// A dtype by the letters of a format: numbers, and those that count in int64.
struct Format {
    const char* letters;
    const char* dtype;
};
constexpr Format kFormats[] = {
    {"c", "i1"},      {"C", "u1"},       {"s", "i2"},       {"S", "u2"},        {"i", "i4"},        {"I", "u4"},
    {"l", "i8"},      {"L", "u8"},       {"e", "f2"},       {"f", "f4"},        {"g", "f8"},        {"b", "?"},
    {"tdD", "M8[D]"}, {"tdm", "M8[ms]"}, {"tss:", "M8[s]"}, {"tsm:", "M8[ms]"}, {"tsu:", "M8[us]"}, {"tsn:", "M8[ns]"},
    {"tDs", "m8[s]"}, {"tDm", "m8[ms]"}, {"tDu", "m8[us]"}, {"tDn", "m8[ns]"},
};

// Null with no error set for a format that is none of these.
PyArray_Descr* descr_of_new(const char* format) {
    for (const Format& known : kFormats) {
        if (std::strcmp(known.letters, format) != 0) continue;
        const Ref text = Ref::steal(PyUnicode_FromString(known.dtype));
        PyArray_Descr* descr = nullptr;
        if (text) PyArray_DescrConverter(text.get(), &descr);
        return descr;
    }
    return nullptr;
}

bool bit(const void* bits, int64_t i) { return static_cast<const uint8_t*>(bits)[i >> 3] >> (i & 7) & 1; }

int64_t count_nulls(const ArrowArray& a) {
    if (a.null_count >= 0) return a.null_count;
    if (a.n_buffers < 1 || !a.buffers || !a.buffers[0]) return 0;
    int64_t n = 0;
    for (int64_t i = 0; i < a.length; ++i) n += !bit(a.buffers[0], a.offset + i);
    return n;
}

PYOP_COLD PyObject* refuse_nulls(int64_t n) {
    PyErr_Format(PyExc_BufferError,
                 "it has %lld null%s, and an array of numbers has no null: fill them, by x.fill_null(value), or drop "
                 "them, by x.drop_null()",
                 static_cast<long long>(n), n == 1 ? "" : "s");
    return nullptr;
}

PYOP_COLD PyObject* malformed(const char* what) {
    PyErr_Format(PyExc_BufferError, "its __arrow_c_array__ gives no array of Arrow: %s", what);
    return nullptr;
}

// Truths, one a byte.
PyObject* unpacked_new(const ArrowArray& a, const void* bits) {
    npy_intp length = a.length;
    PyObject* array = counted(PyArray_SimpleNew(1, &length, NPY_BOOL));
    if (!array) return nullptr;
    auto* out = static_cast<npy_bool*>(PyArray_DATA(as_array(array)));
    for (npy_intp i = 0; i < length; ++i) out[i] = bit(bits, a.offset + i);
    return array;
}

// The days of an int32 array as datetime64[D], which counts in int64.
PyObject* days_new(PyObject* counts, PyArray_Descr* descr) {
    const Ref wide = Ref::steal(PyArray_Cast(as_array(counts), NPY_INT64));
    return wide ? PyArray_View(as_array(wide.get()), descr, nullptr) : (Py_DECREF(descr), nullptr);
}

PyObject* read_new(const ArrowSchema& schema, std::unique_ptr<ArrowArray, void (*)(ArrowArray*)> given) {
    const ArrowArray& a = *given;
    if (!schema.format) return malformed("no format");
    if (a.length < 0 || a.offset < 0 || a.length > INT64_MAX - a.offset) return malformed("a length that cannot be");
    const int64_t nulls = count_nulls(a);
    if (std::strcmp(schema.format, "n") == 0) return refuse_nulls(a.length);
    if (nulls != 0) return refuse_nulls(nulls);
    PyArray_Descr* descr = schema.dictionary ? nullptr : descr_of_new(schema.format);
    if (!descr) return nullptr;
    Ref dtype = Ref::steal(reinterpret_cast<PyObject*>(descr));
    if (a.n_buffers != 2 || !a.buffers) return malformed("a number of buffers that is not two");
    const void* values = a.buffers[1];
    if (!values && a.length > 0) return malformed("no values");
    if (descr->type_num == NPY_BOOL) return unpacked_new(a, values);
    const bool days = std::strcmp(schema.format, "tdD") == 0;
    const npy_intp itemsize = days ? 4 : PyDataType_ELSIZE(descr);
    ForeignLayout layout;
    const int64_t length = a.length;
    int64_t bytes;
    if (__builtin_mul_overflow(a.offset, itemsize, &bytes)) return malformed("an offset that cannot be");
    layout.data = values ? const_cast<char*>(static_cast<const char*>(values)) + bytes : nullptr;
    layout.ndim = 1;
    layout.shape = &length;
    PyObject* owner = foreign_owner_new(given.release(), release_array);
    if (!owner) return nullptr;
    if (!days) return foreign_array_steal(layout, reinterpret_cast<PyArray_Descr*>(dtype.release()), owner);
    const Ref counts = Ref::steal(foreign_array_steal(layout, PyArray_DescrFromType(NPY_INT32), owner));
    return counts ? days_new(counts.get(), reinterpret_cast<PyArray_Descr*>(dtype.release())) : nullptr;
}

template <typename T>
T* in_capsule(PyObject* o, const char* name) {
    return PyCapsule_IsValid(o, name) ? static_cast<T*>(PyCapsule_GetPointer(o, name)) : nullptr;
}

}  // namespace

bool offers_arrow(PyObject* value) { return type_has<"__arrow_c_array__">(value); }

PyObject* arrow_array_new(PyObject* value) {
    const Ref both = Ref::steal(survive([&] { return PyObject_CallMethod(value, "__arrow_c_array__", nullptr); }));
    if (!both) return nullptr;
    if (!PyTuple_Check(both.get()) || PyTuple_GET_SIZE(both.get()) != 2) return malformed("no pair of capsules");
    auto* schema = in_capsule<ArrowSchema>(PyTuple_GET_ITEM(both.get(), 0), "arrow_schema");
    auto* array = in_capsule<ArrowArray>(PyTuple_GET_ITEM(both.get(), 1), "arrow_array");
    if (!schema || !array || !schema->release || !array->release) return malformed("capsules of other names, or used");
    // The structure is moved out of the capsule, which then releases nothing.
    std::unique_ptr<ArrowArray, void (*)(ArrowArray*)> moved(new (std::nothrow) ArrowArray(*array),
                                                             [](ArrowArray* a) { release_array(a); });
    if (!moved) return PyErr_NoMemory();
    array->release = nullptr;
    return read_new(*schema, std::move(moved));
}

}  // namespace pyop
