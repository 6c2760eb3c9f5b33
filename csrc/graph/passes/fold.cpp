// graph/passes/fold.cpp: fold constants: compute stateless nodes of constants, once in the life of a graph.
//
// What raises is left to the plan: NumPy raises in each call, behind what is before it. So is what has floating-point
// errors, which np.errstate around a call may ignore.
#include <optional>

#include "array/call/checked_call.h"
#include "array/call/lend.h"
#include "array/loop/quiet.h"
#include "graph/build.h"
#include "graph/passes/rewrite.h"
#include "runtime/up_calls.h"

namespace pyop {

namespace {

// What the function kept of its result it might still change; a fold result lives as long as the graph.
PyObject* keep_steal(PyObject* value) {
    if (!is_exact_array(value)) return value;
    PyArrayObject* a = as_array(value);
    if (!(PyArray_FLAGS(a) & NPY_ARRAY_WRITEABLE)) return value;
    if (uniquely_owned(value) && (PyArray_FLAGS(a) & NPY_ARRAY_OWNDATA)) {
        PyArray_CLEARFLAGS(a, NPY_ARRAY_WRITEABLE);
        return value;
    }
    PyObject* copy = PyArray_NewCopy(a, NPY_KEEPORDER);
    Py_DECREF(value);
    if (copy) PyArray_CLEARFLAGS(as_array(copy), NPY_ARRAY_WRITEABLE);
    return copy;
}

Ref compute(Rewrite& r, uint32_t i, std::vector<PyObject*>& inputs) {
    const PyNode& node = r.g.node_as<PyNode>(i);
    const Callee callee{node.callee(), node.contract(), node.form(), node.n_outputs(), node.lends()};
    std::vector<PyObject*> outs(node.n_outputs());
    const NodeCaller caller(r.g, i);
    // The function may give what it is lent another shape or dtype, and these arrays are the graph's for ever.
    std::vector<Ref> views;
    for (PyObject*& input : inputs) {
        if (!node.lends() || !is_exact_array(input)) continue;
        views.push_back(Ref::steal(as_object(lend_view_new(as_array(input)))));
        input = views.back().get();
        if (!input) return {};
    }
    if (checked_call(callee, inputs.data(), static_cast<Py_ssize_t>(inputs.size()), outs.data(), nullptr, caller) < 0)
        return {};
    Ref results = Ref::steal(PyTuple_New(node.n_outputs()));
    for (uint32_t k = 0; k < node.n_outputs(); ++k) {
        PyObject* kept = results ? keep_steal(outs[k]) : outs[k];
        if (results && kept)
            PyTuple_SET_ITEM(results.get(), k, kept);
        else
            results.reset();
    }
    return results;
}

}  // namespace

int fold(Rewrite& r) {
    const NotBuilding not_building;
    // What was folded for another plan under the name of a node that is merged here need not be computed again.
    for (uint32_t i = 0; i < r.n_nodes; ++i)
        if (PyObject* results = r.same_as[i] != i ? r.folded_results(i) : nullptr)
            r.g.keep_folded(r.same_as[i], results);
    std::vector<PyObject*> inputs;
    std::optional<RaisingErrors> raising;
    for (uint32_t i = 0; i < r.n_nodes; ++i) {
        if (!r.live[i] || r.same_as[i] != i) continue;
        if (r.g.node(i).kind() != NodeKind::Py || r.g.node(i).stateful()) continue;
        // It is made to be written, or to be the caller's.
        if (r.g.node_as<PyNode>(i).fn() == up_calls.fresh) continue;
        if (r.folded_results(i)) {
            ++r.folded;
            continue;
        }
        inputs.clear();
        bool all_known = true;
        for (const Edge e : r.g.node(i).inputs()) {
            inputs.push_back(r.known(r.resolve(e)));
            all_known = all_known && inputs.back();
        }
        if (!all_known || r.g.node(i).n_outputs() == 0) continue;
        const bool of_numpy = !r.g.node_as<PyNode>(i).contract();
        if (!of_numpy)
            raising.reset();
        else if (!raising)
            raising.emplace(false);
        Ref results = compute(r, i, inputs);
        if (!results) {
            if (!of_numpy || !PyErr_ExceptionMatches(PyExc_Exception)) return -1;
            PyErr_Clear();
            continue;
        }
        r.g.keep_folded(i, results.get());
        ++r.folded;
    }
    // Whoever was merged into a folded node is known as well, for plans that want only that one.
    for (uint32_t i = 0; i < r.same_as.size(); ++i)
        if (PyObject* results = r.same_as[i] != i ? r.folded_results(r.same_as[i]) : nullptr)
            r.g.keep_folded(i, results);
    return 0;
}

}  // namespace pyop
