// op/op_symbolic.cpp: a call with Values among its arguments adds a node and returns its outputs.
#include "graph/build.h"
#include "op/op.h"
#include "runtime/errors.h"

namespace pyop {

namespace {

int refuse_symbolic_statics(const OpObject& op, const BoundArguments& bound) {
    for (size_t i = 0; i < bound.static_values.size(); ++i) {
        if (!is_value(bound.static_values[i])) continue;
        PyErr_Format(PyExc_TypeError,
                     "keyword argument '%U' of %s is static: it is stored with the node, so it must be a concrete "
                     "Python value, not %R; make the parameter positional to pass arrays",
                     bound.static_names[i], OpCaller(op).description().c_str(), bound.static_values[i]);
        return -1;
    }
    if (!bound.out || bound.out == Py_None) return 0;
    PyErr_Format(PyExc_TypeError, "out= of %s cannot be given while a graph is built; give it to the plan",
                 OpCaller(op).description().c_str());
    return -1;
}

}  // namespace

PyObject* call_symbolically(OpObject& op, PyObject* graph, const BoundArguments& bound) {
    const Ref declared = Ref::borrow(op.contract);  // an abstract rule may replace it
    const Contract& c = op.declared();
    const OpCaller caller(op);
    std::vector<Edge> edges;
    std::vector<uint32_t> specs;
    Ref promised;  // how the outputs come back
    PyNode::Call call;
    if (refuse_symbolic_statics(op, bound) < 0 || make_form(bound, call.form) < 0 ||
        edges_of(graph, bound.arrays.data(), static_cast<Py_ssize_t>(bound.arrays.size()), &c, caller, edges) < 0 ||
        infer_outputs(graph, c, edges, call.form.get(), specs, &promised, caller) < 0)
        return nullptr;
    call.fn = SharedRef::borrow(op.call_fn);
    call.contract = SharedRef::borrow(declared.get());
    if (!call.fn || !call.contract) return nullptr;
    const int64_t added = add_call(graph, std::move(call), edges, specs, op.stateful, op.name);
    if (added < 0) return nullptr;
    const auto node = static_cast<uint32_t>(added);
    if (specs.empty()) return node_handle_new(graph, node);
    const Contract& form = *reinterpret_cast<const Contract*>(promised.get());
    if (specs.size() == 1 && form.form == ResultForm::Single) return value_new(graph, {node, 0});
    std::vector<PyObject*> values;
    for (uint32_t k = 0; k < specs.size(); ++k) {
        values.push_back(value_new(graph, {node, k}));
        if (values.back()) continue;
        for (PyObject* value : values) Py_XDECREF(value);
        return nullptr;
    }
    return package_steal(form, values.data());
}

}  // namespace pyop
