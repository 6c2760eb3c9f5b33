// plan/steps/call_arguments.cpp: binds a call to the names of parameters, and reads flags and dtypes from it.
#include "plan/steps/call_arguments.h"

#include <algorithm>
#include <string>

namespace pyop {

bool CallArguments::bind(const PyNode& node, std::span<const std::string_view> parameters) {
    items_ = {};
    const CallForm* form = node.form();
    const size_t n = form ? form->order.size() : node.inputs().size();
    const size_t n_keywords = form ? static_cast<size_t>(form->n_keywords()) : 0;
    const auto star = std::find(parameters.begin(), parameters.end(), "*");
    const auto n_positional = static_cast<size_t>(star - parameters.begin());
    for (size_t a = 0; a < n; ++a) {
        size_t place = a;
        if (a >= n - n_keywords) {
            PyObject* key = PyTuple_GET_ITEM(form->kwnames.get(), static_cast<Py_ssize_t>(a - (n - n_keywords)));
            Py_ssize_t length;
            const char* text = PyUnicode_AsUTF8AndSize(key, &length);
            if (!text) {
                PyErr_Clear();
                return false;
            }
            const std::string_view name(text, static_cast<size_t>(length));
            place = static_cast<size_t>(std::find(parameters.begin(), parameters.end(), name) - parameters.begin());
            if (place == parameters.size()) return false;
        } else if (place >= n_positional) {
            return false;
        }
        if (place >= kMax || items_[place].given()) return false;
        const int32_t code = form ? form->order[a] : static_cast<int32_t>(a);
        if (code >= 0)
            items_[place].input = code;
        else
            items_[place].fixed = PyTuple_GET_ITEM(form->statics.get(), ~code);
    }
    return true;
}

int flag_argument(const CallArguments::Item& item, bool otherwise) {
    if (!item.given()) return otherwise;
    return item.fixed == Py_True ? 1 : item.fixed == Py_False ? 0 : -1;
}

PyObject* find_below_numpy(std::string_view name) {
    Ref found = Ref::steal(PyImport_ImportModule("numpy"));
    while (found && !name.empty()) {
        const size_t dot = std::min(name.find('.'), name.size());
        found = Ref::steal(PyObject_GetAttrString(found.get(), std::string(name.substr(0, dot)).c_str()));
        name.remove_prefix(std::min(dot + 1, name.size()));
    }
    if (!found) PyErr_Clear();
    return found.release();
}

PyArray_Descr* builtin_dtype(const Graph& g, Edge e) {
    PyArray_Descr* d = g.spec(e).descr();
    if (!d || (!PyTypeNum_ISNUMBER(d->type_num) && d->type_num != NPY_BOOL)) return nullptr;
    PyArray_Descr* builtin = PyArray_DescrFromType(d->type_num);
    Py_DECREF(builtin);  // lives for ever
    return d == builtin ? d : nullptr;
}

int dtype_argument(const CallArguments::Item& item, PyArray_Descr*& dtype) {
    dtype = nullptr;
    if (item.absent_or(Py_None)) return 1;
    if (!item.fixed || !(PyArray_DescrCheck(item.fixed) || PyType_Check(item.fixed) || PyUnicode_Check(item.fixed)))
        return 0;
    PyArray_Descr* d = nullptr;
    if (PyArray_DescrConverter(item.fixed, &d) != NPY_SUCCEED) {
        PyErr_Clear();
        return 0;
    }
    PyArray_Descr* builtin =
        PyTypeNum_ISNUMBER(d->type_num) || d->type_num == NPY_BOOL ? PyArray_DescrFromType(d->type_num) : nullptr;
    const bool same = builtin == d;
    Py_DECREF(d);
    Py_XDECREF(builtin);
    dtype = same ? builtin : nullptr;
    return same;
}

bool is_plain_call(const PyNode& node) { return !node.contract() && !node.lends() && !node.stateful(); }

}  // namespace pyop
