// array/foreign/device.cpp: ask an array for its device, by DLPack or by its library.
#include "array/foreign/device.h"

#include <string>
#include <string_view>

#include "array/foreign/dlpack.h"
#include "array/foreign/managed.h"
#include "runtime/attribute.h"
#include "runtime/errors.h"
#include "runtime/forced_exit.h"
#include "runtime/ref.h"

namespace pyop {

namespace {

constexpr int64_t kNotSaid = -1;

// DLPack's kind of device, or kNotSaid.
int64_t dlpack_device(PyObject* value) {
    const Ref device = Ref::steal(survive([&] { return PyObject_CallMethod(value, "__dlpack_device__", nullptr); }));
    int64_t kind = kNotSaid;
    if (device && PyTuple_Check(device.get()) && PyTuple_GET_SIZE(device.get()) == 2) {
        const Ref number = Ref::steal(PyNumber_Long(PyTuple_GET_ITEM(device.get(), 0)));  // torch has an enum
        kind = number ? PyLong_AsLongLong(number.get()) : kNotSaid;
    }
    if (PyErr_Occurred()) PyErr_Clear();
    return kind;
}

// What the library calls the device: "cuda:0", "meta"; empty if it does not say.
std::string own_name(PyObject* value) {
    const Ref device = Ref::steal(PyObject_GetAttrString(value, "device"));
    const Ref text = Ref::steal(device ? PyObject_Str(device.get()) : nullptr);
    std::string name = text ? printable(text.get()) : "";
    PyErr_Clear();
    return name;
}

bool is_cpu(std::string_view name) {
    return name.empty() || name.find("cpu") != name.npos || name.find("CPU") != name.npos;
}

// Empty if it is on the CPU, or nothing is said.
std::string elsewhere(PyObject* value) {
    const int64_t kind = dlpack_device(value);
    if (is_host_memory(kind)) return "";
    const std::string name = own_name(value);
    if (kind == kNotSaid) return is_cpu(name) ? "" : name;
    return is_cpu(name) ? device_name(kind) : name;
}

}  // namespace

bool is_on_device(PyObject* value) {
    return survive([&] { return !elsewhere(value).empty(); });
}

const char* device_remedy(PyObject* value) {
    const std::string name = own_name(value);
    if (name.rfind("meta", 0) == 0) return "a tensor that has data, which one of the device `meta` has not";
    if (has_attribute<"cpu">(value)) return "x.cpu()";
    const Ref module = Ref::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(value)), "__module__"));
    if (!module) PyErr_Clear();
    if (module && PyUnicode_Check(module.get()) && printable(module.get()).rfind("jax", 0) == 0)
        return "jax.device_get(x)";
    return has_attribute<"get">(value) ? "x.get()"
                                       : "pyop.from_dlpack(x, device=\"cpu\"), if its library copies it there";
}

bool explain_device(PyObject* value) {
    std::string where;
    {
        const SavedError keep;
        where = elsewhere(value);
    }
    if (where.empty()) return false;
    std::string remedy;
    {
        const SavedError keep;
        remedy = device_remedy(value);
    }
    const Ref message = Ref::steal(PyUnicode_FromFormat(
        "it is on device %s, and pyop computes on the CPU: pass %s, or declare the op with device=\"any\", which hands "
        "it to the function as it is",
        where.c_str(), remedy.c_str()));
    if (message) raise_from_pending(PyExc_BufferError, message.get());
    return true;
}

int check_on_cpu(PyObject* value) {
    if (!is_on_device(value)) return 0;
    explain_device(value);
    return -1;
}

}  // namespace pyop
