// plan/steps/node_call.h: hold the arguments of a node's function by the names of its parameters (NodeCall).
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "array/call/tree_call.h"
#include "graph/node.h"

namespace pyop {

// What is passed for one parameter: an input of the node, a container of inputs, a static object, or nothing.
struct NodeArgument {
    PyObject* value = nullptr;         // static, but for Dims in it; borrowed from the node
    int64_t input = -1;
    const TreeItem* nested = nullptr;  // holds inputs

    bool given() const { return value || computed(); }
    bool computed() const { return input >= 0 || nested; }
    // Not given, or None.
    bool none() const { return !computed() && (!value || value == Py_None); }
};

class NodeCall {
  public:
    // The function that is called in the end, and its arguments.
    explicit NodeCall(const PyNode& node);

    PyObject* fn() const { return fn_; }
    // The same, without reading the arguments. Borrowed.
    static PyObject* function_of(const PyNode& node);
    // How nested arguments and symbolic sizes are put in; null if there are none.
    const TreeCallObject::Layout* layout() const { return layout_; }
    // The arguments in the order of these parameters; what stands behind "*" can only be a keyword. False if the call
    // has any other.
    bool bind(std::span<const std::string_view> parameters, std::vector<NodeArgument>& arguments) const;
    bool bind(std::initializer_list<std::string_view> parameters, std::vector<NodeArgument>& arguments) const {
        return bind(std::span(parameters.begin(), parameters.size()), arguments);
    }

  private:
    NodeArgument argument_of(const TreeItem& item) const;

    PyObject* fn_;
    const TreeCallObject::Layout* layout_ = nullptr;
    std::vector<NodeArgument> positional_;
    std::vector<std::pair<PyObject*, NodeArgument>> keywords_;
};

}  // namespace pyop
