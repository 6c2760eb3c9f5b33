// graph/value_spec.cpp: intern specs and symbolic sizes, and convert them to and from their Python objects.
#include "graph/value_spec.h"

#include <string_view>

#include "runtime/errors.h"
#include "runtime/items.h"
#include "runtime/up_calls.h"

namespace pyop {

namespace {

// Process-wide and never freed: the distinct symbolic sizes ever used.
PyObject* dim_ids = nullptr;    // dict terms of a Dim -> index
PyObject* dim_items = nullptr;  // list of Dim

size_t mix_spec(size_t seed, size_t value) { return (seed ^ value) * 0x9E3779B97F4A7C15ull; }

}  // namespace

uint32_t SpecTable::intern(ValueSpec spec) {
    if (spec.ndim > 0) spec.form = Form::Array;
    size_t hash = mix_spec(static_cast<size_t>(spec.ndim) * 4 + static_cast<size_t>(spec.form),
                           reinterpret_cast<size_t>(spec.dtype.get()));
    for (int64_t d : spec.dims) hash = mix_spec(hash, static_cast<size_t>(d));
    if (spec.ndim < 0 && !spec.dtype && spec.form == Form::Unknown && !spec.text) return 0;
    const BriefLock lock(mutex_);
    auto [it, end] = by_hash_.equal_range(hash);
    for (; it != end; ++it)
        if (specs_[it->second] == spec) return it->second;
    const auto id = static_cast<uint32_t>(specs_.size());
    specs_.push_back(std::move(spec));
    by_hash_.emplace(hash, id);
    return id;
}

int value_spec_init() {
    dim_ids = PyDict_New();
    dim_items = PyList_New(0);
    return dim_ids && dim_items ? 0 : -1;
}

bool is_dim(PyObject* object) {
    return PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(up_calls.dim_class));
}

PyObject* size_new(int64_t size) {
    if (size >= 0) return PyLong_FromLongLong(size);
    if (size == kUnknownSize) Py_RETURN_NONE;
    return item_of(dim_items, kUnknownSize - 1 - size).release();
}

int64_t size_of(PyObject* object) {
    if (PyLong_Check(object)) {
        const int64_t size = PyLong_AsLongLong(object);
        if (size < 0 && !PyErr_Occurred()) PyErr_Format(PyExc_ValueError, "a size cannot be negative: %R", object);
        return size < 0 ? kUnknownSize : size;
    }
    if (!is_dim(object)) return kUnknownSize;
    // By its terms: the hash of a Dim is refused to a function under trace, in whose frame this runs.
    Ref terms = Ref::steal(PyObject_GetAttrString(object, "_terms"));
    if (!terms) return kUnknownSize;
    const Ref known = item_of_dict(dim_ids, terms.get());
    if (known) return kUnknownSize - 1 - PyLong_AsLongLong(known.get());
    if (PyErr_Occurred()) return kUnknownSize;
    const ObjectLock lock(dim_items);  // whoever comes second finds it known
    const Ref meanwhile = kWithoutGil ? item_of_dict(dim_ids, terms.get()) : Ref();
    if (meanwhile) return kUnknownSize - 1 - PyLong_AsLongLong(meanwhile.get());
    const Py_ssize_t index = PyList_GET_SIZE(dim_items);
    Ref number = Ref::steal(PyLong_FromSsize_t(index));
    if (!number || PyDict_SetItem(dim_ids, terms.get(), number.get()) < 0 || PyList_Append(dim_items, object) < 0)
        return kUnknownSize;
    return kUnknownSize - 1 - index;
}

PyObject* shape_new(const ValueSpec& spec) {
    if (spec.ndim < 0) Py_RETURN_NONE;
    Ref shape = Ref::steal(PyTuple_New(spec.ndim));
    for (int d = 0; shape && d < spec.ndim; ++d) {
        PyObject* size = size_new(spec.dims[static_cast<size_t>(d)]);
        if (!size) return nullptr;
        PyTuple_SET_ITEM(shape.get(), d, size);
    }
    return shape.release();
}

PyObject* spec_new(const ValueSpec& spec) {
    Ref shape = Ref::steal(shape_new(spec));
    if (!shape) return nullptr;
    return PyObject_CallFunctionObjArgs(up_calls.spec_class, spec.dtype ? spec.dtype.get() : Py_None, shape.get(),
                                        nullptr);
}

int spec_from_python(PyObject* spec, ValueSpec& out) {
    Ref dtype = Ref::steal(PyObject_GetAttr(spec, up_attributes.dtype));
    Ref shape = dtype ? Ref::steal(PyObject_GetAttr(spec, up_attributes.shape)) : Ref();
    if (!shape) return -1;
    out = {};
    if (PyArray_DescrCheck(dtype.get())) {
        auto* descr = reinterpret_cast<PyArray_Descr*>(dtype.get());
        // `str` without a length says no more than that it is text: not one dtype.
        if (PyDataType_ISSTRING(descr) && PyDataType_ELSIZE(descr) == 0)
            out.text = descr->kind;
        else
            out.dtype = std::move(dtype);
    }
    if (!PyTuple_Check(shape.get())) return 0;
    for (Py_ssize_t d = 0; d < PyTuple_GET_SIZE(shape.get()); ++d) {
        PyObject* item = PyTuple_GET_ITEM(shape.get(), d);
        if (item == Py_Ellipsis || std::string_view(Py_TYPE(item)->tp_name).ends_with("Variadic")) {
            out.dims.clear();
            return 0;
        }
        const int64_t size = size_of(item);
        if (size == kUnknownSize && PyErr_Occurred()) return -1;
        out.dims.push_back(size);
    }
    out.ndim = static_cast<int>(out.dims.size());
    return 0;
}

ValueSpec spec_of_array(PyArrayObject* a) {
    ValueSpec spec;
    spec.dtype = Ref::borrow(reinterpret_cast<PyObject*>(PyArray_DESCR(a)));
    spec.ndim = PyArray_NDIM(a);
    spec.form = Form::Array;
    spec.dims.assign(PyArray_DIMS(a), PyArray_DIMS(a) + PyArray_NDIM(a));
    return spec;
}

}  // namespace pyop
