// graph/storage.h: tell what memory a Value shows, and what it is after a write there.
//
// A Value that a computation has made shows memory of its own: it has no Storage. One is made when a second handle
// comes to show the same memory (a view), or may (a function returned what could be its argument). Inputs of the graph
// show the arrays of a caller. A Storage lists the handles that are alive, for what nobody can read any more cannot be
// wrong.
//
// A graph only grows, so memory that was written is another value: the storage's `root` moves to it and its version is
// counted up. A handle whose version is older finds its value again, when it is read, by the nodes that made its view.
//
// Threads: attached only; the lock of the graph guards it where there is no GIL.
#pragma once

#include <algorithm>
#include <vector>

#include "graph/value.h"

namespace pyop {

enum class Owner : uint8_t {
    Function,  // made by the function that is traced
    Argument,  // a caller's
    Lent,      // a caller's, who gets back what it holds in the end
    Captured,  // an array that the function found somewhere
    Given,     // made by the function, and given away as an array
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

// How a handle shows a storage: output `output` of node `node`, which is a view of what `parent` shows. Shared by the
// handles that were made of one another; counted, since handles die in any order.
struct View {
    View* parent;        // owned; null: of the whole
    uint32_t node;
    uint32_t output;
    Edge base;           // the input of the node that it is a view of
    bool certain;        // NumPy makes views from the whole to here, however the memory lies; else nobody knows
    uint32_t version;    // of the storage, when `edge` was right
    Edge edge;
    uint32_t references;
};

// Each result of an op has one for as long as it is looked at, so that memory for a few is kept.
struct Storage {
    static void* operator new(size_t size);
    static void operator delete(void* memory);

    Owner owner = Owner::Function;
    uint32_t version = 0;
    Edge root;                        // what the whole memory holds now
    ValueObject* handles = nullptr;   // alive, linked by ValueObject::next
    Storages may_show;                // what an Opaque one may be the memory of
    Storages shown_by;                // the reverse
    // Whether a reshaped array is a view or a copy is known when the graph runs: it has a Storage that may be a part of
    // another, its host. Such storages are a tree, of which one may be ahead: it was written, and what the others hold
    // then is written down when one of them is read or written.
    Storage* host = nullptr;
    View* link = nullptr;  // owned: how it shows its host
    Storages guests;  // the reverse of host
    Storage* ahead = nullptr;  // of the topmost of a tree; null: none
    bool busy = false;  // likewise: it is being written down, and nothing of it may go
};

// Whether a Value (of this view, or null) is known to show its memory, and not a copy of it.
inline bool is_certain(const View* view) { return !view || view->certain; }

// Makes `view`, which nobody has seen yet, another handle of the memory of `base`. `certain`: NumPy gives a view there,
// whatever memory it is.
void show_memory_of(ValueObject* view, ValueObject* base, bool read_only, bool certain);

// As show_memory_of, where NumPy gives a view or a copy and which of them is known when the graph runs. False if the
// memory of `base` is not the function's own, so that nothing was done.
bool show_or_copy(ValueObject* view, ValueObject* base);

// Before the root of a storage is read or written: brings it up to what another of its tree has written. 0, or -1 with
// the error set.
int catch_up(PyObject* graph, Storage* storage);

// Whether two storages are of one tree.
bool are_related(const Storage* a, const Storage* b);

// Makes `result`, which nobody has seen yet, one that may show the memory of any of `bases` (Values; others are passed
// over).
void may_show_memory_of(ValueObject* result, std::span<PyObject* const> bases, Owner owner);

// Leaves the storage: for a handle that is destroyed.
void leave_storage(ValueObject* value);

// Whether it is known who sees a write by `operation` ("+=") to the memory of a Value. Else -1 with an error that names
// both lines; what NumPy refuses too is a ValueError, anything else is noted as a refusal.
int check_writable(PyObject* value, const char* operation);

// A copy of what it holds was given to somebody who may take it for this memory: from now on nobody may write to it.
void give_memory_away(ValueObject* value);

// After check_writable: `made` is what a Value holds now, written there by `+=` or its like. 0, or -1 with the error
// set.
int write_whole(ValueObject* value, Edge made);

// After check_writable: `root` is what the whole memory that the Value shows holds now. 0, or -1 with the error set.
int write_root(ValueObject* value, Edge root);

// The whole memory holds `root`, which is what it held before by another name. 0, or -1 with the error set.
int move_root(PyObject* graph, Storage* storage, Edge root);

// The list to which every write on this thread is added, as (the handle, node and output of what the whole memory held
// before), while the body of a loop is written down. Owned; null: none.
extern thread_local PyObject* write_log;

// The nodes that lead from the whole memory to what a view shows, outermost first; for Python as a list of a node,
// which of its outputs, and of what it is a view.
std::vector<const View*> views_of(const View* innermost);
Ref views_as_list(PyObject* graph, const View* innermost);

// Makes an input, which nobody has seen yet, one that the function may write into.
void lend_to_write(ValueObject* input);

// What the Value shows of the memory of its storage, were that `whole`. New Value, or null with the error set.
PyObject* shown_of_new(ValueObject* value, Edge whole);

// Whether NumPy has the array itself there, or a view of it, however it lies: 1, it may: 0, no: -1.
int shows_memory_of(const ValueObject* value, const ValueObject* base);

}  // namespace pyop
