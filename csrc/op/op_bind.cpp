// op/op_bind.cpp: bind arguments of a call to the parameters of the function: by position, by name, by default.
#include <memory>

#include "op/op.h"
#include "runtime/errors.h"
#include "runtime/up_calls.h"

namespace pyop {

namespace {

Py_ssize_t find_name(PyObject* names, PyObject* name) {
    const Py_ssize_t n = PyTuple_GET_SIZE(names);
    for (Py_ssize_t i = 0; i < n; ++i)  // names of call sites are interned, as these are
        if (PyTuple_GET_ITEM(names, i) == name) return i;
    for (Py_ssize_t i = 0; i < n; ++i)
        if (PyUnicode_Compare(PyTuple_GET_ITEM(names, i), name) == 0) return i;
    return -1;
}

PYOP_COLD int wrong_count(const OpObject& op, Py_ssize_t got) {
    Ref names = Ref::steal(PyUnicode_FromString(", "));
    names = names ? Ref::steal(PyUnicode_Join(names.get(), op.parameters)) : Ref();
    Ref statics = Ref::steal(PyUnicode_FromString(", "));
    statics = statics && PyTuple_GET_SIZE(op.statics) ? Ref::steal(PyUnicode_Join(statics.get(), op.statics)) : Ref();
    Ref hint = statics ? Ref::steal(PyUnicode_FromFormat("; static parameters (%U) are given by name", statics.get()))
                       : Ref::steal(PyUnicode_FromString(""));
    if (!hint || !names) return -1;
    PyErr_Format(PyExc_TypeError, "%s takes %d array argument%s%s%U%s, but got %zd%U",
                 OpCaller(op).description().c_str(), op.n_in, op.n_in == 1 ? "" : "s",
                 PyTuple_GET_SIZE(op.parameters) ? " (" : "", PyTuple_GET_SIZE(op.parameters) ? names.get() : op.name,
                 PyTuple_GET_SIZE(op.parameters) ? ")" : "", got, hint.get());
    return -1;
}

int bind_keyword(const OpObject& op, PyObject* name, PyObject* value, BoundArguments& bound) {
    const Py_ssize_t position = find_name(op.parameters, name);
    if (position >= 0) {
        if (op.n_in >= 0 && position >= op.n_in) {
            PyErr_Format(PyExc_TypeError,
                         "%s declares %d input%s, and '%U' is not among them nor can it be given by "
                         "name: its default is used; to pass it, declare a function with a keyword-only parameter",
                         OpCaller(op).description().c_str(), op.n_in, op.n_in == 1 ? "" : "s", name);
            return -1;
        }
        if (static_cast<size_t>(position) >= bound.arrays.size())
            bound.arrays.resize(static_cast<size_t>(position) + 1);
        PyObject*& slot = bound.arrays[static_cast<size_t>(position)];
        if (slot) {
            PyErr_Format(PyExc_TypeError, "%s got argument '%U' twice", OpCaller(op).description().c_str(), name);
            return -1;
        }
        slot = value;
        return 0;
    }
    if (op.declared().out_mode != OutMode::None && PyUnicode_CompareWithASCIIString(name, "out") == 0) {
        bound.out = value;
        return 0;
    }
    if (!op.any_static && find_name(op.statics, name) < 0) {
        PyErr_Format(PyExc_TypeError, "%s has no parameter '%U'", OpCaller(op).description().c_str(), name);
        return -1;
    }
    bound.static_names.push_back(name);
    bound.static_values.push_back(value);
    return 0;
}

size_t trailing_gaps(const BoundArguments& bound) {
    size_t n = 0;
    while (n < bound.arrays.size() && !bound.arrays[bound.arrays.size() - 1 - n]) ++n;
    return n;
}

int fill_defaults(const OpObject& op, BoundArguments& bound) {
    const Py_ssize_t n_defaults = PyTuple_GET_SIZE(op.defaults), n_params = PyTuple_GET_SIZE(op.parameters);
    if (op.n_in >= 0 && bound.arrays.size() < static_cast<size_t>(op.n_in))
        bound.arrays.resize(static_cast<size_t>(op.n_in));
    for (size_t k = 0; k < bound.arrays.size(); ++k) {
        if (bound.arrays[k]) continue;
        const Py_ssize_t from_end = static_cast<Py_ssize_t>(k) - (n_params - n_defaults);
        if (from_end < 0 || from_end >= n_defaults) {
            PyErr_Format(PyExc_TypeError, "%s misses argument %zu%s", OpCaller(op).description().c_str(), k,
                         OpCaller(op).argument_name(static_cast<int64_t>(k)).empty()
                             ? ""
                             : (" ('" + OpCaller(op).argument_name(static_cast<int64_t>(k)) + "')").c_str());
            return -1;
        }
        PyObject* value = PyTuple_GET_ITEM(op.defaults, from_end);
        // `def f(x, y=None)` without y: the function is called without it, where the declaration allows that.
        if (value == Py_None && !op.declared().inputs_declared && k == bound.arrays.size() - trailing_gaps(bound)) {
            bound.arrays.resize(k);
            break;
        }
        bound.arrays[k] = value;
    }
    return 0;
}

// Replaces the arguments by the leaves of the declared trees.
int flatten_trees(const OpObject& op, BoundArguments& bound) {
    std::vector<PyObject*> flat;
    for (size_t k = 0; k < bound.arrays.size(); ++k) {
        PyObject* tree = PyTuple_GET_ITEM(op.arg_trees, static_cast<Py_ssize_t>(k));
        Ref leaves = Ref::steal(
            survive([&] { return PyObject_CallMethodOneArg(tree, up_attributes.flatten_up_to, bound.arrays[k]); }));
        if (!leaves) {
            if (!PyErr_ExceptionMatches(PyExc_Exception)) return -1;
            Ref why = pending_text();
            Ref message = Ref::steal(
                PyUnicode_FromFormat("%U\n  in argument %zu of %s", why.get(), k, OpCaller(op).description().c_str()));
            raise_from_pending(errors.input, message.get());
            return -1;
        }
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(leaves.get()); ++i) flat.push_back(PyList_GET_ITEM(leaves.get(), i));
        bound.owned.push_back(std::move(leaves));
    }
    bound.arrays = std::move(flat);
    return 0;
}

}  // namespace

int bind_arguments(const OpObject& op, PyObject* const* args, Py_ssize_t n, PyObject* kwnames, BoundArguments& bound) {
    if (op.n_in >= 0 && n > op.n_in) return wrong_count(op, n);
    bound.arrays.assign(args, args + n);
    if (kwnames)
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(kwnames); ++i)
            if (bind_keyword(op, PyTuple_GET_ITEM(kwnames, i), args[n + i], bound) < 0) return -1;
    if (fill_defaults(op, bound) < 0) return -1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(op.required); ++i) {
        PyObject* name = PyTuple_GET_ITEM(op.required, i);
        bool given = false;
        for (PyObject* have : bound.static_names) given |= PyUnicode_Compare(have, name) == 0;
        if (given) continue;
        PyErr_Format(PyExc_TypeError, "%s misses the keyword argument '%U'", OpCaller(op).description().c_str(), name);
        return -1;
    }
    return op.arg_trees ? flatten_trees(op, bound) : 0;
}

int make_form(const BoundArguments& bound, std::unique_ptr<CallForm>& form) {
    const auto n = static_cast<Py_ssize_t>(bound.static_names.size());
    if (n == 0) return 0;
    form = std::make_unique<CallForm>();
    for (size_t k = 0; k < bound.arrays.size(); ++k) form->order.push_back(static_cast<int32_t>(k));
    Ref values = Ref::steal(PyTuple_New(n)), names = Ref::steal(PyTuple_New(n));
    if (!values || !names) return -1;
    for (Py_ssize_t i = 0; i < n; ++i) {
        form->order.push_back(~static_cast<int32_t>(i));
        PyTuple_SET_ITEM(values.get(), i, Py_NewRef(bound.static_values[static_cast<size_t>(i)]));
        PyTuple_SET_ITEM(names.get(), i, Py_NewRef(bound.static_names[static_cast<size_t>(i)]));
    }
    form->statics = SharedRef::steal(values.release());
    form->kwnames = SharedRef::steal(names.release());
    return form->statics && form->kwnames ? 0 : -1;
}

}  // namespace pyop
