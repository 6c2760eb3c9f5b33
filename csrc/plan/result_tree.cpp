// plan/result_tree.cpp: read the steps of a TreeDef, and make containers of their parts.
#include "plan/result_tree.h"

#include <algorithm>
#include <string_view>

namespace pyop {

namespace {

// As src/_tree.pyx numbers the kinds of containers; tests/plan/test_result_trees.py has each of them.
enum TreeKind : long { kLeaf, kTuple, kList, kDict };

bool all_strings(PyObject* keys) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keys); ++i)
        if (!PyUnicode_CheckExact(PyTuple_GET_ITEM(keys, i))) return false;
    return true;
}

}  // namespace

std::unique_ptr<const ResultTree> ResultTree::make(PyObject* tree) {
    // What stands in the place of one (python/pyop/onnx/boxes.py) has an `unflatten` of its own.
    if (std::string_view(Py_TYPE(tree)->tp_name) != "pyop._tree.TreeDef") return nullptr;
    const Ref pickled = Ref::steal(PyObject_CallMethod(tree, "__reduce__", nullptr));
    PyObject* steps;
    if (!pickled || !PyArg_ParseTuple(pickled.get(), "O(O!)", &steps, &PyList_Type, &steps)) return nullptr;
    auto made = std::make_unique<ResultTree>();
    size_t height = 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(steps); ++i) {
        long kind;
        PyObject *cls, *keys, *late;
        Py_ssize_t n;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(steps, i), "lOOOn", &kind, &cls, &keys, &late, &n)) return nullptr;
        if (kind > kDict || (kind == kDict && !all_strings(keys))) return nullptr;
        constexpr Step::Kind kinds[] = {Step::Leaf, Step::Tuple, Step::List, Step::Dict};
        made->steps_.push_back({kinds[kind], static_cast<size_t>(n), kind == kDict ? Ref::borrow(keys) : Ref()});
        height = height - static_cast<size_t>(n) + 1;
        made->deepest_ = std::max(made->deepest_, height);
    }
    return made;
}

PyObject* ResultTree::container_new(const Step& step, PyObject** parts) {
    const auto n = static_cast<Py_ssize_t>(step.size);
    if (step.kind == Step::Dict) {
        PyObject* dict = PyDict_New();
        for (Py_ssize_t i = 0; i < n; ++i) {
            if (dict && PyDict_SetItem(dict, PyTuple_GET_ITEM(step.keys.get(), i), parts[i]) < 0) Py_CLEAR(dict);
            Py_DECREF(parts[i]);
        }
        return dict;
    }
    const bool tuple = step.kind == Step::Tuple;
    PyObject* made = tuple ? PyTuple_New(n) : PyList_New(n);
    for (Py_ssize_t i = 0; i < n; ++i) {
        if (!made)
            Py_DECREF(parts[i]);
        else if (tuple)
            PyTuple_SET_ITEM(made, i, parts[i]);
        else
            PyList_SET_ITEM(made, i, parts[i]);
    }
    return made;
}

int ResultTree::traverse(visitproc visit, void* arg) const {
    for (const Step& step : steps_) Py_VISIT(step.keys.get());
    return 0;
}

}  // namespace pyop
