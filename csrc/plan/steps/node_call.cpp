#include "plan/steps/node_call.h"

namespace pyop {

NodeCall::NodeCall(const PyNode& node) : fn_(node.fn()) {
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

bool NodeCall::bind(std::initializer_list<const char*> parameters, std::vector<NodeArgument>& arguments) const {
    if (positional_.size() > parameters.size()) return false;
    arguments.assign(positional_.begin(), positional_.end());
    arguments.resize(parameters.size());
    for (const auto& [name, argument] : keywords_) {
        size_t k = 0;
        for (const char* parameter : parameters) {
            if (PyUnicode_CompareWithASCIIString(name, parameter) == 0) break;
            ++k;
        }
        if (k == parameters.size() || arguments[k].given()) return false;
        arguments[k] = argument;
    }
    return true;
}

}  // namespace pyop
