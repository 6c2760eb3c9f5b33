// graph/storage.h: what memory a Value shows, as far as somebody else may see a write to it.
//
// A Value that a computation has made shows memory of its own: it has no Storage. One is made when a second handle
// comes to show the same memory (a view), or may (a function returned what could be its argument). Inputs of the graph
// show the arrays of a caller. A Storage lists the handles that are alive, for what nobody can read any more cannot be
// wrong.
//
// Threads: attached only; the GIL guards it.
#pragma once

#include <algorithm>
#include <vector>

#include "graph/value.h"

namespace pyop {

enum class Owner : uint8_t {
    Function,  // made by the function that is traced
    Argument,  // a caller's
    Captured,  // an array that the function found somewhere
    Opaque,    // whatever a function of the user's returned: may be the memory of its arguments
};

struct Storage;

// A few of them: the first stands in the list itself, since a call of an op adds one for its one argument.
class Storages {
  public:
    bool empty() const { return !first_; }
    Storage* first() const { return first_; }
    bool holds(const Storage* storage) const {
        return first_ == storage || std::find(rest_.begin(), rest_.end(), storage) != rest_.end();
    }
    void add(Storage* storage) {
        if (first_)
            rest_.push_back(storage);
        else
            first_ = storage;
    }
    void remove(const Storage* storage) {
        if (first_ != storage) {
            std::erase(rest_, storage);
            return;
        }
        first_ = rest_.empty() ? nullptr : rest_.back();
        if (first_) rest_.pop_back();
    }
    template <typename F>
    void for_each(const F& do_with) const {
        if (first_) do_with(first_);
        for (Storage* storage : rest_) do_with(storage);
    }

  private:
    Storage* first_ = nullptr;
    std::vector<Storage*> rest_;
};

// Each result of an op has one for as long as it is looked at, so that memory for a few is kept.
struct Storage {
    static void* operator new(size_t size);
    static void operator delete(void* memory);

    Owner owner = Owner::Function;
    ValueObject* handles = nullptr;   // alive, linked by ValueObject::next
    Storages may_show;                // what an Opaque one may be the memory of
    Storages shown_by;                // the reverse
};

// Makes `view`, which nobody has seen yet, another handle of the memory of `base`.
void show_memory_of(ValueObject* view, ValueObject* base, bool read_only);

// Makes `result`, which nobody has seen yet, one that may show the memory of any of `bases` (Values; others are passed
// over).
void may_show_memory_of(ValueObject* result, std::span<PyObject* const> bases, Owner owner);

// Leaves the storage: for a handle that is destroyed.
void leave_storage(ValueObject* value);

// Whether a write by `operation` ("+=") to the memory of a Value is seen by this handle alone. Else -1 with an error
// that names both lines; what NumPy refuses too is a ValueError, anything else is noted as a refusal.
int check_writable(PyObject* value, const char* operation);

}  // namespace pyop
