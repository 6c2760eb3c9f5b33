// plan/captured.h: compare what a function had read beside its arguments when it was traced with what it would read
// now.
//
// A plan has the numbers of the trace in it: of globals, variables of the closure, attributes, items of containers,
// elements of arrays. A call of the compiled function compares them by address, and memory by its bytes, so that a
// plan made for others is dropped and the function traced again. No Python code runs in that. What is in one dict or
// class is looked up again only once the interpreter says that this has changed, where it does say so: an ordinary
// function is held against a few words of memory at each call.
//
// Threads: attached only. What is compared may be changed by others at any time: a word is read at once, a container
// under its own lock, and each is held against an object that is kept here, so that an address tells all. What is
// remembered of a version was read before what it stands for.
#pragma once

#include <vector>

#include "array/numpy.h"
#include "runtime/ref.h"
#include "runtime/without_gil.h"

namespace pyop {

// Of each: its owner, its key, its value; Ellipsis stands for no value.
enum class ReadingKind : char {
    Name = 'n',      // dict, text: the value of a global, or of an attribute in an instance's dict
    Cell = 'c',      // cell, -: its content
    Type = 't',      // class, text: an attribute of a class
    Items = 'i',     // list or dict, -: all of its items, keys and values in turn for a dict, in a tuple
    Size = 'z',      // dict, -: how many items it has
    Walked = 'o',    // set, deque, ordered dict, class to iterate it by: what comes, in a tuple
    Elements = 'b',  // array, array of its form: its elements, as bytes
    Buffer = 'u',    // what has a buffer, -: its bytes
    Member = 'm',    // instance or weak reference to it, member descriptor: a slot of it
    Class = 'k',     // instance or weak reference to it, -: its class
    Entry = 'h',     // dict, a key that is compared without Python code: its value
    Context = 'v',   // context variable, -: its value
    Function = 'f',  // function, -: its code, defaults and defaults of keywords, in a tuple
    Weak = 'w',      // weak reference, -: whether it is alive
};

class Captured {
  public:
    // `readings`: a tuple of (kind, owner, key, value, label), as python/pyop/tracing/places.py makes them. -1 with
    // the error set if it is none.
    int set(PyObject* readings);
    // Whether that is so at a glance: nothing has to be looked up.
    PYOP_INLINE bool plainly_unchanged() const {
        for (const Word& word : words_)
            if (PYOP_UNLIKELY(word.now() != word.expected)) return false;
        return !more_;
    }
    PYOP_INLINE bool unchanged() const {
        for (const Word& word : words_)
            if (PYOP_UNLIKELY(word.now() != word.expected) && !holds(word)) return false;
        return PYOP_LIKELY(!more_) || compare();
    }
    // Whether an array is among those whose elements it read.
    bool reads(PyObject* array) const;
    // Whether there are elements that others may write.
    bool reads_elements() const { return !rows_.empty() && finds_elements(); }
    // Whether elements that it read may lie where this array does.
    bool may_lie_in(PyArrayObject* array) const;
    int traverse(visitproc visit, void* arg) const;

  private:
    struct Row {
        ReadingKind kind;
        PyObject *owner, *key, *value;  // borrowed from `readings_`
    };
    // What is read of one dict or class.
    struct Owner {
        PyObject* owner;
        std::vector<Row> rows;
        mutable Relaxed<uint64_t> version = 0;  // of a class when they were the same
    };
    // A word of memory that tells whether something was changed: an address, or the version of a dict.
    struct Word {
        const void* where;  // in an object of `readings_`
        mutable Relaxed<uint64_t> expected;
        std::vector<Row> rows{};  // of the dict, which may have been changed elsewhere
        uint64_t now() const {
            uint64_t word;
            __atomic_load(static_cast<const uint64_t*>(where), &word, __ATOMIC_ACQUIRE);
            return word;
        }
    };
    static bool holds(const Row& row);
    static bool holds(const std::vector<Row>& rows);
    static bool holds(const Owner& owner);
    static bool holds(const Word& word);
    bool compare() const;
    bool finds_elements() const;
    void watch(std::vector<Owner> owners, const std::vector<Row>& rows);

    Ref readings_;
    std::vector<Word> words_;
    std::vector<Owner> owners_;  // classes, and dicts without a version
    std::vector<Row> rows_;  // the others
    bool more_ = false;  // there are owners or rows
};

// The elements of an array as they lie, or in C order where they do not lie together. Null with the error set.
PyObject* elements_new(PyArrayObject* array);
// Whether they are these: 1, 0, or -1 with the error set.
int same_elements(PyArrayObject* array, PyObject* bytes);

}  // namespace pyop
