// array/foreign/dlpack.cpp: ask an object for a DLPack tensor, by C functions of its type or by its method.
//
// Threads: attached only. Exporters are found by any thread, kept in a row that only grows, and never freed.
#include "array/foreign/dlpack.h"

#include <atomic>
#include <new>  // std::nothrow
#include <string>
#include <string_view>

#include "array/foreign/device.h"
#include "array/foreign/managed.h"
#include "array/memory/copied.h"
#include "array/protocol/containers.h"
#include "runtime/attribute.h"
#include "runtime/errors.h"
#include "runtime/forced_exit.h"
#include "runtime/lazy.h"
#include "runtime/ref.h"

namespace pyop {

namespace {

constexpr size_t kMostExporters = 16;
std::atomic<const Exporter*> exporters[kMostExporters];

// The table of the version that we know, which may be an earlier one of the library's.
const DLPackExchangeAPI* table_of(PyObject* capsule) {
    if (!PyCapsule_IsValid(capsule, "dlpack_exchange_api")) return nullptr;
    auto* header = static_cast<const DLPackExchangeAPIHeader*>(PyCapsule_GetPointer(capsule, "dlpack_exchange_api"));
    while (header && header->version.major > DLPACK_MAJOR_VERSION) header = header->prev_api;
    if (!header || header->version.major != DLPACK_MAJOR_VERSION) return nullptr;
    auto* api = reinterpret_cast<const DLPackExchangeAPI*>(header);
    return api->managed_tensor_from_py_object_no_sync ? api : nullptr;
}

// Of an attribute that is computed by C. Called directly it takes half of the time of a look-up by name.
PyGetSetDef* getter_of(PyObject* descriptor) {
    if (!descriptor || !Py_IS_TYPE(descriptor, &PyGetSetDescr_Type)) return nullptr;
    return reinterpret_cast<PyGetSetDescrObject*>(descriptor)->d_getset;
}

PYOP_COLD const Exporter* find_exporter(PyTypeObject* type) {
    auto* const itself = reinterpret_cast<PyObject*>(type);
    const Ref capsule = attribute_if_any<"__dlpack_c_exchange_api__">(itself);
    const DLPackExchangeAPI* api = capsule ? table_of(capsule.get()) : nullptr;
    if (!api) return nullptr;
    auto* made = new (std::nothrow) Exporter{
        reinterpret_cast<PyTypeObject*>(Py_NewRef(itself)), api, getter_of(of_type_if_any<"requires_grad">(type)),
        attribute_if_any<"is_neg">(itself).release(), attribute_if_any<"is_conj">(itself).release()};
    if (!made) return nullptr;
    for (std::atomic<const Exporter*>& slot : exporters) {
        const Exporter* known = nullptr;
        if (slot.compare_exchange_strong(known, made, std::memory_order_acq_rel)) return made;
        if (known->type == type) break;
    }
    // Another thread was as quick, or there are too many: then the method __dlpack__ serves.
    Py_DECREF(made->type);
    Py_XDECREF(made->is_neg);
    Py_XDECREF(made->is_conj);
    delete made;
    return nullptr;
}

// What torch says of the memory of a tensor; `method` is of its type. 1, 0 or -1.
int says(PyObject* method, PyObject* value) {
    if (!method) return 0;
    PyObject* given[] = {value};
    const Ref answer = Ref::steal(vectorcall_new(method, given, 1));
    return answer ? PyObject_IsTrue(answer.get()) : -1;
}

PYOP_COLD PyObject* is_lazy(const char* how, const char* remedy) {
    PyErr_Format(PyExc_BufferError, "its memory holds %s of its elements: pass %s", how, remedy);
    return nullptr;
}

// Whether a tensor of torch keeps no more than the elements that are not zero.
bool is_sparse(PyObject* value) {
    const SavedError keep;
    const Ref dense = Ref::steal(PyObject_GetAttrString(value, "to_dense"));
    const Ref layout = Ref::steal(dense ? PyObject_GetAttrString(value, "layout") : nullptr);
    const Ref name = Ref::steal(layout ? PyObject_Str(layout.get()) : nullptr);
    const bool found = name && printable(name.get()).find("sparse") != std::string::npos;
    PyErr_Clear();
    return found;
}

// With the library's own error pending, if it has set one.
PYOP_COLD void explain_no_tensor(PyObject* value) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_BufferError, "its library gives no DLPack tensor and no reason");
    if (!PyErr_ExceptionMatches(PyExc_Exception) || explain_device(value)) return;
    const Ref why = pending_text();
    const char* whole = why ? PyUnicode_AsUTF8(why.get()) : nullptr;
    std::string_view first = whole ? whole : "?";
    first = first.substr(0, first.find('\n'));  // torch adds a stack of C++ frames
    const std::string text = printable(first);
    const bool sparse = is_sparse(value);
    const Ref message =
        Ref::steal(PyUnicode_FromFormat("%s%s", sparse ? "it is sparse: pass x.to_dense(); " : "", text.c_str()));
    if (message) raise_from_pending(PyExc_BufferError, message.get());
}

// The capsule that __dlpack__ returns. Older libraries take no keywords, others not all of them.
PyObject* capsule_new(PyObject* value, MayCopy copy, bool to_cpu) {
    static constinit Lazy version;
    PyObject* max_version =
        version.get([] { return Py_BuildValue("((ii))", DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION); });
    if (!max_version) return nullptr;
    const Ref method = Ref::steal(PyObject_GetAttrString(value, "__dlpack__"));
    const Ref nothing = Ref::steal(PyTuple_New(0)), keywords = Ref::steal(PyDict_New());
    if (!method || !nothing || !keywords) return nullptr;
    if (PyDict_SetItemString(keywords.get(), "max_version", PyTuple_GET_ITEM(max_version, 0)) < 0) return nullptr;
    if (copy == MayCopy::Never && PyDict_SetItemString(keywords.get(), "copy", Py_False) < 0) return nullptr;
    if (to_cpu) {
        const Ref cpu = Ref::steal(Py_BuildValue("(ii)", kDLCPU, 0));
        if (!cpu || PyDict_SetItemString(keywords.get(), "dl_device", cpu.get()) < 0) return nullptr;
    }
    PyObject* capsule = survive([&] { return PyObject_Call(method.get(), nothing.get(), keywords.get()); });
    if (capsule || to_cpu || !PyErr_ExceptionMatches(PyExc_TypeError)) return capsule;
    PyErr_Clear();
    return survive([&] { return PyObject_CallNoArgs(method.get()); });
}

template <typename Tensor>
Tensor* taken(PyObject* capsule, const char* name, const char* used) {
    if (!PyCapsule_IsValid(capsule, name)) return nullptr;
    auto* tensor = static_cast<Tensor*>(PyCapsule_GetPointer(capsule, name));
    return PyCapsule_SetName(capsule, used) == 0 ? tensor : nullptr;
}

}  // namespace

const Exporter* exporter_of(PyObject* value) {
    PyTypeObject* type = Py_TYPE(value);
    for (const std::atomic<const Exporter*>& slot : exporters) {
        const Exporter* known = slot.load(std::memory_order_acquire);
        if (!known) break;
        if (known->type == type) return known;
    }
    return nullptr;
}

const Exporter* exporter_found(PyObject* value) {
    const Exporter* known = exporter_of(value);
    return known || !type_has<"__dlpack_c_exchange_api__">(value) ? known : find_exporter(Py_TYPE(value));
}

DLManagedTensorVersioned* exported_tensor(PyObject* value, const Exporter& exporter) {
    if (const PyGetSetDef* const grad = exporter.requires_grad; PYOP_LIKELY(grad != nullptr)) {
        const Ref answer = Ref::steal(grad->get(value, grad->closure));
        if (!answer) return nullptr;
        if (PYOP_UNLIKELY(answer.get() != Py_False || in_dual_level()) && check_nothing_lost(value) < 0) return nullptr;
    } else if (check_nothing_lost(value) < 0) {
        return nullptr;
    }
    DLManagedTensorVersioned* tensor = nullptr;
    const int status = survive([&] { return exporter.api->managed_tensor_from_py_object_no_sync(value, &tensor); });
    if (PYOP_UNLIKELY(status != 0 || !tensor)) return explain_no_tensor(value), nullptr;
    const DLTensor& t = tensor->dl_tensor;
    const bool known = tensor->version.major == DLPACK_MAJOR_VERSION,
               host = known && is_host_memory(t.device.device_type);
    if (PYOP_LIKELY(host)) {
        if (t.dtype.code != kDLFloat && t.dtype.code != kDLComplex && t.dtype.code != kDLBfloat) return tensor;
        const int neg = says(exporter.is_neg, value);
        const int conj = neg == 0 && t.dtype.code == kDLComplex ? says(exporter.is_conj, value) : 0;
        if (PYOP_LIKELY(neg == 0 && conj == 0)) return tensor;
        if (neg > 0) is_lazy("the negatives", "x.resolve_neg()");
        if (conj > 0) is_lazy("the conjugates", "x.resolve_conj()");
        const Ref given_back = Ref::steal(tensor_owner_new(tensor));
        return nullptr;
    }
    const Ref never = Ref::steal(managed_array_steal(tensor));  // has the words for it
    if (known) explain_device(value);
    return nullptr;
}

PyObject* exported_array_new(PyObject* value, const Exporter& exporter, bool read_only) {
    DLManagedTensorVersioned* tensor = exported_tensor(value, exporter);
    return tensor ? managed_array_steal(tensor, MayCopy::IfNeeded, read_only) : nullptr;
}

bool offers_dlpack(PyObject* value) { return type_has<"__dlpack__">(value); }

PyObject* dlpack_array_new(PyObject* value, MayCopy copy, bool to_cpu) {
    if (!to_cpu && check_on_cpu(value) < 0) return nullptr;
    const Ref capsule = Ref::steal(capsule_new(value, copy, to_cpu));
    if (!capsule) return nullptr;
    if (auto* tensor = taken<DLManagedTensorVersioned>(capsule.get(), "dltensor_versioned", "used_dltensor_versioned"))
        return managed_array_steal(tensor, copy);
    if (auto* tensor = taken<DLManagedTensor>(capsule.get(), "dltensor", "used_dltensor"))
        return managed_array_steal(tensor);
    if (PyErr_Occurred()) return nullptr;
    PyErr_Format(PyExc_BufferError,
                 "its __dlpack__ returns %s, which is no capsule named \"dltensor_versioned\" or "
                 "\"dltensor\" (or one that was used already)",
                 type_name(capsule.get()).c_str());
    return nullptr;
}

PyObject* from_dlpack_new(PyObject* value, MayCopy copy, bool to_cpu) {
    Ref array;
    if (is_exact_array(value)) {
        array = Ref::steal(PyArray_View(as_array(value), nullptr, nullptr));
    } else {
        if (check_nothing_lost(value) < 0) return nullptr;
        const Exporter* exporter = to_cpu ? nullptr : exporter_found(value);
        if (exporter)
            array = Ref::steal(exported_array_new(value, *exporter));
        else if (offers_dlpack(value))
            array = Ref::steal(dlpack_array_new(value, copy, to_cpu));
        else
            PyErr_Format(
                PyExc_TypeError,
                "expected an array with __dlpack__, got %s: np.asarray(x) makes an array of it, if anything does",
                type_name(value).c_str());
    }
    if (!array || copy != MayCopy::Always) return array.release();
    return counted(PyArray_NewCopy(as_array(array.get()), NPY_KEEPORDER));
}

}  // namespace pyop
