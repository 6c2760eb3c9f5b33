// plan/native_step.cpp: call the nodes of a native step one after the other, the plain way: its fallback.
#include "plan/native_step.h"

#include "array/call/checked_call.h"

namespace pyop {

Fallback Fallback::of_node(const Graph& g, uint32_t node) {
    Fallback fallback;
    fallback.nodes.push_back(node);
    std::vector<Source>& sources = fallback.sources.emplace_back();
    for (uint32_t k = 0; k < g.node(node).inputs().size(); ++k) sources.push_back({true, k});
    for (uint32_t k = 0; k < g.node(node).n_outputs(); ++k) fallback.outputs.emplace_back(0, k);
    return fallback;
}

bool NativeStep::record(TapeBuilder&, const TapeValue*, TapeValue*) const { return false; }

int Fallback::call(const Graph& g, PyObject* const* inputs, PyObject** results) const {
    std::vector<std::vector<Ref>> made(nodes.size());
    for (size_t m = 0; m < nodes.size(); ++m) {
        const PyNode& node = g.node_as<PyNode>(nodes[m]);
        std::vector<PyObject*> arguments, fresh(node.n_outputs());
        for (const Source& source : sources[m])
            arguments.push_back(source.external ? inputs[source.index] : made[source.index][source.output].get());
        const Callee callee{node.callee(), node.contract(), node.form(), node.n_outputs(), node.lends()};
        if (checked_call(callee, arguments.data(), static_cast<Py_ssize_t>(arguments.size()), fresh.data(), nullptr,
                         NodeCaller(g, nodes[m])) < 0)
            return -1;
        for (PyObject* result : fresh) made[m].push_back(Ref::steal(result));
    }
    for (size_t k = 0; k < outputs.size(); ++k) results[k] = made[outputs[k].first][outputs[k].second].new_ref();
    return 0;
}

}  // namespace pyop
