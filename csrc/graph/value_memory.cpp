// graph/value_memory.cpp: what Python's rules tell a Value about the memory that it shows (graph/storage.h).
#include "graph/storage.h"

namespace pyop {

namespace {

PyObject* show(PyObject* self, PyObject* args) {
    PyObject* base;
    int read_only = 0;
    if (!PyArg_ParseTuple(args, "O!|p", value_type, &base, &read_only)) return nullptr;
    show_memory_of(as_value(self), as_value(base), read_only != 0);
    Py_RETURN_NONE;
}

PyObject* may_show(PyObject* self, PyObject* args) {
    PyObject* bases;
    int captured = 0;
    if (!PyArg_ParseTuple(args, "O!|p", &PyTuple_Type, &bases, &captured)) return nullptr;
    const std::span<PyObject* const> items{&PyTuple_GET_ITEM(bases, 0), static_cast<size_t>(PyTuple_GET_SIZE(bases))};
    may_show_memory_of(as_value(self), items, captured ? Owner::Captured : Owner::Opaque);
    Py_RETURN_NONE;
}

PyObject* set_read_only(PyObject* self, PyObject*) {
    const bool input = graph_of(as_value(self)->graph).node(as_value(self)->edge.node).kind() == NodeKind::Input;
    as_value(self)->flags |= input ? kReadOnlyNow : kReadOnly;
    Py_RETURN_NONE;
}

PyObject* check_writable_method(PyObject* self, PyObject* operation) {
    const char* text = PyUnicode_AsUTF8(operation);
    if (!text || check_writable(self, text) < 0) return nullptr;
    Py_RETURN_NONE;
}

PyObject* lent(PyObject* self, PyObject*) { return value_new(as_value(self)->graph, as_value(self)->edge, kFixed); }

PyObject* here(PyObject*, PyObject*) { return origin_text(current_origin()).release(); }

PyObject* kept_text(PyObject* self, PyObject*) {
    const Graph& graph = graph_of(as_value(self)->graph);
    if (!graph.finished()) Py_RETURN_NONE;
    return graph.kept_value_text(as_value(self)->edge.node).release();
}

PyObject* own_memory(PyObject* self, PyObject*) {
    leave_storage(as_value(self));
    Py_RETURN_NONE;
}

constexpr PyMethodDef methods[] = {
    {"_show", show, METH_VARARGS, "_show(base, read_only=False): this Value, new, is a view of `base`."},
    {"_may_show", may_show, METH_VARARGS,
     "_may_show(bases, captured=False): this Value, new, may show the memory of these, or (captured) of an array."},
    {"_set_read_only", set_read_only, METH_NOARGS, "NumPy's array there is read-only."},
    {"_check_writable", check_writable_method, METH_O, "Raises if a write by this operation would be seen by others."},
    {"_lent", lent, METH_NOARGS, "Another handle of what this one is now, which cannot be written."},
    {"_here", here, METH_NOARGS | METH_STATIC, "_here(): the line of the user's code that runs."},
    {"_kept_text", kept_text, METH_NOARGS, "The error of using this Value when its graph is finished; None before."},
    {"_own", own_memory, METH_NOARGS, "This Value shows memory of its own, whatever it was made of."},
};

}  // namespace

std::span<const PyMethodDef> value_memory_methods() { return methods; }

}  // namespace pyop
