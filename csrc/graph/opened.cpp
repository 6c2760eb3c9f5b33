// graph/opened.cpp: whose argument a memory is, and what it holds at the first write.
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

// The memory that `view` shows, and that which it is a guest of, from the outermost on.
int enter(PyObject* graph, Storage* storage, const View* view) {
    if (storage->host && enter(graph, storage->host, storage->link) < 0) return -1;
    Edge whole = storage->root;
    for (const View* outer : views_of(view)) {
        if (!is_opened(graph, *outer) || outer->base != whole) break;
        whole = {outer->node, outer->output};
    }
    return whole == storage->root ? 0 : move_root(graph, storage, whole);
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
