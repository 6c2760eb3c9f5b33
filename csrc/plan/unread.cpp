// plan/unread.cpp: find these nodes.
#include "plan/unread.h"

#include <algorithm>
#include <cstring>

#include <numpy/ufuncobject.h>

#include "array/loop/strided_loop.h"
#include "graph/argument.h"
#include "graph/build.h"
#include "graph/value_item.h"
#include "plan/steps/node_call.h"
#include "plan/steps/view_reading.h"
#include "runtime/up_calls.h"

namespace pyop {

namespace {

// The nodes that have become the body of a loop, which runs them (Graph._absorbed, pairs of the first and the one
// behind). 0, or -1 with the error set.
int read_absorbed(PyObject* graph, std::vector<bool>& absorbed) {
    Ref ranges = Ref::steal(PyObject_GetAttrString(graph, "_absorbed"));
    if (!ranges) return -1;
    for (Py_ssize_t k = 0; PyTuple_CheckExact(ranges.get()) && k < PyTuple_GET_SIZE(ranges.get()); ++k) {
        Py_ssize_t first, end;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(ranges.get(), k), "nn", &first, &end)) return -1;
        for (size_t i = static_cast<size_t>(first); i < static_cast<size_t>(end) && i < absorbed.size(); ++i)
            absorbed[i] = true;
    }
    return 0;
}

bool is_loop(const Node& node) {
    return node.kind() == NodeKind::Py &&
           reinterpret_cast<PyObject*>(Py_TYPE(static_cast<const PyNode&>(node).fn())) == up_calls.loop_class;
}

bool known_shape(const ValueSpec& spec) {
    return spec.ndim >= 0 && std::all_of(spec.dims.begin(), spec.dims.end(), [](int64_t n) { return n >= 0; });
}

// Whether a number of the one may be none that an array of the other holds. NumPy checks that for integers, where one
// number is written.
bool may_not_fit(const ValueSpec& number, const ValueSpec& array) {
    if (!array.dtype || !PyTypeNum_ISINTEGER(array.descr()->type_num) || number.ndim > 0) return false;
    return !number.dtype || !PyArray_CanCastTypeTo(number.descr(), array.descr(), NPY_SAFE_CASTING);
}

// Whether it is a write that may raise: at computed places, of arrays whose sizes nobody knows, of a number that may
// not fit, or by a function that is no ufunc.
bool may_raise_as_write(const Graph& g, const Node& node) {
    if (node.kind() != NodeKind::Py || node.inputs().empty()) return false;
    const PyNode& call = static_cast<const PyNode&>(node);
    PyObject* const function = NodeCall::function_of(call);
    std::vector<NodeArgument> given;
    if (function == up_calls.performed)
        return NodeCall(call).bind({"function", "roots", "args", "kwargs", "places"}, given) && given[0].value &&
               !is_ufunc(given[0].value);
    if (function != up_calls.store) return false;
    if (!NodeCall(call).bind({"x", "value", "key", "views", "scalar"}, given)) return false;
    const NodeArgument &x = given[0], &value = given[1], &key = given[2], &views = given[3];
    if (key.computed() || views.computed() || x.input < 0) return true;
    if (node.inputs().size() > (value.computed() ? 2u : 1u)) return true;  // a place by a count of a loop or a size
    const ValueSpec& whole = g.spec(node.inputs()[static_cast<size_t>(x.input)]);
    if (!known_shape(whole)) return true;
    if (value.input < 0) return false;
    const ValueSpec& written = g.spec(node.inputs()[static_cast<size_t>(value.input)]);
    return !known_shape(written) || may_not_fit(written, whole);
}

bool is_above_64_bits(PyObject* number) {
    const bool above = PyLong_AsUnsignedLongLong(number) == static_cast<unsigned long long>(-1) && PyErr_Occurred();
    if (above) PyErr_Clear();
    return above;
}

// Whether an int of Python is none that an array of the dtype holds.
bool is_out_of_range(PyObject* number, int type_num, npy_intp itemsize) {
    int overflow;
    const long long whole = PyLong_AsLongLongAndOverflow(number, &overflow);
    if (PyTypeNum_ISUNSIGNED(type_num)) {
        if (overflow > 0 && itemsize == 8) return is_above_64_bits(number);
        return overflow != 0 || whole < 0 || (itemsize < 8 && (whole >> (8 * itemsize)) != 0);
    }
    if (overflow != 0 || !PyTypeNum_ISINTEGER(type_num)) return overflow != 0;
    return itemsize < 8 && (whole >> (8 * itemsize - 1)) != (whole < 0 ? -1 : 0);
}

// Whether it is a ufunc of an int of Python that may raise: of one that the integers beside it cannot hold, or of a
// negative power of integers.
bool may_raise_as_ufunc(const Graph& g, const Node& node) {
    if (node.kind() != NodeKind::Py) return false;
    const PyNode& call = static_cast<const PyNode&>(node);
    if (!call.form() || !is_ufunc(call.fn())) return false;  // without a form there are inputs alone
    const bool power = std::strcmp(reinterpret_cast<PyUFuncObject*>(call.fn())->name, "power") == 0;
    for (size_t k = 0; k < n_arguments(call); ++k) {
        PyObject* const number = argument_of(call, k).constant;
        if (!number || !PyLong_CheckExact(number)) continue;
        const bool is_negative = is_out_of_range(number, NPY_ULONGLONG, sizeof(npy_ulonglong));
        for (const Edge input : node.inputs()) {
            const PyArray_Descr* const beside = g.spec(input).dtype ? g.spec(input).descr() : nullptr;
            if (!beside || is_out_of_range(number, beside->type_num, PyDataType_ELSIZE(beside))) return true;
            if (power && k == 1 && is_negative && beside->type_num <= NPY_ULONGLONG) return true;  // bools and ints
        }
    }
    return false;
}

// Whether a key is made of slices, None and `...`, which are in bounds of whatever it is.
bool only_cuts(PyObject* key) {
    if (PyTuple_CheckExact(key)) {
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(key); ++k)
            if (!only_cuts(PyTuple_GET_ITEM(key, k))) return false;
        return true;
    }
    return PySlice_Check(key) || key == Py_None || key == Py_Ellipsis;
}

// Whether it reads an item at a computed place, or of an array whose sizes nobody knows.
bool may_raise_as_read(const Graph& g, const Node& node) {
    if (node.kind() != NodeKind::Py) return false;
    const PyNode& call = static_cast<const PyNode&>(node);
    if (NodeCall::function_of(call) != getitem_function || node.inputs().empty()) return false;
    std::vector<NodeArgument> given;
    if (!NodeCall(call).bind({"a", "b"}, given) || given[0].input < 0) return false;
    const auto array = static_cast<size_t>(given[0].input);
    const bool known = known_shape(g.spec(node.inputs()[array]));
    for (size_t k = 0; k < node.inputs().size(); ++k) {
        const Edge place = node.inputs()[k];
        const ValueSpec& spec = g.spec(place);
        const bool computed = !known || g.node(place.node).kind() != NodeKind::Constant;
        if (k != array && computed && spec.dtype && PyTypeNum_ISINTEGER(spec.descr()->type_num)) return true;
    }
    return !known && given[1].input < 0 && given[1].value && !only_cuts(given[1].value);
}

// Whether the sizes of an axis may be such as do not go together: neither the same one nor 1, as far as is known.
bool may_differ(int64_t a, int64_t b) { return a != 1 && b != 1 && (a != b || a == kUnknownSize); }

// Whether the arrays that a ufunc is given may have shapes that do not go together. Those with core dimensions have
// rules of their own.
bool may_not_broadcast(const Graph& g, const Node& node) {
    if (node.kind() != NodeKind::Py) return false;
    PyObject* const fn = static_cast<const PyNode&>(node).fn();
    if (!is_ufunc(fn) || reinterpret_cast<PyUFuncObject*>(fn)->core_enabled) return false;
    const auto& inputs = node.inputs();
    for (size_t k = 1; k < inputs.size(); ++k) {
        const ValueSpec& a = g.spec(inputs[k]);
        for (size_t j = 0; j < k; ++j) {
            const ValueSpec& b = g.spec(inputs[j]);
            if (Rewrite::key(inputs[j]) == Rewrite::key(inputs[k]) || a.ndim == 0 || b.ndim == 0) continue;
            if (a.ndim < 0 || b.ndim < 0) return true;
            if (!std::equal(a.dims.rbegin(), a.dims.rbegin() + std::min(a.ndim, b.ndim), b.dims.rbegin(),
                            [](int64_t m, int64_t n) { return !may_differ(m, n); }))
                return true;
        }
    }
    return false;
}

bool may_raise(const Graph& g, const Node& node) {
    return may_raise_as_write(g, node) || may_raise_as_read(g, node) || may_raise_as_ufunc(g, node) ||
           may_not_broadcast(g, node);
}

// What may raise runs, read or not: NumPy's arrays are as they were when it did.
void run_all_that_may_raise(PyObject* graph, const std::vector<bool>& absorbed, Request& request) {
    const Rewrite r(graph, request);
    for (uint32_t i = 0; i < absorbed.size() && i < r.n_nodes; ++i) {
        if (absorbed[i]) continue;
        if (r.g.node(i).kind() != NodeKind::Py) continue;
        if (is_ufunc(r.g.node_as<PyNode>(i).fn())) {
            const Node& node = r.g.node(i);
            if (may_raise_as_ufunc(r.g, node) || may_not_broadcast(r.g, node)) request.run_nodes.push_back(i);
            continue;
        }
        ViewCall view;
        if (!makes_view(r, i) || !read_view(r, i, view)) request.run_nodes.push_back(i);
    }
}

// A loop comes behind what has become its body.
void run_some_that_may_raise(const Graph& g, const std::vector<bool>& absorbed, Request& request) {
    bool in_body = false;
    for (uint32_t i = 0; i < absorbed.size(); ++i) {
        const Node& node = g.node(i);
        if (absorbed[i]) {
            in_body = in_body || may_raise_as_write(g, node);
        } else if (is_loop(node) ? in_body : may_raise(g, node)) {
            request.run_nodes.push_back(i);
            in_body = in_body && !is_loop(node);
        }
    }
}

}  // namespace

int run_unread(PyObject* graph, Request& request) {
    const Graph& g = graph_of(graph);
    std::vector<bool> absorbed(g.size());
    if (read_absorbed(graph, absorbed) < 0) return -1;
    if (!request.writes.empty())
        run_all_that_may_raise(graph, absorbed, request);
    else if (request.whole)
        run_some_that_may_raise(g, absorbed, request);
    if (request.passes.has(Pass::Prune)) return 0;
    for (uint32_t i = 0; i < absorbed.size(); ++i)
        if (!absorbed[i] && g.node(i).kind() == NodeKind::Py) request.run_nodes.push_back(i);
    return 0;
}

}  // namespace pyop
