// array/call/tree_call.h: call a function that takes its arrays inside tuples, lists and dicts (CallOnTree).
//
// The core passes arrays as a flat list. A CallOnTree puts them, and the static arguments, where the function has
// them, and replaces symbolic sizes by numbers taken from the shapes of arrays. It never changes once it is made.
// python/pyop/declare/rebuild.py makes them.
#pragma once

#include <vector>

#include "array/contract/size_poly.h"
#include "runtime/ref.h"

namespace pyop {

struct TreeItem {
    enum Kind : uint8_t { Static, Array, Size, Tuple, List, Dict, Slice } kind;
    bool has_arrays = false;
    uint32_t index = 0;            // of an array, or of a size
    Ref object;                    // what it was made from: for Static what is passed
    Ref keys;                      // of a Dict: tuple
    std::vector<TreeItem> items;
};

struct TreeCallObject {
    // A symbolic size among the arguments.
    struct SizeUse {
        Ref dim;
        bool is_poly;
        SizePoly poly;  // of the carriers
    };
    struct Carrier {
        uint32_t array;
        int axis;  // -1: the array is the number itself, the counter of a loop
    };
    struct Layout {
        uint32_t n_arrays = 0;
        std::vector<TreeItem> positional, keywords;
        Ref kwnames;  // tuple, or empty
        std::vector<SizeUse> sizes;
        std::vector<Carrier> carriers;
        Ref carrier_names;
        bool opaque = false;  // arrays inside containers of other kinds: left to TreeDef.unflatten
    };

    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject* fn;      // called with the tree
    PyObject* tree;    // TreeDef of its (args, kwargs)
    PyObject* leaves;  // tuple: static objects, and marks where arrays stand
    PyObject* callee;  // called in the end: `fn`, or what it would call with sizes put in
    PyObject* key;     // equal for calls that do the same
    Layout* layout;
};

extern PyTypeObject* tree_call_type;
int tree_call_init(PyObject* module);

inline bool is_tree_call(PyObject* o) { return Py_TYPE(o) == tree_call_type; }

// What the call gives with another function in place of the one that it calls in the end. New reference, or null with
// the error set. Its layout must not be opaque.
PyObject* tree_call_as(const TreeCallObject& call, PyObject* callee, PyObject* const* arrays);

// The numbers of the symbolic sizes for these arrays. False, without an error, if C++ cannot tell.
bool tree_sizes(const TreeCallObject::Layout& layout, PyObject* const* arrays, npy_intp* sizes);

}  // namespace pyop
