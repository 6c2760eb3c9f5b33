// graph/opened.cpp: find whose argument a memory is, and what it holds at the first write.
#include "graph/opened.h"

#include "graph/build.h"
#include "runtime/up_calls.h"

namespace pyop {

namespace {

bool is_opened(PyObject* graph, const View& view) {
    return graph_of(graph).node_as<PyNode>(view.node).fn() == up_calls.opened;
}

// The innermost argument that a view is of; null: none.
const View* argument_of(PyObject* graph, const View* view) {
    while (view && !is_opened(graph, *view)) view = view->parent;
    return view;
}

// Whether nobody has written there since the argument was opened.
bool is_as_opened(const Storage* storage, const View* argument) {
    return argument && argument->version == storage->version &&
           argument->edge == Edge{argument->node, argument->output};
}

// What the whole memory holds with the argument in its place. 0, or -1 with the error set.
int put_in_place(PyObject* graph, const Storage* storage, const View* argument, Edge& root) {
    root = {argument->node, argument->output};
    if (!argument->parent) return 0;
    const Ref whole = Ref::steal(value_new(graph, storage->root, kFixed));
    const Ref part = Ref::steal(value_new(graph, root, kFixed));
    const Ref views = views_as_list(graph, argument->parent);
    if (!whole || !part || !views) return -1;
    const Ref made = Ref::steal(
        PyObject_CallFunctionObjArgs(up_calls.value_linked, whole.get(), part.get(), views.get(), Py_True, nullptr));
    if (!made) return -1;
    root = as_value(made.get())->edge;
    return 0;
}

// The memory that `view` shows, after that which it is a guest of.
int enter(PyObject* graph, Storage* storage, const View* view) {
    const View* const argument = argument_of(graph, view);
    const bool as_opened = is_as_opened(storage, argument);
    if (storage->host && enter(graph, storage->host, storage->link) < 0) return -1;
    Edge root;
    if (!as_opened) return 0;
    return put_in_place(graph, storage, argument, root) < 0 ? -1 : move_root(graph, storage, root);
}

}  // namespace

bool is_of_another_argument(const ValueObject* value, const ValueObject* other) {
    const View* argument = argument_of(other->graph, other->view);
    if (!argument) return false;
    for (const View* view = value->view; view; view = view->parent)
        if (view->node == argument->node) return false;
    return true;
}

int enter_opened(ValueObject* value) {
    Storage* storage = value->storage;
    if (!storage || !(value->view || storage->host)) return 0;
    return enter(value->graph, storage, value->view);
}

}  // namespace pyop
