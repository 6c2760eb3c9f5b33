// plan/steps/computed_key.cpp: rebuilds indices without what is computed in them, and reads that in a run.
#include "plan/steps/computed_key.h"

#include "plan/steps/call_arguments.h"

namespace pyop {

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
    if (!dtype || dtype->type_num != NPY_INTP || r.g.spec(e).ndim != 0) return Ref();
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
        if (PyArray_NDIM(a) != 0 || PyArray_TYPE(a) != NPY_INTP || !PyArray_ISBEHAVED_RO(a)) return false;
        *next++ = *static_cast<const npy_intp*>(PyArray_DATA(a));
    }
    return true;
}

}  // namespace pyop
