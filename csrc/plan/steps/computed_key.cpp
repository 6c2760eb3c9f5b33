// plan/steps/computed_key.cpp: rebuild indices without their computed parts, and read those in a run.
#include "plan/steps/computed_key.h"

#include <cstdint>
#include <type_traits>

#include "plan/steps/call_arguments.h"

namespace pyop {

namespace {

template <typename T>
bool integer_as(PyArrayObject* a, npy_intp& value) {
    const T here = *static_cast<const T*>(PyArray_DATA(a));
    value = static_cast<npy_intp>(here);
    return sizeof(T) < sizeof(npy_intp) || std::is_signed_v<T> || value >= 0;
}

bool integer_of(PyArrayObject* a, npy_intp& value) {
    const int type = PyArray_TYPE(a);
    if (type == NPY_INTP) return integer_as<npy_intp>(a, value);
    if (!PyTypeNum_ISINTEGER(type)) return false;
    const bool is_signed = PyTypeNum_ISSIGNED(type);
    switch (PyArray_ITEMSIZE(a)) {
        case 1:
            return is_signed ? integer_as<int8_t>(a, value) : integer_as<uint8_t>(a, value);
        case 2:
            return is_signed ? integer_as<int16_t>(a, value) : integer_as<uint16_t>(a, value);
        case 4:
            return is_signed ? integer_as<int32_t>(a, value) : integer_as<uint32_t>(a, value);
        case 8:
            return is_signed ? integer_as<int64_t>(a, value) : integer_as<uint64_t>(a, value);
        default:
            return false;
    }
}

}  // namespace

ComputedKey::ComputedKey(const TreeCallObject::Layout* sizes) : own_(sizes) {
    if (!own_) return;
    for (const TreeCallObject::SizeUse& use : own_->sizes) {
        TreeCallObject::SizeUse& copy = all_.sizes.emplace_back();
        copy.dim = Ref::borrow(use.dim.get());
        copy.is_poly = use.is_poly;
    }
}

PyObject* ComputedKey::object(const Rewrite& r, const PyNode& node, const NodeArgument& argument) {
    if (!argument.computed()) return argument.value;
    Ref made = argument.nested ? object_of(r, node, *argument.nested)
                               : integer(r, node, static_cast<uint32_t>(argument.input));
    if (!made) {
        PyErr_Clear();
        return nullptr;
    }
    return objects_.emplace_back(std::move(made)).get();
}

Ref ComputedKey::integer(const Rewrite& r, const PyNode& node, uint32_t input) {
    const Edge e = node.inputs()[input];
    PyArray_Descr* dtype = builtin_dtype(r.g, e);
    if (!dtype || !PyTypeNum_ISINTEGER(dtype->type_num) || r.g.spec(e).ndim != 0) return Ref();
    // An object like no other.
    Ref mark = Ref::steal(PyList_New(0));
    if (!mark) return mark;
    TreeCallObject::SizeUse& use = all_.sizes.emplace_back();
    use.dim = Ref::borrow(mark.get());
    use.is_poly = true;
    inputs_.push_back(input);
    return mark;
}

Ref ComputedKey::object_of(const Rewrite& r, const PyNode& node, const TreeItem& item) {
    if (item.kind == TreeItem::Array) return integer(r, node, item.index);
    if (!item.has_arrays) return Ref::borrow(item.object.get());
    if (item.kind != TreeItem::Tuple && item.kind != TreeItem::Slice) return Ref();
    Ref made = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(item.items.size())));
    for (size_t k = 0; made && k < item.items.size(); ++k) {
        Ref part = object_of(r, node, item.items[k]);
        if (!part) return Ref();
        PyTuple_SET_ITEM(made.get(), static_cast<Py_ssize_t>(k), part.release());
    }
    if (!made || item.kind == TreeItem::Tuple) return made;
    if (item.items.size() != 3) return Ref();
    return Ref::steal(
        PySlice_New(PyTuple_GET_ITEM(made.get(), 0), PyTuple_GET_ITEM(made.get(), 1), PyTuple_GET_ITEM(made.get(), 2)));
}

bool ComputedKey::read(PyObject* const* inputs, npy_intp* numbers) const {
    if (own_ && !own_->sizes.empty() && !tree_sizes(*own_, inputs, numbers)) return false;
    npy_intp* next = numbers + (count() - inputs_.size());
    for (const uint32_t k : inputs_) {
        if (!is_exact_array(inputs[k])) return false;
        PyArrayObject* a = as_array(inputs[k]);
        if (PyArray_NDIM(a) != 0 || !PyArray_ISBEHAVED_RO(a) || !integer_of(a, *next++)) return false;
    }
    return true;
}

Ref spelled_key(PyObject* key) {
    if (!PyTuple_CheckExact(key)) return Ref();
    Ref made = Ref::steal(PyTuple_New(PyTuple_GET_SIZE(key)));
    for (Py_ssize_t k = 0; made && k < PyTuple_GET_SIZE(key); ++k) {
        PyObject* item = PyTuple_GET_ITEM(key, k);
        if (!PyTuple_CheckExact(item)) return Ref();
        const auto of = [&](Py_ssize_t i) { return PyTuple_GET_ITEM(item, i); };
        PyObject* part = PyTuple_GET_SIZE(item) == 3   ? PySlice_New(of(0), of(1), of(2))
                         : PyTuple_GET_SIZE(item) == 1 ? Py_NewRef(of(0))
                                                       : nullptr;
        if (!part) {
            PyErr_Clear();
            return Ref();
        }
        PyTuple_SET_ITEM(made.get(), k, part);
    }
    if (!made) PyErr_Clear();
    return made;
}

}  // namespace pyop
