// plan/steps/view_reading.h: tell which calls of nodes are views, and of what kind.
#pragma once

#include <vector>

#include "array/call/tree_call.h"
#include "array/view/view_recipe.h"
#include "graph/passes/rewrite.h"

namespace pyop {

// A node whose results are views of one of its inputs.
struct ViewCall {
    uint32_t input = 0;
    // The symbolic sizes that the recipes mention, found in the shapes of the node's inputs; owned by its function.
    // Null if there are none.
    const TreeCallObject::Layout* sizes = nullptr;
    std::vector<ViewRecipe> recipes;  // one a result
};

// Whether a node calls a function that makes views: a quick look, before its arguments are read.
bool makes_view(const Rewrite& r, uint32_t node);

// Reads the call of a node. False if its function makes no view, or if its arguments are not understood: then it is
// called as it is. No error is set.
bool read_view(const Rewrite& r, uint32_t node, ViewCall& view);

// What an index of integers, slices, None and an ellipsis shows of an array of `ndim` dimensions; `sizes` as in
// ViewCall. False, without an error, for any other key.
bool read_key(PyObject* key, int ndim, const TreeCallObject::Layout* sizes, ViewRecipe& recipe);

}  // namespace pyop
