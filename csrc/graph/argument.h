// graph/argument.h: hold the arguments of the call of a PyNode, in the order of the function's parameters.
#pragma once

#include "graph/node.h"

namespace pyop {

// An input of the node, or a static object.
struct Argument {
    int32_t input;          // -1: static
    PyObject* constant;     // borrowed
};
inline Argument argument_of(const PyNode& node, size_t position) {
    const int32_t code = node.form() ? node.form()->order[position] : static_cast<int32_t>(position);
    if (code >= 0) return {code, nullptr};
    return {-1, PyTuple_GET_ITEM(node.form()->statics.get(), ~code)};
}
inline size_t n_arguments(const PyNode& node) { return node.form() ? node.form()->order.size() : node.inputs().size(); }

}  // namespace pyop
