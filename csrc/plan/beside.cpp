// plan/beside.cpp: call the nodes that lead to one, in the order in which they were written.
#include "plan/beside.h"

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "graph/build.h"
#include "plan/native_step.h"
#include "runtime/errors.h"

namespace pyop {

namespace {

// The results of a node that is known, a tuple; borrowed. Null if it is not, or with the error set.
PyObject* known_results(PyObject* known, uint32_t node) {
    const Ref key = Ref::steal(PyLong_FromUnsignedLong(node));
    return key ? PyDict_GetItemWithError(known, key.get()) : nullptr;
}

// The nodes to be computed for `last`, ascending: it and what leads to it, as far as that is not known. False with
// the error set.
bool find_needed(const Graph& g, uint32_t last, PyObject* known, std::vector<uint32_t>& needed) {
    std::vector<uint32_t> pending{last};
    std::unordered_set<uint32_t> seen{last};
    while (!pending.empty()) {
        const uint32_t i = pending.back();
        pending.pop_back();
        if (g.node(i).kind() == NodeKind::Constant || known_results(known, i)) continue;
        if (PyErr_Occurred()) return false;
        needed.push_back(i);
        for (const Edge e : g.node(i).inputs())
            if (seen.insert(e.node).second) pending.push_back(e.node);
    }
    std::sort(needed.begin(), needed.end());
    return true;
}

int compute(const Graph& g, uint32_t i, PyObject* known) {
    const Node& node = g.node(i);
    if (node.kind() == NodeKind::Input) {
        PyErr_Format(errors.graph, "%s has no array", NodeCaller(g, i).description().c_str());
        return -1;
    }
    std::vector<PyObject*> inputs, results(node.n_outputs());
    for (const Edge e : node.inputs()) {
        if (g.node(e.node).kind() == NodeKind::Constant) {
            inputs.push_back(g.node_as<ConstantNode>(e.node).array());
            continue;
        }
        PyObject* made = known_results(known, e.node);
        if (!made) {
            if (!PyErr_Occurred()) PyErr_SetString(errors.graph, "a value is missing");
            return -1;
        }
        inputs.push_back(PyTuple_GET_ITEM(made, e.output));
    }
    if (Fallback::of_node(g, i).call(g, inputs.data(), results.data()) < 0) return -1;
    Ref tuple = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(results.size())));
    for (size_t k = 0; k < results.size(); ++k) {
        if (tuple)
            PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(k), results[k]);
        else
            Py_DECREF(results[k]);
    }
    const Ref key = tuple ? Ref::steal(PyLong_FromUnsignedLong(i)) : Ref();
    return key ? PyDict_SetItem(known, key.get(), tuple.get()) : -1;
}

PyObject* evaluate_beside(PyObject*, PyObject* const* args, Py_ssize_t n) {
    return guarded(
        [&]() -> PyObject* {
            if (n != 3 || !is_graph(args[0]) || !PyDict_Check(args[2])) {
                PyErr_SetString(PyExc_TypeError, "evaluate_beside(graph, node, known)");
                return nullptr;
            }
            const Graph& g = graph_of(args[0]);
            const unsigned long last = PyLong_AsUnsignedLong(args[1]);
            if (PyErr_Occurred()) return nullptr;
            if (last >= g.size()) return PyErr_Format(PyExc_IndexError, "no node %lu", last);
            std::vector<uint32_t> needed;
            if (!find_needed(g, static_cast<uint32_t>(last), args[2], needed)) return nullptr;
            const NotBuilding not_building;
            for (const uint32_t i : needed) {
                if (g.node(i).stateful()) return PyErr_Format(errors.graph, "a stateful call cannot be made twice");
                if (compute(g, i, args[2]) < 0) return nullptr;
            }
            return PyLong_FromSize_t(needed.size());
        },
        static_cast<PyObject*>(nullptr));
}

PyMethodDef beside_functions[] = {
    {"evaluate_beside", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(evaluate_beside)), METH_FASTCALL,
     "evaluate_beside(graph, node, known) -> how many nodes were computed: those that lead to it. `known` has a tuple "
     "of results for each node."},
    {},
};

}  // namespace

int beside_init(PyObject* module) { return PyModule_AddFunctions(module, beside_functions); }

}  // namespace pyop
