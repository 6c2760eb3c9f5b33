// plan/steps/call_arguments.cpp: bind a call to the names of parameters, and read flags and dtypes from it.
#include "plan/steps/call_arguments.h"

#include <algorithm>
#include <string>

#include "plan/steps/node_call.h"

namespace pyop {

bool CallArguments::bind(const PyNode& node, std::span<const std::string_view> parameters) {
    items_ = {};
    std::vector<NodeArgument> found;
    if (!NodeCall(node).bind(parameters, found)) return false;
    for (size_t k = 0; k < found.size(); ++k) {
        if (!found[k].given()) continue;
        if (k >= kMax || found[k].nested) return false;
        items_[k] = {static_cast<int32_t>(found[k].input), found[k].value};
    }
    return true;
}

int flag_argument(const CallArguments::Item& item, bool otherwise) {
    if (!item.given()) return otherwise;
    return item.fixed == Py_True ? 1 : item.fixed == Py_False ? 0 : -1;
}

PyObject* find_below_numpy(std::string_view name) {
    Ref found = Ref::borrow(numpy_module());
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
