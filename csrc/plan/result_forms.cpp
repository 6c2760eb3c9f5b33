// plan/result_forms.cpp: read the list of leaves, and make each of them of what the plan returned.
#include "plan/result_forms.h"

#include <algorithm>
#include <string_view>

#include "array/memory/overlap.h"
#include "runtime/errors.h"
#include "runtime/up_calls.h"

namespace pyop {

namespace {

struct FormsObject {
    PyObject_HEAD
    const ResultForms* forms;
};

PyTypeObject* forms_type = nullptr;

FormsObject& object_of(PyObject* self) { return *reinterpret_cast<FormsObject*>(self); }

bool repeats(PyArrayObject* a, int d) { return PyArray_DIM(a, d) > 1 && PyArray_STRIDE(a, d) == 0; }

// Read-only.
PyObject* view_new(PyArrayObject* a, const npy_intp* dims, const npy_intp* strides) {
    auto* dtype = PyArray_DESCR(a);
    Py_INCREF(dtype);
    Ref view = Ref::steal(
        PyArray_NewFromDescr(&PyArray_Type, dtype, PyArray_NDIM(a), dims, strides, PyArray_DATA(a), 0, nullptr));
    if (!view || PyArray_SetBaseObject(as_array(view.get()), Py_NewRef(as_object(a))) < 0) return nullptr;
    return view.release();
}

// A copy that repeats what the array repeats, as np.broadcast_to does, and then is read-only as that.
PyObject* copied_new(PyArrayObject* a) {
    const int n = PyArray_NDIM(a);
    std::vector<npy_intp> dims(PyArray_DIMS(a), PyArray_DIMS(a) + n);
    bool any = false;
    for (int d = 0; d < n; ++d)
        if (repeats(a, d)) dims[static_cast<size_t>(d)] = 1, any = true;
    if (!any) return PyArray_NewCopy(a, NPY_KEEPORDER);
    const Ref once = Ref::steal(view_new(a, dims.data(), PyArray_STRIDES(a)));
    const Ref copy = once ? Ref::steal(PyArray_NewCopy(as_array(once.get()), NPY_KEEPORDER)) : Ref();
    if (!copy) return nullptr;
    PyArrayObject* c = as_array(copy.get());
    std::vector<npy_intp> strides(PyArray_STRIDES(c), PyArray_STRIDES(c) + n);
    for (int d = 0; d < n; ++d)
        if (repeats(a, d)) strides[static_cast<size_t>(d)] = 0;
    return view_new(c, PyArray_DIMS(a), strides.data());
}

// What is in an array of the caller's can be written, what the plan holds cannot.
bool is_held(PyObject* array) { return is_exact_array(array) && !PyArray_ISWRITEABLE(as_array(array)); }

bool is_true(PyArrayObject* truths, Py_ssize_t i) {
    return *(PyArray_BYTES(truths) + i * PyArray_STRIDE(truths, 0)) != 0;
}

// Of each array 'p' if its elements become Python's numbers, 's' for scalars of NumPy, 't' where they say which
// constant an item is; 'e' and 'i' are for either, Python's floats or ints where the array behind, '?', has truths.
// Whether the items are tuples or lists; and the items that are there in any case.
bool is_form_of_list(PyObject* form, size_t arrays) {
    return PyTuple_Check(form) && PyTuple_GET_SIZE(form) == 4 && PyUnicode_Check(PyTuple_GET_ITEM(form, 0)) &&
           static_cast<size_t>(PyUnicode_GET_LENGTH(PyTuple_GET_ITEM(form, 0))) == arrays && arrays > 0 &&
           PyTuple_Check(PyTuple_GET_ITEM(form, 2)) && PyDict_Check(PyTuple_GET_ITEM(form, 3));
}

bool read_leaf(PyObject* row, ResultForms::Leaf& leaf) {
    int kind, held;
    Py_ssize_t first;
    unsigned long long owner;
    PyObject* object;
    if (!PyArg_ParseTuple(row, "CCnKO", &kind, &held, &first, &owner, &object)) return false;
    leaf.kind = static_cast<ResultForms::Leaf::Kind>(kind);
    leaf.held = static_cast<ResultForms::Leaf::Held>(held);
    leaf.first = static_cast<size_t>(first);
    leaf.owner = owner;
    leaf.object = Ref::borrow(object);
    const bool array = leaf.kind != ResultForms::Leaf::Copy && leaf.kind != ResultForms::Leaf::Fixed &&
                       leaf.kind != ResultForms::Leaf::View;
    const bool known = std::string_view("asnrowcfl").find(static_cast<char>(kind)) != std::string_view::npos;
    const bool list = leaf.kind != ResultForms::Leaf::List || is_form_of_list(object, leaf.first);
    if (known && list && (array || is_exact_array(object))) return true;
    PyErr_Format(PyExc_ValueError, "not a leaf of a result: %R", row);
    return false;
}

}  // namespace

std::unique_ptr<const ResultForms> ResultForms::make(PyObject* leaves, PyObject* tree, PyObject* given) {
    auto made = std::make_unique<ResultForms>();
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(leaves); ++i) {
        Leaf& leaf = made->leaves_.emplace_back();
        if (!read_leaf(PyTuple_GET_ITEM(leaves, i), leaf)) return nullptr;
        made->taken_ += leaf.taken();
        if (leaf.kind == Leaf::Again && leaf.first >= static_cast<size_t>(i)) {
            PyErr_SetString(PyExc_ValueError, "a leaf of a result stands for one behind it");
            return nullptr;
        }
    }
    made->tree_ = Ref::borrow(tree);
    made->plain_tree_ = ResultTree::make(tree);
    if (given != Py_None && !PyErr_Occurred()) {
        const auto plain = ResultTree::make(given);
        made->alone_ = plain && plain->is_leaf();
        made->given_ = Ref::borrow(given);
    }
    if (PyErr_Occurred()) return nullptr;
    return made;
}

bool ResultForms::holds_none() const {
    return std::all_of(leaves_.begin(), leaves_.end(), [](const Leaf& leaf) { return leaf.held == Leaf::No; });
}

bool ResultForms::are_arrays() const {
    return holds_none() && std::all_of(leaves_.begin(), leaves_.end(),
                                       [](const Leaf& leaf) { return leaf.taken() == 0 || leaf.kind == Leaf::Array; });
}

std::vector<NumberForm> ResultForms::wanted() const {
    std::vector<NumberForm> found;
    for (const Leaf& leaf : leaves_) found.insert(found.end(), leaf.taken(), leaf.form());
    return found;
}

PyObject* ResultForms::beside_new(const Leaf& leaf, const Made& made) {
    if (leaf.kind == Leaf::Again) return Py_NewRef(made[leaf.first]);
    if (leaf.kind == Leaf::Object) return leaf.object.new_ref();
    if (leaf.kind == Leaf::View) return PyArray_View(as_array(leaf.object.get()), nullptr, nullptr);
    PyObject* copy = copied_new(as_array(leaf.object.get()));
    if (copy && leaf.kind == Leaf::Fixed) PyArray_CLEARFLAGS(as_array(copy), NPY_ARRAY_WRITEABLE);
    return copy;
}

PyObject* ResultForms::list_new(PyObject* const* arrays, const Leaf& leaf) {
    PyObject* const form = leaf.object.get();
    PyObject* const forms = PyTuple_GET_ITEM(form, 0);
    PyObject* const first = PyTuple_GET_ITEM(form, 2);
    PyObject* const constants = PyTuple_GET_ITEM(form, 3);
    PyObject* const row = PyTuple_GET_ITEM(form, 1);
    const bool rows = row != Py_None, lists = row == reinterpret_cast<PyObject*>(&PyList_Type);
    for (size_t k = 0; k < leaf.first; ++k) {
        if (is_exact_array(arrays[k]) && PyArray_NDIM(as_array(arrays[k])) == 1 &&
            PyArray_DIM(as_array(arrays[k]), 0) == PyArray_DIM(as_array(arrays[0]), 0))
            continue;
        PyErr_Format(PyExc_RuntimeError, "a plan returned %R, not the elements of a list", arrays[k]);
        return nullptr;
    }
    const Py_ssize_t before = PyTuple_GET_SIZE(first), n = PyArray_DIM(as_array(arrays[0]), 0);
    Ref list = Ref::steal(PyList_New(before + n));
    if (!list) return nullptr;
    for (Py_ssize_t i = 0; i < before; ++i) PyList_SET_ITEM(list.get(), i, Py_NewRef(PyTuple_GET_ITEM(first, i)));
    const auto element = [&](size_t k, Py_ssize_t i) -> PyObject* {
        PyArrayObject* a = as_array(arrays[k]);
        char* const at = PyArray_BYTES(a) + i * PyArray_STRIDE(a, 0);
        const Py_UCS4 kind = PyUnicode_READ_CHAR(forms, static_cast<Py_ssize_t>(k));
        const bool either = kind == 'e' || kind == 'i';
        if (kind == 's' || (either && !is_true(as_array(arrays[k + 1]), i)))
            return PyArray_Scalar(at, PyArray_DESCR(a), as_object(a));
        PyObject* const number = PyArray_GETITEM(a, at);
        if (kind == 'i' && number && !PyLong_Check(number)) return PyNumber_Long(Ref::steal(number).get());
        if (kind == 'p' || either || !number) return number;
        const Ref key = Ref::steal(number);
        PyObject* const constant = PyDict_GetItemWithError(constants, number);
        if (!constant && !PyErr_Occurred()) PyErr_SetObject(PyExc_KeyError, number);
        return Py_XNewRef(constant);
    };
    for (Py_ssize_t i = 0; i < n; ++i) {
        Ref item = Ref::steal(rows ? PyTuple_New(static_cast<Py_ssize_t>(leaf.first)) : element(0, i));
        for (size_t k = 0; rows && item && k < leaf.first; ++k) {
            PyObject* part = element(k, i);
            if (!part) return nullptr;
            PyTuple_SET_ITEM(item.get(), static_cast<Py_ssize_t>(k), part);
        }
        if (item && lists) item = Ref::steal(PySequence_List(item.get()));
        if (!item) return nullptr;
        PyList_SET_ITEM(list.get(), before + i, item.release());
    }
    return list.release();
}

PyObject* ResultForms::tree_new(Made& made) const {
    if (plain_tree_) return plain_tree_->build_new([&](size_t i) { return std::exchange(made[i], nullptr); });
    const Ref list = Ref::steal(PyList_New(static_cast<Py_ssize_t>(made.size())));
    for (size_t i = 0; list && i < made.size(); ++i)
        PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), std::exchange(made[i], nullptr));
    if (!list) return nullptr;
    return survive([&] { return PyObject_CallMethodOneArg(tree_.get(), up_attributes.unflatten, list.get()); });
}

PyObject* ResultForms::shown_new(PyObject* array, const Leaf& leaf,
                                 std::vector<std::pair<const Leaf*, PyObject*>>& shown) const {
    for (const auto& [other, view] : shown)
        if (other->first == leaf.first) return Py_NewRef(view);
    const bool apart = std::all_of(shown.begin(), shown.end(), [&](const auto& other) {
        return other.first->owner == leaf.owner || !may_overlap(as_array(other.second), as_array(array));
    });
    PyObject* made = apart ? PyArray_View(as_array(array), nullptr, nullptr) : copied_new(as_array(array));
    if (made) shown.emplace_back(&leaf, made);
    return made;
}

PyObject* ResultForms::of_result_new(PyObject* result, PyObject* out) const {
    Ref list;
    PyObject** items = &result;
    if (alone_) {
    } else if (!given_) {
        if (!PyTuple_CheckExact(result) || static_cast<size_t>(PyTuple_GET_SIZE(result)) != taken_) {
            PyErr_Format(PyExc_RuntimeError, "a plan returned %R, not a tuple of %zu", result, taken_);
            return nullptr;
        }
        items = &PyTuple_GET_ITEM(result, 0);
    } else {
        list = Ref::steal(
            survive([&] { return PyObject_CallMethodOneArg(given_.get(), up_attributes.flatten_up_to, result); }));
        if (!list) return nullptr;
        items = &PyList_GET_ITEM(list.get(), 0);
    }
    std::vector<std::pair<const Leaf*, PyObject*>> shown;
    return build_new([&](size_t k, const Leaf& leaf) -> PyObject* {
        PyObject* const item = items[k];
        if (leaf.kind == Leaf::Number || (leaf.kind == Leaf::Scalar && !out))
            return in_form_steal(Py_NewRef(item), leaf.form());
        if (PYOP_LIKELY(leaf.held == Leaf::No) || !is_held(item)) return Py_NewRef(item);
        return leaf.held == Leaf::Shown ? shown_new(item, leaf, shown) : copied_new(as_array(item));
    });
}

int ResultForms::traverse(visitproc visit, void* arg) const {
    for (const Leaf& leaf : leaves_) Py_VISIT(leaf.object.get());
    Py_VISIT(tree_.get());
    Py_VISIT(given_.get());
    return plain_tree_ ? plain_tree_->traverse(visit, arg) : 0;
}

namespace {

PyObject* forms_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
    static const char* keywords[] = {"leaves", "tree", "given", nullptr};
    PyObject *leaves, *tree, *given;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!OO", const_cast<char**>(keywords), &PyTuple_Type, &leaves, &tree,
                                     &given))
        return nullptr;
    return guarded(
        [&]() -> PyObject* {
            auto forms = ResultForms::make(leaves, tree, given);
            PyObject* self = forms ? type->tp_alloc(type, 0) : nullptr;
            if (self) object_of(self).forms = forms.release();
            return self;
        },
        static_cast<PyObject*>(nullptr));
}

PyObject* forms_call(PyObject* self, PyObject* args, PyObject* kwargs) {
    static const char* keywords[] = {"result", "out", nullptr};
    PyObject *result, *out = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O", const_cast<char**>(keywords), &result, &out)) return nullptr;
    return formed_steal(Py_NewRef(result), self, out == Py_None ? nullptr : out);
}

int forms_traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    return object_of(self).forms ? object_of(self).forms->traverse(visit, arg) : 0;
}

void forms_dealloc(PyObject* self) {
    PyObject_GC_UnTrack(self);
    delete std::exchange(object_of(self).forms, nullptr);
    PyTypeObject* type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyType_Slot forms_slots[] = {
    {Py_tp_doc, const_cast<char*>("What a compiled function makes of the arrays of its plan.")},
    {Py_tp_new, reinterpret_cast<void*>(forms_new)},
    {Py_tp_call, reinterpret_cast<void*>(forms_call)},
    {Py_tp_traverse, reinterpret_cast<void*>(forms_traverse)},
    {Py_tp_dealloc, reinterpret_cast<void*>(forms_dealloc)},
    {0, nullptr},
};

PyType_Spec forms_spec = {"pyop._core.ResultForms", sizeof(FormsObject), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE, forms_slots};

}  // namespace

const ResultForms* result_forms_of(PyObject* finish) {
    return finish && Py_TYPE(finish) == forms_type ? object_of(finish).forms : nullptr;
}

PyObject* formed_steal(PyObject* result, PyObject* finish, PyObject* out) {
    if (!result) return nullptr;
    const Ref given = Ref::steal(result), held = Ref::borrow(finish);
    return guarded([&] { return object_of(finish).forms->of_result_new(result, out); },
                   static_cast<PyObject*>(nullptr));
}

int result_forms_init(PyObject* module) {
    forms_type = reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(module, &forms_spec, nullptr));
    return forms_type ? PyModule_AddType(module, forms_type) : -1;
}

}  // namespace pyop
