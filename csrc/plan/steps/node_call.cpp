// plan/steps/node_call.cpp: find what a node calls, through the wrappers that rebuild nested arguments.
#include "plan/steps/node_call.h"

#include <algorithm>

namespace pyop {

namespace {

// Null for a call whose arguments stand as the node's form says.
const TreeCallObject* tree_call_of(const PyNode& node) {
    if (!is_tree_call(node.fn()) || node.form()) return nullptr;
    const auto* call = reinterpret_cast<const TreeCallObject*>(node.fn());
    return call->layout->opaque ? nullptr : call;
}

}  // namespace

PyObject* NodeCall::function_of(const PyNode& node) {
    const TreeCallObject* call = tree_call_of(node);
    return call ? call->callee : node.fn();
}

NodeCall::NodeCall(const PyNode& node) : fn_(function_of(node)) {
    if (const TreeCallObject* call = tree_call_of(node)) {
        layout_ = call->layout;
        for (const TreeItem& item : layout_->positional) positional_.push_back(argument_of(item));
        for (size_t i = 0; i < layout_->keywords.size(); ++i)
            keywords_.emplace_back(PyTuple_GET_ITEM(layout_->kwnames.get(), static_cast<Py_ssize_t>(i)),
                                   argument_of(layout_->keywords[i]));
        return;
    }
    const CallForm* form = node.form();
    const size_t n = form ? form->order.size() : node.inputs().size();
    const size_t n_positional = n - static_cast<size_t>(form ? form->n_keywords() : 0);
    for (size_t i = 0; i < n; ++i) {
        const int32_t code = form ? form->order[i] : static_cast<int32_t>(i);
        NodeArgument argument;
        if (code >= 0)
            argument.input = code;
        else
            argument.value = PyTuple_GET_ITEM(form->statics.get(), ~code);
        if (i < n_positional)
            positional_.push_back(argument);
        else
            keywords_.emplace_back(PyTuple_GET_ITEM(form->kwnames.get(), static_cast<Py_ssize_t>(i - n_positional)),
                                   argument);
    }
}

NodeArgument NodeCall::argument_of(const TreeItem& item) const {
    NodeArgument argument;
    if (item.kind == TreeItem::Array)
        argument.input = item.index;
    else if (item.has_arrays)
        argument.nested = &item;
    else
        argument.value = item.object.get();
    return argument;
}

bool NodeCall::bind(std::span<const std::string_view> parameters, std::vector<NodeArgument>& arguments) const {
    const auto place_of = [&](std::string_view name) {
        return static_cast<size_t>(std::find(parameters.begin(), parameters.end(), name) - parameters.begin());
    };
    if (positional_.size() > place_of("*")) return false;
    arguments.assign(positional_.begin(), positional_.end());
    arguments.resize(parameters.size());
    for (const auto& [name, argument] : keywords_) {
        Py_ssize_t length;
        const char* text = PyUnicode_AsUTF8AndSize(name, &length);
        if (!text) {
            PyErr_Clear();
            return false;
        }
        const size_t k = place_of({text, static_cast<size_t>(length)});
        if (k == parameters.size() || arguments[k].given()) return false;
        arguments[k] = argument;
    }
    return true;
}

}  // namespace pyop
