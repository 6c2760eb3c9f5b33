// graph/storage.cpp: track which Value shows which memory, what it holds after a write, and refuse writes that others
// might see.
#include "graph/storage.h"

#include <cstring>

#include "graph/build.h"
#include "graph/opened.h"
#include "runtime/errors.h"
#include "runtime/refusal.h"
#include "runtime/up_calls.h"

namespace pyop {

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(Py_GIL_DISABLED)
constexpr bool kReuse = false;  // so that it sees what is used too late; and nothing guards the spares without a GIL
#else
constexpr bool kReuse = true;
#endif
constexpr size_t kSpares = 64;
void* spare_storages[kSpares];
size_t n_spares = 0;

Storage* storage_of(ValueObject* value) {
    if (value->storage) return value->storage;
    auto* storage = new Storage;
    if (graph_of(value->graph).node(value->edge.node).kind() == NodeKind::Input) storage->owner = Owner::Argument;
    storage->handles = value;
    storage->root = value->edge;
    value->storage = storage;
    value->version = 0;
    return storage;
}

void enter(ValueObject* value, Storage* storage) {
    leave_storage(value);
    value->storage = storage;
    value->version = storage->version;
    value->next = storage->handles;
    if (value->next) value->next->previous = value;
    storage->handles = value;
}

View* kept(View* view) {
    if (view) ++view->references;
    return view;
}

void release(View* view) {
    while (view && --view->references == 0) {
        View* parent = view->parent;
        delete view;
        view = parent;
    }
}

// Of the tree of a storage.
Storage* top_of(Storage* storage) {
    while (storage->host) storage = storage->host;
    return storage;
}
bool is_in_tree(const Storage* storage) { return storage->host || !storage->guests.empty(); }

template <typename F>
void for_each_below(Storage* storage, const F& do_with) {
    do_with(storage);
    storage->guests.for_each([&](Storage* guest) { for_each_below(guest, do_with); });
}

// Before the root of a storage is moved: the others of its tree are behind from now on.
void go_ahead(Storage* storage) {
    if (PYOP_LIKELY(!is_in_tree(storage))) return;
    Storage* top = top_of(storage);
    if (top->ahead == storage) return;
    top->ahead = storage;
    for_each_below(top, [&](Storage* other) { other->version += other != storage; });
}

// What a host holds after a write to a guest, or (not `up`) a guest after one to its host, as `edge`. 0, or -1 with the
// error set.
int linked(PyObject* graph, const Storage& guest, bool up, Edge& edge) {
    Ref host = Ref::steal(value_new(graph, guest.host->root, kFixed));
    Ref part = Ref::steal(value_new(graph, guest.root, kFixed));
    Ref views = views_as_list(graph, guest.link);
    if (!host || !part || !views) return -1;
    Ref made = Ref::steal(PyObject_CallFunctionObjArgs(up_calls.value_linked, host.get(), part.get(), views.get(),
                                                       up ? Py_True : Py_False, nullptr));
    if (!made || !is_value(made.get())) return -1;
    edge = as_value(made.get())->edge;
    return 0;
}

int write_down_guests(PyObject* graph, Storage* host) {
    int failed = 0;
    host->guests.for_each([&](Storage* guest) {
        if (!guest->handles && guest->guests.empty()) return;
        if (failed || linked(graph, *guest, false, guest->root) < 0 || write_down_guests(graph, guest) < 0) failed = -1;
        ++guest->version;
    });
    return failed;
}

void drop_if_unused(Storage* storage);

// The node of a view once more, of what the memory holds now. Its edge, or -1 with the error set.
int64_t view_again(PyObject* graph, const View& view, Edge base) {
    Graph& g = graph_of(graph);
    const PyNode& node = g.node_as<PyNode>(view.node);
    PyNode::Call call;
    call.fn = SharedRef::borrow(node.fn());
    if (node.contract())
        call.contract = SharedRef::borrow(reinterpret_cast<PyObject*>(const_cast<Contract*>(node.contract())));
    call.lends = node.lends();
    if (node.form()) {
        call.form = std::make_unique<CallForm>();
        call.form->order = node.form()->order;
        if (node.form()->statics) call.form->statics = SharedRef::borrow(node.form()->statics.get());
        if (node.form()->kwnames) call.form->kwnames = SharedRef::borrow(node.form()->kwnames.get());
    }
    std::vector<Edge> edges(node.inputs().begin(), node.inputs().end());
    std::replace(edges.begin(), edges.end(), view.base, base);
    const std::vector<uint32_t> specs(node.output_specs().begin(), node.output_specs().end());
    Ref name = g.node_name(view.node);
    return name ? add_call(graph, std::move(call), edges, specs, false, name.get()) : -1;
}

// Brings the views up to what the storage holds now, outermost first. -1 with the error set.
int follow(PyObject* graph, const Storage& storage, View* innermost) {
    std::vector<View*> old;
    for (View* view = innermost; view && view->version != storage.version; view = view->parent) old.push_back(view);
    for (size_t i = old.size(); i-- > 0;) {
        View& view = *old[i];
        const int64_t node = view_again(graph, view, view.parent ? view.parent->edge : storage.root);
        if (node < 0) return -1;
        view.edge = {static_cast<uint32_t>(node), view.output};
        view.version = storage.version;
    }
    return 0;
}

Ref text_of_line(ValueObject* value) { return origin_text(graph_of(value->graph).node_origin(value->edge.node)); }
Ref name_of(ValueObject* value) { return graph_of(value->graph).node_name(value->edge.node); }

// The remedies. `x` stands for whatever the name is.
constexpr const char* kNewArray =
    "write `x = x + ...` (with the operator in place of the +), which makes a new array, or copy first: `x = x.copy()`";
constexpr const char* kCopy = "copy first: `x = x.copy()`";

const char* remedy_of(const char* operation) { return std::strpbrk(operation, "[(") ? kCopy : kNewArray; }

PYOP_COLD int writes_argument(ValueObject* value, const char* operation) {
    Ref here = origin_text(current_origin()), name = name_of(value);
    ValueObject* owner = value;
    bool view = graph_of(value->graph).node(value->edge.node).kind() != NodeKind::Input;
    for (ValueObject* other = value->storage ? value->storage->handles : nullptr; view && other; other = other->next)
        if (graph_of(other->graph).node(other->edge.node).kind() == NodeKind::Input) owner = other;
    Ref owner_name = name_of(owner), line = text_of_line(value);
    if (!here || !name || !owner_name || !line) return -1;
    Ref what = Ref::steal(view ? PyUnicode_FromFormat("'%U', a view made at %U of the argument%s%U%s", name.get(),
                                                      line.get(), owner == value ? "" : " '",
                                                      owner == value ? name.get() : owner_name.get(),
                                                      owner == value ? "" : "'")
                               : PyUnicode_FromFormat("the argument '%U'", name.get()));
    if (!what) return -1;
    refuse(PyExc_TypeError,
           "`%s` at %U writes into %U: a graph has no caller whose array it could change (pyop.compile(f) has one, and "
           "writes into it); %s, and return it if the caller is to have it",
           operation, here.get(), what.get(), remedy_of(operation));
    return -1;
}

PYOP_COLD int writes_shared(ValueObject* value, ValueObject* other, const char* operation, const char* relation) {
    Ref here = origin_text(current_origin()), name = name_of(value), line = text_of_line(value),
        other_name = name_of(other), other_line = text_of_line(other);
    if (!here || !name || !line || !other_name || !other_line) return -1;
    refuse(
        PyExc_TypeError,
        "`%s` at %U writes into '%U' (made at %U), and '%U' (made at %U) %s: a Value cannot be written where another "
        "shows the same memory, which would not see it; %s",
        operation, here.get(), name.get(), line.get(), other_name.get(), other_line.get(), relation,
        remedy_of(operation));
    return -1;
}

PYOP_COLD int writes_unknown(ValueObject* value, const char* operation, const char* whose) {
    Ref here = origin_text(current_origin()), name = name_of(value), line = text_of_line(value);
    if (!here || !name || !line) return -1;
    refuse(PyExc_TypeError, "`%s` at %U writes into '%U' (made at %U), %s; %s", operation, here.get(), name.get(),
           line.get(), whose, remedy_of(operation));
    return -1;
}

}  // namespace

void* Storage::operator new(size_t size) { return n_spares > 0 ? spare_storages[--n_spares] : ::operator new(size); }

void Storage::operator delete(void* memory) {
    if (kReuse && n_spares < kSpares)
        spare_storages[n_spares++] = memory;
    else
        ::operator delete(memory);
}

void leave_storage(ValueObject* value) {
    if (!value->storage) return;
    const ObjectLock lock(value->graph);
    Storage* storage = value->storage;
    if (!storage) return;
    (value->previous ? value->previous->next : storage->handles) = value->next;
    if (value->next) value->next->previous = value->previous;
    value->storage = nullptr;
    value->next = value->previous = nullptr;
    release(value->view);
    value->view = nullptr;
    if (!storage->handles) drop_if_unused(storage);
}

namespace {

void destroy(Storage* storage) {
    if (Storage* host = storage->host) {
        host->guests.remove(storage);
        release(storage->link);
    }
    storage->may_show.for_each([&](Storage* host) { host->shown_by.remove(storage); });
    storage->shown_by.for_each([&](Storage* guest) { guest->may_show.remove(storage); });
    delete storage;
}

void destroy_below(Storage* storage) {
    while (!storage->guests.empty()) destroy_below(storage->guests.first());
    destroy(storage);
}

void drop_if_unused(Storage* storage) {
    if (PYOP_LIKELY(!is_in_tree(storage))) {
        if (!storage->handles) destroy(storage);
        return;
    }
    Storage* top = top_of(storage);
    if (top->busy) return;
    bool used = false;
    for_each_below(top, [&](Storage* other) { used = used || other->handles; });
    if (!used) return destroy_below(top);
    // What one that is ahead holds, the others do not know yet.
    while (!storage->handles && storage->guests.empty() && storage->host && top->ahead != storage) {
        Storage* host = storage->host;
        destroy(storage);
        storage = host;
    }
}

}  // namespace

int bring_up_to_date(ValueObject* value) {
    if (PYOP_LIKELY(!value->storage)) return 0;
    const ObjectLock lock(value->graph);
    Storage* storage = value->storage;
    if (PYOP_LIKELY(!storage || value->version == storage->version)) return 0;
    if (catch_up(value->graph, storage) < 0) return -1;
    if (guarded([&] { return follow(value->graph, *storage, value->view); }, -1) < 0) return -1;
    value->edge = value->view ? value->view->edge : storage->root;
    value->version = storage->version;
    return 0;
}

// NumPy's scalars have no memory: what is made of one is a copy.
static bool has_no_memory(ValueObject* value) {
    return spec_of(reinterpret_cast<PyObject*>(value)).form == Form::Scalar;
}

void show_memory_of(ValueObject* view, ValueObject* base, bool read_only, bool certain) {
    const ObjectLock lock(base->graph);
    if (has_no_memory(base) && view->edge != base->edge) {
        leave_storage(view);
        view->flags |= read_only ? kReadOnly : 0;
        return;
    }
    Storage* storage = storage_of(base);
    enter(view, storage);
    view->flags |= (base->flags & kReadOnly) | (read_only ? kReadOnly : 0);
    if (view->edge == base->edge) {
        view->view = kept(base->view);
        return;
    }
    const auto inputs = graph_of(view->graph).node(view->edge.node).inputs();
    certain = certain && is_certain(base->view) && std::find(inputs.begin(), inputs.end(), base->edge) != inputs.end();
    view->view = new View{kept(base->view), view->edge.node,  view->edge.output, base->edge,
                          certain,          storage->version, view->edge,        1};
}

bool show_or_copy(ValueObject* view, ValueObject* base) {
    const ObjectLock lock(base->graph);
    if (has_no_memory(base)) {
        leave_storage(view);
        return true;
    }
    Storage* host = storage_of(base);
    const auto inputs = graph_of(view->graph).node(view->edge.node).inputs();
    const bool plain = std::find(inputs.begin(), inputs.end(), base->edge) != inputs.end();
    const bool writable = host->owner == Owner::Function || host->owner == Owner::Lent;
    if (!writable || base->flags & kReadOnly || !is_certain(base->view) || !plain) return false;
    leave_storage(view);
    Storage* guest = storage_of(view);
    guest->host = host;
    guest->link =
        new View{kept(base->view), view->edge.node, view->edge.output, base->edge, true, host->version, view->edge, 1};
    host->guests.add(guest);
    return true;
}

int catch_up(PyObject* graph, Storage* storage) {
    const ObjectLock lock(graph);
    if (PYOP_LIKELY(!is_in_tree(storage))) return 0;
    Storage* top = top_of(storage);
    if (!top->ahead || top->ahead == storage) return 0;
    top->busy = true;
    int failed = 0;
    for (Storage* written = top->ahead; !failed && written->host; written = written->host)
        failed = linked(graph, *written, true, written->host->root);
    if (!failed) {
        top->ahead = nullptr;
        ++top->version;
        failed = write_down_guests(graph, top);
    }
    top->busy = false;
    std::vector<Storage*> unused;
    for_each_below(top, [&](Storage* other) {
        if (!other->handles && other->guests.empty()) unused.push_back(other);
    });
    for (Storage* other : unused) drop_if_unused(other);
    return failed;
}

bool are_related(const Storage* a, const Storage* b) {
    return a && b && top_of(const_cast<Storage*>(a)) == top_of(const_cast<Storage*>(b));
}

void may_show_memory_of(ValueObject* result, std::span<PyObject* const> bases, Owner owner) {
    const ObjectLock lock(result->graph);
    leave_storage(result);
    Storage* storage = storage_of(result);
    storage->owner = owner;
    for (PyObject* base : bases) {
        if (!is_value(base) || has_no_memory(as_value(base))) continue;
        Storage* host = storage_of(as_value(base));
        if (storage->may_show.holds(host)) continue;
        host->shown_by.add(storage);
        storage->may_show.add(host);
    }
}

void give_memory_away(ValueObject* value) {
    const ObjectLock lock(value->graph);
    storage_of(value)->owner = Owner::Given;
}

int check_writable(PyObject* object, const char* operation) {
    ValueObject* value = as_value(object);
    const ObjectLock lock(value->graph);
    if (value->flags & kReadOnly && !is_certain(value->view))
        return writes_unknown(value, operation, "which may be a copy, or a view of what cannot be written");
    if (value->flags & kReadOnly) {
        PyErr_SetString(PyExc_ValueError, "output array is read-only");
        return -1;
    }
    if (value->flags & kFixed)
        return writes_unknown(value, operation, "which was looked up in its graph, and what a node gives is fixed");
    Storage* storage = value->storage;
    const bool input = graph_of(value->graph).node(value->edge.node).kind() == NodeKind::Input;
    if (PYOP_LIKELY(!storage)) return input ? writes_argument(value, operation) : 0;
    if (storage->owner == Owner::Argument) return writes_argument(value, operation);
    if (storage->owner == Owner::Given)
        return writes_unknown(
            value, operation,
            "which was given to a function that is none of NumPy's as an array, and may be kept there");
    if (storage->owner == Owner::Captured)
        return writes_unknown(value, operation, "which is an array that the function holds, or may show one");
    for (ValueObject* other = storage->handles; other; other = other->next)
        if (other != value &&
            (!is_certain(other->view) || !is_certain(value->view) || is_of_another_argument(value, other)))
            return writes_shared(value, other, operation, "may show the same memory, or a copy");
    if (storage->owner == Owner::Opaque)
        return writes_unknown(value, operation,
                              "which a function has returned that may return its argument, a view, or an array that it "
                              "keeps");
    if (const Storage* guest = storage->shown_by.first())
        return writes_shared(value, guest->handles, operation, "may show the same memory");
    return catch_up(value->graph, storage) < 0 ? -1 : enter_opened(value);
}

int move_root(PyObject* graph, Storage* storage, Edge root) {
    const ObjectLock lock(graph);
    go_ahead(storage);
    storage->root = root;
    ++storage->version;
    return catch_up(graph, storage);
}

thread_local PyObject* write_log = nullptr;

namespace {

int log_write(ValueObject* value) {
    if (PYOP_LIKELY(!write_log)) return 0;
    const Edge old = value->storage ? value->storage->root : value->edge;
    Ref row = Ref::steal(Py_BuildValue("OII", value, old.node, old.output));
    return row ? PyList_Append(write_log, row.get()) : -1;
}

}  // namespace

int write_whole(ValueObject* value, Edge made) {
    const ObjectLock lock(value->graph);
    if (!(value->storage && value->view && is_certain(value->view)) && log_write(value) < 0) return -1;
    if (Storage* storage = value->storage) {
        if (!is_certain(value->view)) {  // and nobody else is there
            leave_storage(value);
        } else if (value->view) {
            Ref handle = Ref::steal(value_new(value->graph, made));
            if (!handle) return -1;
            Ref done = Ref::steal(PyObject_CallFunctionObjArgs(
                up_calls.value_store_part, reinterpret_cast<PyObject*>(value), handle.get(), nullptr));
            return done ? 0 : -1;
        } else {
            go_ahead(storage);
            storage->root = made;
            value->version = ++storage->version;
        }
    }
    value->edge = made;
    return 0;
}

int write_root(ValueObject* value, Edge root) {
    const ObjectLock lock(value->graph);
    if (log_write(value) < 0) return -1;
    if (Storage* storage = value->storage) {
        go_ahead(storage);
        storage->root = root;
        ++storage->version;
        if (!value->view) value->version = storage->version;
    }
    if (!value->storage || !value->view) value->edge = root;
    return 0;
}

void lend_to_write(ValueObject* input) {
    const ObjectLock lock(input->graph);
    storage_of(input)->owner = Owner::Lent;
}

PyObject* shown_of_new(ValueObject* value, Edge whole) {
    const ObjectLock lock(value->graph);
    for (const View* view : views_of(value->view)) {
        if (view->base == whole) {
            whole = {view->node, view->output};
            continue;
        }
        const int64_t node = view_again(value->graph, *view, whole);
        if (node < 0) return nullptr;
        whole = {static_cast<uint32_t>(node), view->output};
    }
    return value_new(value->graph, whole, kFixed);
}

namespace {

bool may_show(const Storage* guest, const Storage* host) {
    bool found = guest->may_show.holds(host);
    guest->may_show.for_each([&](const Storage* other) { found = found || may_show(other, host); });
    return found;
}

}  // namespace

int shows_memory_of(const ValueObject* value, const ValueObject* base) {
    const ObjectLock lock(value->graph);
    if (!value->storage || !base->storage) return -1;
    if (value->storage == base->storage) return is_certain(value->view);
    return may_show(value->storage, base->storage) || are_related(value->storage, base->storage) ? 0 : -1;
}

}  // namespace pyop
