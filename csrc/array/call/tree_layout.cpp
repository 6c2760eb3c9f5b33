// array/call/tree_layout.cpp: read a pattern of nested arguments, once, into the items that a call fills.
#include "array/call/tree_layout.h"

#include <unordered_map>

#include "runtime/errors.h"
#include "runtime/lazy.h"
#include "runtime/up_calls.h"

namespace pyop {

namespace {

PyObject* mark_repr(PyObject*) { return PyUnicode_FromString("<array>"); }

using Layout = TreeCallObject::Layout;

class Reader {
  public:
    Reader(PyObject* places, Layout& layout) : layout_(layout) {
        layout.n_arrays = static_cast<uint32_t>(PyTuple_GET_SIZE(places));
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(places); ++k)
            place_of_[PyTuple_GET_ITEM(places, k)] = static_cast<uint32_t>(k);
        seen_.resize(layout.n_arrays);
    }

    int read_carriers(PyObject* carriers) {
        layout_.carrier_names = Ref::steal(PyTuple_New(PyDict_GET_SIZE(carriers)));
        if (!layout_.carrier_names) return -1;
        PyObject *name, *where, *place;
        Py_ssize_t at = 0;
        int axis;
        while (PyDict_Next(carriers, &at, &name, &where)) {
            const size_t k = layout_.carriers.size();
            PyTuple_SET_ITEM(layout_.carrier_names.get(), static_cast<Py_ssize_t>(k), Py_NewRef(name));
            if (!PyArg_ParseTuple(where, "Oi", &place, &axis)) return -1;
            const auto it = place_of_.find(place);
            if (it == place_of_.end()) {
                PyErr_SetString(PyExc_ValueError, "a size is taken from one of the arrays");
                return -1;
            }
            seen_[it->second] = true;
            layout_.carriers.push_back({it->second, axis});
        }
        return 0;
    }

    int read(PyObject* o, TreeItem& item) {
        if (Py_EnterRecursiveCall(" while reading nested arguments")) return -1;
        const int status = read_here(o, item);
        Py_LeaveRecursiveCall();
        return status;
    }

    bool all_seen() const {
        for (const bool seen : seen_)
            if (!seen) return false;
        return true;
    }

  private:
    int read_here(PyObject* o, TreeItem& item) {
        item.object = Ref::borrow(o);
        if (const auto it = place_of_.find(o); it != place_of_.end()) {
            item.kind = TreeItem::Array;
            item.has_arrays = true;
            item.index = it->second;
            seen_[item.index] = true;
            return 0;
        }
        if (PyTuple_CheckExact(o) || PyList_CheckExact(o)) {
            const TreeItem::Kind kind = PyTuple_CheckExact(o) ? TreeItem::Tuple : TreeItem::List;
            const Ref items = Ref::steal(PySequence_Tuple(o));  // a list may change meanwhile
            return items ? read_items(kind, PySequence_Fast_ITEMS(items.get()), PyTuple_GET_SIZE(items.get()), item)
                         : -1;
        }
        if (PyDict_CheckExact(o)) {
            item.keys = Ref::steal(PySequence_Tuple(o));
            Ref values = item.keys ? Ref::steal(PyDict_Values(o)) : Ref();
            return values ? read_items(TreeItem::Dict, PySequence_Fast_ITEMS(values.get()),
                                       PyList_GET_SIZE(values.get()), item)
                          : -1;
        }
        if (PySlice_Check(o)) {
            auto* slice = reinterpret_cast<PySliceObject*>(o);
            PyObject* parts[] = {slice->start, slice->stop, slice->step};
            return read_items(TreeItem::Slice, parts, 3, item);
        }
        item.kind = TreeItem::Static;
        if (layout_.carriers.empty() || reinterpret_cast<PyObject*>(Py_TYPE(o)) != up_calls.dim_class) return 0;
        item.kind = TreeItem::Size;
        item.index = static_cast<uint32_t>(layout_.sizes.size());
        TreeCallObject::SizeUse& use = layout_.sizes.emplace_back();
        use.dim = item.object;
        use.is_poly = read_size_poly(o, layout_.carrier_names.get(), use.poly);
        return 0;
    }

    // What holds neither arrays nor sizes is passed as it is.
    int read_items(TreeItem::Kind kind, PyObject* const* objects, Py_ssize_t n, TreeItem& item) {
        const size_t sizes = layout_.sizes.size();
        item.items.resize(static_cast<size_t>(n));
        for (Py_ssize_t i = 0; i < n; ++i) {
            TreeItem& part = item.items[static_cast<size_t>(i)];
            if (read(objects[i], part) < 0) return -1;
            item.has_arrays |= part.has_arrays;
        }
        item.kind = kind;
        // A list or dict is made anew each time: what is called may change it.
        if (!item.has_arrays && sizes == layout_.sizes.size() && (kind == TreeItem::Tuple || kind == TreeItem::Slice)) {
            for (const TreeItem& part : item.items)
                if (part.kind != TreeItem::Static) return 0;
            item.kind = TreeItem::Static;
            item.items.clear();
        }
        return 0;
    }

    Layout& layout_;
    std::unordered_map<PyObject*, uint32_t> place_of_;
    std::vector<bool> seen_;
};

}  // namespace

Ref array_mark() {
    static constinit Lazy mark;
    static PyType_Slot slots[] = {{Py_tp_repr, reinterpret_cast<void*>(mark_repr)}, {0, nullptr}};
    static PyType_Spec spec = {"pyop._core._Array", sizeof(PyObject), 0, Py_TPFLAGS_DEFAULT, slots};
    return Ref::borrow(mark.get([] {
        const Ref type = Ref::steal(PyType_FromSpec(&spec));
        return type ? PyObject_CallNoArgs(type.get()) : nullptr;
    }));
}

int lay_out_tree(PyObject* pattern, PyObject* places, PyObject* carriers, Layout& layout) {
    PyObject *args, *kwargs;
    if (!PyArg_ParseTuple(pattern, "O!O!", &PyTuple_Type, &args, &PyDict_Type, &kwargs)) return -1;
    Reader reader(places, layout);
    if (reader.read_carriers(carriers) < 0) return -1;
    layout.positional.resize(static_cast<size_t>(PyTuple_GET_SIZE(args)));
    for (size_t i = 0; i < layout.positional.size(); ++i)
        if (reader.read(PyTuple_GET_ITEM(args, static_cast<Py_ssize_t>(i)), layout.positional[i]) < 0) return -1;
    if (PyDict_GET_SIZE(kwargs)) {
        layout.kwnames = Ref::steal(PySequence_Tuple(kwargs));
        if (!layout.kwnames) return -1;
        PyObject *name, *value;
        Py_ssize_t at = 0;
        while (PyDict_Next(kwargs, &at, &name, &value))
            if (reader.read(value, layout.keywords.emplace_back()) < 0) return -1;
    }
    layout.opaque = !reader.all_seen();
    return 0;
}

}  // namespace pyop
