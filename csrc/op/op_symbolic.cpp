// op/op_symbolic.cpp: add a node for a call with Values among its arguments, and return its outputs.
#include "array/native/native_kernel.h"
#include "graph/build.h"
#include "graph/storage.h"
#include "op/op.h"
#include "runtime/errors.h"
#include "runtime/up_calls.h"

namespace pyop {

namespace {

int refuse_symbolic_statics(const OpObject& op, const BoundArguments& bound) {
    for (size_t i = 0; i < bound.static_values.size(); ++i) {
        if (!is_value(bound.static_values[i])) continue;
        const Ref text = Ref::steal(text_of_value(bound.static_values[i]));
        if (!text) return -1;
        PyErr_Format(PyExc_TypeError,
                     "keyword argument '%U' of %s is static: it is stored with the node, so it must be a concrete "
                     "Python value, not %U; make the parameter positional to pass arrays",
                     bound.static_names[i], OpCaller(op).description().c_str(), text.get());
        return -1;
    }
    if (!bound.out || bound.out == Py_None) return 0;
    PyErr_Format(PyExc_TypeError, "out= of %s cannot be given while a graph is built; give it to the plan",
                 OpCaller(op).description().c_str());
    return -1;
}

// What an op whose gradient rule takes residuals puts in its place in a graph: a function that returns one
// array more, the context, which the backward node reads. (fn, contract, spec of the context), or None.
int with_context(const Contract& c, Ref& saving) {
    if (!c.gradient) return 0;
    saving = Ref::steal(PyObject_GetAttr(c.gradient, up_attributes.saving));
    if (!saving) return -1;
    if (saving.get() == Py_None) {
        saving = Ref();
    } else if (!PyTuple_Check(saving.get()) || PyTuple_GET_SIZE(saving.get()) != 3 ||
               !is_contract(PyTuple_GET_ITEM(saving.get(), 1))) {
        PyErr_SetString(PyExc_TypeError, "saving must be (function, contract, spec) or None");
        return -1;
    }
    return 0;
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
    const size_t n_out = specs.size();
    Ref saving;
    if (with_context(c, saving) < 0) return nullptr;
    if (saving) {
        ValueSpec context;
        if (spec_from_python(PyTuple_GET_ITEM(saving.get(), 2), context) < 0) return nullptr;
        specs.push_back(graph_of(graph).specs().intern(std::move(context)));
    }
    const bool native = !saving && is_native_kernel(op.call_fn);  // it writes to no argument, nor returns one
    call.lends = !native;
    call.fn = SharedRef::borrow(saving ? PyTuple_GET_ITEM(saving.get(), 0) : op.call_fn);
    call.contract = SharedRef::borrow(saving ? PyTuple_GET_ITEM(saving.get(), 1) : declared.get());
    if (!call.fn || !call.contract) return nullptr;
    const int64_t added = add_call(graph, std::move(call), edges, specs, op.stateful, op.name);
    if (added < 0) return nullptr;
    const auto node = static_cast<uint32_t>(added);
    if (n_out == 0) return node_handle_new(graph, node);
    const Contract& form = *reinterpret_cast<const Contract*>(promised.get());
    if (n_out == 1 && form.form == ResultForm::Single) {
        PyObject* value = value_new(graph, {node, 0});
        if (value && !native) may_show_memory_of(as_value(value), bound.arrays, Owner::Opaque);
        return value;
    }
    std::vector<PyObject*> values;
    for (uint32_t k = 0; k < n_out; ++k) {
        values.push_back(value_new(graph, {node, k}));
        if (values.back()) {
            if (!native) may_show_memory_of(as_value(values.back()), bound.arrays, Owner::Opaque);
            continue;
        }
        for (PyObject* value : values) Py_XDECREF(value);
        return nullptr;
    }
    return package_steal(form, values.data());
}

}  // namespace pyop
