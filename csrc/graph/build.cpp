// graph/build.cpp: find which graph a call belongs to, and add constants and calls to it.
#include "graph/build.h"

#include <vector>

#include "array/call/arguments.h"
#include "array/call/checked_call.h"
#include "array/protocol/containers.h"
#include "runtime/errors.h"
#include "runtime/lazy.h"

namespace pyop {

constinit Tally graphs_being_built;

namespace {
thread_local std::vector<PyObject*> stack;  // owned references; null entries mean "none"
}

PyObject* graph_being_built() { return graphs_being_built != 0 && !stack.empty() ? stack.back() : nullptr; }

void push_graph(PyObject* graph_or_null) {
    stack.push_back(Py_XNewRef(graph_or_null));
    graphs_being_built += graph_or_null != nullptr;
}

void pop_graph() {
    if (stack.empty()) return;
    PyObject* top = stack.back();
    stack.pop_back();
    graphs_being_built -= top != nullptr;
    Py_XDECREF(top);
}

bool pop_graph(PyObject* graph) {
    for (size_t i = stack.size(); i-- > 0;) {
        if (stack[i] != graph) continue;
        stack.erase(stack.begin() + static_cast<std::ptrdiff_t>(i));
        --graphs_being_built;
        Py_DECREF(graph);
        return true;
    }
    return false;
}

namespace {

// A copy that repeats what the array repeats, as NumPy's broadcast_to() does: what is computed of it lies as there.
Ref copy_of(PyArrayObject* array) {
    const int ndim = PyArray_NDIM(array);
    npy_intp sizes[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    bool repeats = false;
    for (int i = 0; i < ndim; ++i) {
        const bool repeated = PyArray_DIM(array, i) > 1 && PyArray_STRIDE(array, i) == 0;
        sizes[i] = repeated ? 1 : PyArray_DIM(array, i);
        repeats |= repeated;
    }
    if (!repeats) return Ref::steal(PyArray_NewCopy(array, NPY_KEEPORDER));
    const auto view = [](PyArrayObject* of, const npy_intp* dims, const npy_intp* steps) {
        PyArray_Descr* descr = PyArray_DESCR(of);
        Py_INCREF(descr);
        Ref made = Ref::steal(
            PyArray_NewFromDescr(&PyArray_Type, descr, PyArray_NDIM(of), dims, steps, PyArray_DATA(of), 0, nullptr));
        if (made && PyArray_SetBaseObject(as_array(made.get()), Py_NewRef(as_object(of))) < 0) return Ref{};
        return made;
    };
    const Ref once = view(array, sizes, PyArray_STRIDES(array));
    const Ref copy = once ? Ref::steal(PyArray_NewCopy(as_array(once.get()), NPY_KEEPORDER)) : Ref{};
    if (!copy) return {};
    for (int i = 0; i < ndim; ++i)
        strides[i] = sizes[i] == PyArray_DIM(array, i) ? PyArray_STRIDE(as_array(copy.get()), i) : 0;
    return view(as_array(copy.get()), PyArray_DIMS(array), strides);
}

}  // namespace

int64_t add_constant(PyObject* graph, PyArrayObject* array, PyObject* name, bool share) {
    Ref own = share ? Ref::borrow(as_object(array)) : copy_of(array);
    if (!own) return -1;
    PyArray_CLEARFLAGS(as_array(own.get()), NPY_ARRAY_WRITEABLE);
    Graph& g = graph_of(graph);
    const uint32_t spec = g.specs().intern(spec_of_array(array));
    SharedRef owner = SharedRef::steal(own.release());
    if (!owner) return -1;
    return g.add(std::make_unique<ConstantNode>(std::move(owner), spec), name);
}

PyObject* graph_among(PyObject* const* objects, Py_ssize_t n) {
    for (Py_ssize_t i = 0; i < n; ++i)
        if (is_value(objects[i])) return as_value(objects[i])->graph;
    return graph_being_built();
}

namespace {

PYOP_COLD int used_too_late(ValueObject* v) {
    Ref text = graph_of(v->graph).kept_value_text(v->edge.node);
    if (text) PyErr_SetObject(errors.graph, text.get());
    return -1;
}

PYOP_COLD int foreign_value(PyObject* graph, ValueObject* v, const Caller& caller) {
    if (graph_of(v->graph).finished()) return used_too_late(v);
    Ref name = graph_of(v->graph).node_name(v->edge.node);
    PyErr_Format(errors.graph,
                 "Value '%U' belongs to %R, but %s is being added to %R: Values of one graph mean nothing in another; "
                 "run the first graph and feed its result, or build both parts in one graph",
                 name ? name.get() : Py_None, v->graph, caller.name().c_str(), graph);
    return -1;
}

PyObject* constant_name() {
    static constinit Lazy name;
    return name.interned("constant");
}

}  // namespace

namespace {

// A Value as a contract with cast= declares input k: cast by a node of the graph, so that every pass, derivative and
// file knows of it. Empty if it fits or must not be cast, or with the error set.
Ref cast_value(PyObject* graph, const Contract& c, Py_ssize_t k, PyObject* value) {
    if (!c.inputs_declared || k >= c.n_in()) return {};
    const ArraySpec& spec = (*c.inputs)[static_cast<size_t>(k)];
    const Ref have = graph_of(graph).spec(as_value(value)->edge).dtype;
    auto* descr = reinterpret_cast<PyArray_Descr*>(have.get());
    if (!have || !is_cast(spec, descr, c.casting)) return {};
    return Ref::steal(survive([&] { return PyObject_CallMethod(value, "astype", "O", spec.dtype.get()); }));
}

}  // namespace

int edges_of(PyObject* graph, PyObject* const* inputs, Py_ssize_t n, const Contract* c, const Caller& caller,
             std::vector<Edge>& edges) {
    if (PYOP_UNLIKELY(graph_of(graph).finished() != nullptr)) {
        for (Py_ssize_t k = 0; k < n; ++k)
            if (is_value(inputs[k]) && as_value(inputs[k])->graph == graph) return used_too_late(as_value(inputs[k]));
    }
    edges.reserve(static_cast<size_t>(n));
    for (Py_ssize_t k = 0; k < n; ++k) {
        if (is_value(inputs[k])) {
            if (as_value(inputs[k])->graph != graph) return foreign_value(graph, as_value(inputs[k]), caller);
            if (bring_up_to_date(as_value(inputs[k])) < 0) return -1;
            const Ref fitting = c && c->casting != NPY_NO_CASTING ? cast_value(graph, *c, k, inputs[k]) : Ref();
            if (PyErr_Occurred()) return -1;
            edges.push_back(as_value(fitting ? fitting.get() : inputs[k])->edge);
            continue;
        }
        if (!c && rules_of(inputs[k]) != Rules::None &&
            check_no_rules(inputs[k], ("an operand of " + caller.name()).c_str()) < 0)
            return -1;
        Ref array = Ref::steal(argument_new(c, k, inputs[k], caller));
        if (!array) return -1;
        const int64_t node = add_constant(graph, as_array(array.get()), constant_name(), false);
        if (node < 0) return -1;
        edges.push_back({static_cast<uint32_t>(node), 0});
    }
    return 0;
}

int64_t add_call(PyObject* graph, PyNode::Call call, std::span<const Edge> edges, std::span<const uint32_t> specs,
                 bool stateful, PyObject* name) {
    Graph& g = graph_of(graph);
    if (g.watches() && g.look() < 0) return -1;
    return g.add(std::make_unique<PyNode>(std::move(call), edges, specs, stateful), name);
}

}  // namespace pyop
