// array/call/tree_call.cpp: define the type CallOnTree, whose vectorcall fills the layout with the arrays at hand.
#include "array/call/tree_call.h"

#include <memory>

#include "array/call/tree_layout.h"
#include "runtime/errors.h"
#include "runtime/stack_array.h"
#include "runtime/up_calls.h"

namespace pyop {

PyTypeObject* tree_call_type = nullptr;

namespace {

using Layout = TreeCallObject::Layout;

TreeCallObject* call_of(PyObject* self) { return reinterpret_cast<TreeCallObject*>(self); }

// One run: the arrays and numbers that are put into the arguments.
struct Filling {
    PyObject* const* arrays;
    const npy_intp* sizes;
};

PyObject* item_new(const TreeItem& item, const Filling& with);

PyObject* dict_new(const TreeItem& item, const Filling& with) {
    Ref dict = Ref::steal(PyDict_New());
    for (size_t i = 0; dict && i < item.items.size(); ++i) {
        Ref value = Ref::steal(item_new(item.items[i], with));
        PyObject* key = PyTuple_GET_ITEM(item.keys.get(), static_cast<Py_ssize_t>(i));
        if (!value || PyDict_SetItem(dict.get(), key, value.get()) < 0) return nullptr;
    }
    return dict.release();
}

PyObject* slice_new(const TreeItem& item, const Filling& with) {
    Ref start = Ref::steal(item_new(item.items[0], with)), stop = Ref::steal(item_new(item.items[1], with));
    Ref step = Ref::steal(item_new(item.items[2], with));
    return start && stop && step ? PySlice_New(start.get(), stop.get(), step.get()) : nullptr;
}

// New reference, or null with the error set.
PyObject* item_new(const TreeItem& item, const Filling& with) {
    switch (item.kind) {
        case TreeItem::Static:
            return item.object.new_ref();
        case TreeItem::Array:
            return Py_NewRef(with.arrays[item.index]);
        case TreeItem::Size:
            return PyLong_FromSsize_t(with.sizes[item.index]);
        case TreeItem::Dict:
            return dict_new(item, with);
        case TreeItem::Slice:
            return slice_new(item, with);
        case TreeItem::Tuple:
        case TreeItem::List:
            break;
    }
    const auto n = static_cast<Py_ssize_t>(item.items.size());
    PyObject* made = item.kind == TreeItem::Tuple ? PyTuple_New(n) : PyList_New(n);
    for (Py_ssize_t i = 0; made && i < n; ++i) {
        PyObject* value = item_new(item.items[static_cast<size_t>(i)], with);
        if (!value)
            Py_CLEAR(made);
        else if (item.kind == TreeItem::Tuple)
            PyTuple_SET_ITEM(made, i, value);
        else
            PyList_SET_ITEM(made, i, value);
    }
    return made;
}

// By the TreeDef, for what the layout does not describe.
PyObject* call_opaque(const TreeCallObject& call, PyObject* const* arrays) {
    const Py_ssize_t n = PyTuple_GET_SIZE(call.leaves);
    Ref leaves = Ref::steal(PyList_New(n)), mark = array_mark();
    for (Py_ssize_t i = 0; leaves && i < n; ++i) {
        PyObject* leaf = PyTuple_GET_ITEM(call.leaves, i);
        PyList_SET_ITEM(leaves.get(), i, Py_NewRef(leaf == mark.get() ? *arrays++ : leaf));
    }
    Ref both = leaves ? Ref::steal(survive([&] {
        return PyObject_CallMethodOneArg(call.tree, up_attributes.unflatten, leaves.get());
    }))
                      : Ref();
    PyObject *args, *kwargs;
    if (!both || !PyArg_ParseTuple(both.get(), "O!O!", &PyTuple_Type, &args, &PyDict_Type, &kwargs)) return nullptr;
    return survive([&] { return PyObject_Call(call.fn, args, kwargs); });
}

PyObject* call_filled(const Layout& layout, PyObject* callee, const Filling& with) {
    const size_t n_positional = layout.positional.size();
    StackRefs<8> given(n_positional + layout.keywords.size() + 1);
    PyObject** argv = given.data() + 1;  // one in front, so that bound methods can put their self there
    for (size_t i = 0; i < n_positional; ++i)
        if (!(argv[i] = item_new(layout.positional[i], with))) return nullptr;
    for (size_t i = 0; i < layout.keywords.size(); ++i)
        if (!(argv[n_positional + i] = item_new(layout.keywords[i], with))) return nullptr;
    return vectorcall_new(callee, argv, n_positional | PY_VECTORCALL_ARGUMENTS_OFFSET, layout.kwnames.get());
}

PyObject* call_tree(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
    const TreeCallObject& call = *call_of(self);
    const Layout& layout = *call.layout;
    const Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    if (n != static_cast<Py_ssize_t>(layout.n_arrays) || (kwnames && PyTuple_GET_SIZE(kwnames))) {
        PyErr_Format(PyExc_TypeError, "%R takes %u arrays by position, but got %zd", self, layout.n_arrays, n);
        return nullptr;
    }
    StackArray<npy_intp, 8> sizes(layout.sizes.size());
    if (layout.opaque || !tree_sizes(layout, args, sizes.data())) return call_opaque(call, args);
    return call_filled(layout, call.callee, {args, sizes.data()});
}

PyObject* tree_vectorcall(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
    return guarded([&] { return call_tree(self, args, nargsf, kwnames); }, static_cast<PyObject*>(nullptr));
}

PyObject* make(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
    static const char* keywords[] = {"fn", "tree", "leaves", "key", "callee", "pattern", "places", "carriers", nullptr};
    PyObject *fn, *tree, *leaves, *key, *callee, *pattern, *places, *carriers;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO!OOO!O!O!", const_cast<char**>(keywords), &fn, &tree,
                                     &PyTuple_Type, &leaves, &key, &callee, &PyTuple_Type, &pattern, &PyTuple_Type,
                                     &places, &PyDict_Type, &carriers))
        return nullptr;
    auto layout = std::make_unique<Layout>();
    if (lay_out_tree(pattern, places, carriers, *layout) < 0) return nullptr;
    PyObject* self = type->tp_alloc(type, 0);
    if (!self) return nullptr;
    TreeCallObject& call = *call_of(self);
    call.vectorcall = tree_vectorcall;
    call.fn = Py_NewRef(fn);
    call.tree = Py_NewRef(tree);
    call.leaves = Py_NewRef(leaves);
    call.key = Py_NewRef(key);
    call.callee = Py_NewRef(callee);
    call.layout = layout.release();
    return self;
}

PyObject* tree_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
    return guarded([&] { return make(type, args, kwargs); }, static_cast<PyObject*>(nullptr));
}

int visit_items(const std::vector<TreeItem>& items, visitproc visit, void* arg) {
    for (const TreeItem& item : items) {
        Py_VISIT(item.object.get());
        Py_VISIT(item.keys.get());
        if (const int r = visit_items(item.items, visit, arg)) return r;
    }
    return 0;
}

int tree_traverse(PyObject* self, visitproc visit, void* arg) {
    TreeCallObject& call = *call_of(self);
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(call.fn);
    Py_VISIT(call.tree);
    Py_VISIT(call.leaves);
    Py_VISIT(call.key);
    Py_VISIT(call.callee);
    if (!call.layout) return 0;
    if (const int r = visit_items(call.layout->positional, visit, arg)) return r;
    return visit_items(call.layout->keywords, visit, arg);
}

// Only the function can close a cycle that nobody else breaks: the rest was there before.
int tree_clear(PyObject* self) {
    Py_SETREF(call_of(self)->fn, Py_NewRef(Py_None));
    Py_SETREF(call_of(self)->callee, Py_NewRef(Py_None));
    return 0;
}

void tree_dealloc(PyObject* self) {
    PyObject_GC_UnTrack(self);
    TreeCallObject& call = *call_of(self);
    delete std::exchange(call.layout, nullptr);
    Py_CLEAR(call.fn);
    Py_CLEAR(call.tree);
    Py_CLEAR(call.leaves);
    Py_CLEAR(call.key);
    Py_CLEAR(call.callee);
    PyTypeObject* type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyObject* tree_repr(PyObject* self) { return PyUnicode_FromFormat("CallOnTree(%R)", call_of(self)->fn); }
Py_hash_t tree_hash(PyObject* self) { return PyObject_Hash(call_of(self)->key); }
PyObject* tree_compare(PyObject* self, PyObject* other, int op) {
    if (!is_tree_call(other) || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
    return PyObject_RichCompare(call_of(self)->key, call_of(other)->key, op);
}

PyMemberDef tree_call_members[] = {
    {"fn", T_OBJECT, offsetof(TreeCallObject, fn), READONLY, "The function that is called."},
    {"tree", T_OBJECT, offsetof(TreeCallObject, tree), READONLY, "The structure of its (args, kwargs)."},
    {"leaves", T_OBJECT, offsetof(TreeCallObject, leaves), READONLY, "Static objects, and ARRAY where arrays stand."},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(TreeCallObject, vectorcall), READONLY, nullptr},
    {},
};

PyType_Slot tree_call_slots[] = {
    {Py_tp_doc,
     const_cast<char*>("fn(*args, **kwargs), where (args, kwargs) is rebuilt from arrays and static leaves.\n\n"
                       "Made by `pyop.declare.rebuild.call_on_tree`. Compares by what it does.")},
    {Py_tp_new, reinterpret_cast<void*>(tree_new)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_repr, reinterpret_cast<void*>(tree_repr)},
    {Py_tp_hash, reinterpret_cast<void*>(tree_hash)},
    {Py_tp_richcompare, reinterpret_cast<void*>(tree_compare)},
    {Py_tp_traverse, reinterpret_cast<void*>(tree_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(tree_clear)},
    {Py_tp_dealloc, reinterpret_cast<void*>(tree_dealloc)},
    {Py_tp_members, tree_call_members},
    {0, nullptr},
};
PyType_Spec tree_call_spec = {"pyop._core.CallOnTree", sizeof(TreeCallObject), 0,
                              Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, tree_call_slots};

}  // namespace

PyObject* tree_call_as(const TreeCallObject& call, PyObject* callee, PyObject* const* arrays) {
    StackArray<npy_intp, 8> sizes(call.layout->sizes.size());
    if (tree_sizes(*call.layout, arrays, sizes.data()))
        return call_filled(*call.layout, callee, {arrays, sizes.data()});
    PyErr_SetString(PyExc_ValueError, "sizes among the arguments are not to be told");
    return nullptr;
}

bool tree_sizes(const Layout& layout, PyObject* const* arrays, npy_intp* sizes) {
    if (layout.sizes.empty()) return true;
    StackArray<npy_intp, 8> symbols(layout.carriers.size());
    for (size_t k = 0; k < layout.carriers.size(); ++k) {
        const auto [array, axis] = layout.carriers[k];
        if (!is_exact_array(arrays[array])) return false;
        PyArrayObject* a = as_array(arrays[array]);
        if (axis < 0) {
            if (PyArray_NDIM(a) != 0 || PyArray_TYPE(a) != NPY_INTP || !PyArray_ISBEHAVED_RO(a)) return false;
            symbols[k] = *static_cast<const npy_intp*>(PyArray_DATA(a));
            continue;
        }
        if (PyArray_NDIM(a) <= axis) return false;
        symbols[k] = PyArray_DIM(a, axis);
    }
    for (size_t k = 0; k < layout.sizes.size(); ++k)
        if (!layout.sizes[k].is_poly || !layout.sizes[k].poly.evaluate(symbols.data(), sizes[k])) return false;
    return true;
}

int tree_call_init(PyObject* module) {
    tree_call_type = reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(module, &tree_call_spec, nullptr));
    Ref mark = tree_call_type ? array_mark() : Ref();
    auto* type = reinterpret_cast<PyObject*>(tree_call_type);
    if (!mark || PyObject_SetAttrString(type, "ARRAY", mark.get()) < 0 ||
        PyObject_SetAttr(type, up_attributes._pyop_merge_by_value, Py_True) < 0)
        return -1;
    return PyModule_AddType(module, tree_call_type);
}

}  // namespace pyop
