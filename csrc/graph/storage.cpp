// graph/storage.cpp: who shows which memory, and the refusals of writes that somebody else would see.
#include "graph/storage.h"

#include "runtime/refusal.h"

namespace pyop {

namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kReuse = false;  // so that it sees what is used too late
#else
constexpr bool kReuse = true;
#endif
constexpr size_t kSpares = 64;
void* spares[kSpares];
size_t n_spares = 0;

Storage* storage_of(ValueObject* value) {
    if (value->storage) return value->storage;
    auto* storage = new Storage;
    if (graph_of(value->graph).node(value->edge.node).kind() == NodeKind::Input) storage->owner = Owner::Argument;
    storage->handles = value;
    value->storage = storage;
    return storage;
}

void enter(ValueObject* value, Storage* storage) {
    leave_storage(value);
    value->storage = storage;
    value->next = storage->handles;
    if (value->next) value->next->previous = value;
    storage->handles = value;
}

Ref text_of_line(ValueObject* value) { return origin_text(graph_of(value->graph).node_origin(value->edge.node)); }
Ref name_of(ValueObject* value) { return graph_of(value->graph).node_name(value->edge.node); }

// The remedies. `x` stands for whatever the name is.
constexpr const char* kNewArray =
    "write `x = x + ...` (with the operator in place of the +), which makes a new array, or copy first: `x = x.copy()`";

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
    refuse(
        PyExc_TypeError,
        "`%s` at %U writes into %U: a function that is traced cannot change the arrays of its caller; %s, and return "
        "it if the caller is to have it",
        operation, here.get(), what.get(), kNewArray);
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
        operation, here.get(), name.get(), line.get(), other_name.get(), other_line.get(), relation, kNewArray);
    return -1;
}

PYOP_COLD int writes_unknown(ValueObject* value, const char* operation, const char* whose) {
    Ref here = origin_text(current_origin()), name = name_of(value), line = text_of_line(value);
    if (!here || !name || !line) return -1;
    refuse(PyExc_TypeError, "`%s` at %U writes into '%U' (made at %U), %s; %s", operation, here.get(), name.get(),
           line.get(), whose, kNewArray);
    return -1;
}

}  // namespace

void* Storage::operator new(size_t size) { return n_spares > 0 ? spares[--n_spares] : ::operator new(size); }

void Storage::operator delete(void* memory) {
    if (kReuse && n_spares < kSpares)
        spares[n_spares++] = memory;
    else
        ::operator delete(memory);
}

void leave_storage(ValueObject* value) {
    Storage* storage = value->storage;
    if (!storage) return;
    (value->previous ? value->previous->next : storage->handles) = value->next;
    if (value->next) value->next->previous = value->previous;
    value->storage = nullptr;
    value->next = value->previous = nullptr;
    if (storage->handles) return;
    storage->may_show.for_each([&](Storage* host) { host->shown_by.remove(storage); });
    storage->shown_by.for_each([&](Storage* guest) { guest->may_show.remove(storage); });
    delete storage;
}

void show_memory_of(ValueObject* view, ValueObject* base, bool read_only) {
    enter(view, storage_of(base));
    view->flags |= (base->flags & (kReadOnly | kReadOnlyNow)) | (read_only ? kReadOnly : 0);
}

void may_show_memory_of(ValueObject* result, std::span<PyObject* const> bases, Owner owner) {
    leave_storage(result);
    Storage* storage = storage_of(result);
    storage->owner = owner;
    for (PyObject* base : bases) {
        if (!is_value(base)) continue;
        Storage* host = storage_of(as_value(base));
        if (storage->may_show.holds(host)) continue;
        host->shown_by.add(storage);
        storage->may_show.add(host);
    }
}

int check_writable(PyObject* object, const char* operation) {
    ValueObject* value = as_value(object);
    if (value->flags & kReadOnly) {
        PyErr_SetString(PyExc_ValueError, "output array is read-only");
        return -1;
    }
    if (value->flags & kReadOnlyNow) {
        Ref here = origin_text(current_origin());
        if (here)
            refuse(PyExc_ValueError, "output array is read-only: `%s` at %U writes into an argument; %s", operation,
                   here.get(), kNewArray);
        return -1;
    }
    if (value->flags & kFixed)
        return writes_unknown(value, operation, "which was looked up in its graph, and what a node gives is fixed");
    const Storage* storage = value->storage;
    const bool input = graph_of(value->graph).node(value->edge.node).kind() == NodeKind::Input;
    if (PYOP_LIKELY(!storage)) return input ? writes_argument(value, operation) : 0;
    if (storage->owner == Owner::Argument) return writes_argument(value, operation);
    if (storage->owner == Owner::Captured)
        return writes_unknown(value, operation,
                              "which may be a view of an array that the function has found somewhere");
    ValueObject* other = storage->handles == value ? value->next : storage->handles;
    if (other) return writes_shared(value, other, operation, "shows the same memory");
    if (storage->owner == Owner::Opaque)
        return writes_unknown(value, operation,
                              "which a function has returned that may return its argument, a view, or an array that it "
                              "keeps");
    if (const Storage* guest = storage->shown_by.first())
        return writes_shared(value, guest->handles, operation, "may show the same memory");
    return 0;
}

}  // namespace pyop
