// plan/captured.h: what a function had read beside its arguments when it was traced, held against what it would read
// now.
//
// A plan has the numbers of the trace in it: of globals, variables of the closure, attributes, items of lists and
// dicts, elements of arrays. A call of the compiled function compares them by address, and small arrays by their bytes,
// so that a plan made for others is dropped and the function traced again. No Python code runs in that.
//
// Threads: attached only; the GIL guards it.
#pragma once

#include <vector>

#include "array/numpy.h"
#include "runtime/ref.h"

namespace pyop {

enum class ReadingKind : char {
    Name = 'n',  // dict, name: the value of a global, or of an attribute in an instance's dict; null if there is none
    Cell = 'c',  // cell: its content; null if it is empty
    Type = 't',  // class, name: an attribute of a class
    Items = 'i',  // list or dict: all of its items, keys and values in turn for a dict
    Bytes = 'b',  // contiguous array: its elements
};

class Captured {
  public:
    // `readings`: a tuple of (kind, owner, key, value), as python/pyop/compiling/readings.py makes it. -1 with the
    // error set if it is none.
    int set(PyObject* readings);
    PYOP_INLINE bool unchanged() const { return rows_.empty() || compare(); }
    int traverse(visitproc visit, void* arg) const;

  private:
    struct Row {
        ReadingKind kind;
        PyObject *owner, *key, *value;  // borrowed from `readings_`
    };
    static bool holds(const Row& row);
    bool compare() const;

    Ref readings_;
    std::vector<Row> rows_;
};

}  // namespace pyop
