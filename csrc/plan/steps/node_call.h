// plan/steps/node_call.h: NodeCall, the arguments of a node's function by the names of its parameters.
#pragma once

#include <initializer_list>
#include <vector>

#include "graph/node.h"

namespace pyop {

// What is passed for one parameter: an input of the node, or a static object, or nothing.
struct NodeArgument {
    PyObject* value = nullptr;  // static; borrowed from the node
    int64_t input = -1;

    bool given() const { return value || input >= 0; }
    bool is_static() const { return value; }
    // Not given, or None.
    bool none() const { return input < 0 && (!value || value == Py_None); }
};

class NodeCall {
  public:
    // The function that is called in the end, and its arguments.
    explicit NodeCall(const PyNode& node);

    PyObject* fn() const { return fn_; }
    // The arguments in the order of these parameters. False if the call has any other.
    bool bind(std::initializer_list<const char*> parameters, std::vector<NodeArgument>& arguments) const;

  private:
    PyObject* fn_;
    std::vector<NodeArgument> positional_;
    std::vector<std::pair<PyObject*, NodeArgument>> keywords_;
};

}  // namespace pyop
