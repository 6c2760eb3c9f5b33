// graph/value_memory.cpp: let Python's rules set and read the memory that a Value shows (graph/storage.h).
#include "graph/storage.h"

namespace pyop {

std::vector<const View*> views_of(const View* innermost) {
    std::vector<const View*> found;
    for (const View* view = innermost; view; view = view->parent) found.push_back(view);
    std::reverse(found.begin(), found.end());
    return found;
}

Ref views_as_list(PyObject* graph, const View* innermost) {
    Ref found = Ref::steal(PyList_New(0));
    for (const View* view : views_of(innermost)) {
        Ref node = Ref::steal(node_handle_new(graph, view->node));
        Ref base = Ref::steal(value_new(graph, view->base, kFixed));
        Ref row = node && base ? Ref::steal(Py_BuildValue("OIO", node.get(), view->output, base.get())) : Ref();
        if (!found || !row || PyList_Append(found.get(), row.get()) < 0) return Ref();
    }
    return found;
}

namespace {

PyObject* show(PyObject* self, PyObject* args) {
    PyObject* base;
    int read_only, certain;
    if (!PyArg_ParseTuple(args, "O!pp", value_type, &base, &read_only, &certain)) return nullptr;
    show_memory_of(as_value(self), as_value(base), read_only != 0, certain != 0);
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
    as_value(self)->flags |= kReadOnly;
    Py_RETURN_NONE;
}

PyObject* is_read_only(PyObject* self, PyObject*) {
    const ValueObject* v = as_value(self);
    return PyBool_FromLong(v->flags & kReadOnly && is_certain(v->view));
}

PyObject* check_writable_method(PyObject* self, PyObject* operation) {
    const char* text = PyUnicode_AsUTF8(operation);
    if (!text || check_writable(self, text) < 0) return nullptr;
    Py_RETURN_NONE;
}

PyObject* lent(PyObject* self, PyObject*) {
    if (bring_up_to_date(as_value(self)) < 0) return nullptr;
    return value_new(as_value(self)->graph, as_value(self)->edge, kFixed);
}

PyObject* apart(PyObject* self, PyObject*) {
    if (bring_up_to_date(as_value(self)) < 0) return nullptr;
    return value_new(as_value(self)->graph, as_value(self)->edge);
}

PyObject* root(PyObject* self, PyObject*) {
    Storage* storage = as_value(self)->storage;
    if (storage && catch_up(as_value(self)->graph, storage) < 0) return nullptr;
    return value_new(as_value(self)->graph, storage ? storage->root : as_value(self)->edge, kFixed);
}

PyObject* is_written(PyObject* self, PyObject*) {
    ValueObject* value = as_value(self);
    if (value->storage && catch_up(value->graph, value->storage) < 0) return nullptr;
    const Edge root = value->storage ? value->storage->root : value->edge;
    return PyBool_FromLong(graph_of(value->graph).node(root.node).kind() != NodeKind::Input);
}

PyObject* shares_memory(PyObject* self, PyObject* other) {
    return PyBool_FromLong(is_value(other) && as_value(self)->storage &&
                           as_value(self)->storage == as_value(other)->storage);
}

PyObject* is_alone(PyObject* self, PyObject*) {
    const Storage* s = as_value(self)->storage;
    const bool apart = !s || (s->owner == Owner::Function && s->may_show.empty() && s->shown_by.empty() && !s->host &&
                              s->guests.empty() && s->handles == as_value(self) && !as_value(self)->next);
    return PyBool_FromLong(apart && !as_value(self)->view &&
                           graph_of(as_value(self)->graph).node(as_value(self)->edge.node).kind() != NodeKind::Input);
}

PyObject* views(PyObject* self, PyObject*) {
    return views_as_list(as_value(self)->graph, as_value(self)->view).release();
}

PyObject* show_or_copy_method(PyObject* self, PyObject* base) {
    if (!is_value(base)) return PyErr_Format(PyExc_TypeError, "_show_or_copy() takes a Value");
    return PyBool_FromLong(show_or_copy(as_value(self), as_value(base)));
}

PyObject* is_related(PyObject* self, PyObject* other) {
    return PyBool_FromLong(is_value(other) && are_related(as_value(self)->storage, as_value(other)->storage));
}

PyObject* write_root_method(PyObject* self, PyObject* root) {
    if (!is_value(root) || as_value(root)->graph != as_value(self)->graph) {
        PyErr_SetString(PyExc_TypeError, "_write_root() takes a Value of the same graph");
        return nullptr;
    }
    if (write_root(as_value(self), as_value(root)->edge) < 0) return nullptr;
    Py_RETURN_NONE;
}

PyObject* log_writes(PyObject*, PyObject* list) {
    if (list != Py_None && !PyList_CheckExact(list)) {
        PyErr_SetString(PyExc_TypeError, "_log_writes() takes a list or None");
        return nullptr;
    }
    PyObject* before = std::exchange(write_log, list == Py_None ? nullptr : Py_NewRef(list));
    return before ? before : Py_NewRef(Py_None);
}

PyObject* lend(PyObject* self, PyObject*) {
    lend_to_write(as_value(self));
    Py_RETURN_NONE;
}

PyObject* shows(PyObject* self, PyObject* base) {
    return PyLong_FromLong(is_value(base) ? shows_memory_of(as_value(self), as_value(base)) : -1);
}

PyObject* shown_of(PyObject* self, PyObject* whole) {
    if (!is_value(whole) || as_value(whole)->graph != as_value(self)->graph) {
        PyErr_SetString(PyExc_TypeError, "_shown_of() takes a Value of the same graph");
        return nullptr;
    }
    return shown_of_new(as_value(self), as_value(whole)->edge);
}

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

constexpr PyMethodDef memory_methods[] = {
    {"_show", show, METH_VARARGS,
     "_show(base, read_only, certain): this Value, new, is a view of `base`, or (not certain) perhaps a copy."},
    {"_show_or_copy", show_or_copy_method, METH_O,
     "This Value, new, is a view of another or a copy, which the graph finds when it runs; False if that cannot be."},
    {"_is_related", is_related, METH_O, "Return whether another Value shows the same memory, or may."},
    {"_may_show", may_show, METH_VARARGS,
     "_may_show(bases, captured=False): this Value, new, may show the memory of these, or (captured) of an array."},
    {"_set_read_only", set_read_only, METH_NOARGS, "NumPy's array there is read-only."},
    {"_is_read_only", is_read_only, METH_NOARGS, "Return whether NumPy's array there is known to be read-only."},
    {"_check_writable", check_writable_method, METH_O, "Raise if a write by this operation would be seen by others."},
    {"_lent", lent, METH_NOARGS, "Another handle of what this one is now, which cannot be written."},
    {"_shares_memory", shares_memory, METH_O, "Return whether another Value shows the same memory, or a part of it."},
    {"_apart", apart, METH_NOARGS, "Another handle of what this one is now, of memory of its own."},
    {"_root", root, METH_NOARGS, "Return what the whole memory that it shows holds now."},
    {"_is_written", is_written, METH_NOARGS, "Of an input that is lent: whether its memory holds something else now."},
    {"_is_alone", is_alone, METH_NOARGS,
     "Return whether it shows memory that the function has made and no other Value shows."},
    {"_views", views, METH_NOARGS, "Return how it shows that: of each view the node, which output, and of what."},
    {"_write_root", write_root_method, METH_O, "_write_root(root): the whole memory that it shows holds this now."},
    {"_log_writes", log_writes, METH_O | METH_STATIC,
     "_log_writes(list): adds every write on this thread to it, or (None) nowhere; returns where they went before."},
    {"_lend", lend, METH_NOARGS, "This input, new, may be written: its caller gets back what it holds in the end."},
    {"_shows", shows, METH_O, "_shows(base): 1 if it shows that memory, 0 if it may, depending on the memory, or -1."},
    {"_shown_of", shown_of, METH_O, "_shown_of(whole): what this is a view of were `whole`."},
    {"_here", here, METH_NOARGS | METH_STATIC, "_here(): the line of the user's code that runs."},
    {"_kept_text", kept_text, METH_NOARGS, "The error of using this Value when its graph is finished; None before."},
    {"_own", own_memory, METH_NOARGS, "This Value shows memory of its own, whatever it was made of."},
};

}  // namespace

std::span<const PyMethodDef> value_memory_methods() { return memory_methods; }

}  // namespace pyop
