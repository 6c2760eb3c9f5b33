// plan/plan_type.cpp: define the type Plan as Python sees it: compiling, reports, what is needed to make it again.
#include <algorithm>
#include <memory>

#include "array/loop/strided_loop.h"
#include "graph/build.h"
#include "plan/bound_plan.h"
#include "plan/execute.h"
#include "plan/machine_code/plan_code.h"
#include "plan/plan.h"
#include "plan/unread.h"
#include "plan/updates.h"
#include "runtime/errors.h"
#include "runtime/reaper.h"
#include "runtime/stack_array.h"
#include "runtime/up_calls.h"

namespace pyop {

PyTypeObject* plan_type = nullptr;

namespace {

PlanObject* plan_of(PyObject* self) { return reinterpret_cast<PlanObject*>(self); }

int read_fetches(PyObject* graph, PyObject* fetches, Request& request, std::vector<int32_t>& leaves) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(fetches); ++i) {
        PyObject* fetch = PyTuple_GET_ITEM(fetches, i);
        PyObject* owner;
        if (is_value(fetch)) {
            owner = as_value(fetch)->graph;
            leaves.push_back(static_cast<int32_t>(request.fetches.size()));
            if (bring_up_to_date(as_value(fetch)) < 0) return -1;
            request.fetches.push_back(as_value(fetch)->edge);
        } else if (Py_TYPE(fetch) == node_type) {
            owner = reinterpret_cast<NodeHandleObject*>(fetch)->graph;
            leaves.push_back(-1);
            request.run_nodes.push_back(reinterpret_cast<NodeHandleObject*>(fetch)->index);
        } else {
            PyErr_Format(PyExc_TypeError, "a fetch must be a Value or a Node of the graph, not %s",
                         Py_TYPE(fetch)->tp_name);
            return -1;
        }
        if (owner != graph) {
            PyErr_Format(errors.graph, "%R belongs to another graph than the one that is run", fetch);
            return -1;
        }
    }
    return 0;
}

int read_feeds(PyObject* graph, PyObject* feeds, Request& request) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(feeds); ++i) {
        PyObject* feed = PyTuple_GET_ITEM(feeds, i);
        if (!is_value(feed)) {
            PyErr_Format(PyExc_TypeError, "only a Value can be fed, not %s", Py_TYPE(feed)->tp_name);
            return -1;
        }
        if (as_value(feed)->graph != graph) {
            PyErr_Format(errors.graph, "%R is fed, but belongs to another graph than the one that is run", feed);
            return -1;
        }
        if (bring_up_to_date(as_value(feed)) < 0) return -1;
        request.feeds.push_back(as_value(feed)->edge);
    }
    return 0;
}

// Pairs of Values: an input, and what it holds in the end.
int read_writes(PyObject* graph, PyObject* writes, Request& request) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(writes); ++i) {
        PyObject *input, *value;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(writes, i), "O!O!", value_type, &input, value_type, &value)) return -1;
        const auto same = [&](Edge e) { return e == as_value(input)->edge; };
        const auto at = std::find_if(request.feeds.begin(), request.feeds.end(), same);
        if (at == request.feeds.end() || as_value(value)->graph != graph) {
            PyErr_SetString(errors.graph, "what is written is an input of the graph, by a Value of the graph");
            return -1;
        }
        request.writes.push_back(static_cast<uint32_t>(at - request.feeds.begin()));
        request.fetches.push_back(as_value(value)->edge);
    }
    return 0;
}

int read_passes(PyObject* disable, PassSet& passes) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(disable); ++i) {
        PyObject* name = PyTuple_GET_ITEM(disable, i);
        size_t k = 0;
        while (k < kPasses.size() &&
               !(PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, kPasses[k].name.data()) == 0))
            ++k;
        if (k == kPasses.size()) {
            PyErr_Format(PyExc_ValueError, "there is no pass %R; graph.passes() lists them", name);
            return -1;
        }
        passes.remove(static_cast<Pass>(k));
    }
    return 0;
}

PyObject* passes_new(PyObject*, PyObject*) {
    Ref names = Ref::steal(PyDict_New());
    for (const PassInfo& pass : kPasses) {
        Ref does = Ref::steal(PyUnicode_FromString(pass.does.data()));
        if (!names || !does || PyDict_SetItemString(names.get(), pass.name.data(), does.get()) < 0) return nullptr;
    }
    return names.release();
}

PyObject* compile_graph(PyObject* args, PyObject* kwargs) {
    static const char* keywords[] = {"graph",   "fetches", "feeds", "form",   "tree", "whole",
                                     "disable", "threads", "fast",  "writes", nullptr};
    PyObject *graph, *fetches, *feeds, *tree, *disable, *writes = nullptr;
    int form, whole, threads, fast;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O!O!iOpO!ip|O!", const_cast<char**>(keywords), graph_type, &graph,
                                     &PyTuple_Type, &fetches, &PyTuple_Type, &feeds, &form, &tree, &whole,
                                     &PyTuple_Type, &disable, &threads, &fast, &PyTuple_Type, &writes))
        return nullptr;
    if (threads < 1 || threads > 1024) {
        PyErr_Format(PyExc_ValueError, "threads must be between 1 and 1024, not %d", threads);
        return nullptr;
    }
    Request request;
    request.whole = whole;
    request.fast = fast;
    if (read_passes(disable, request.passes) < 0) return nullptr;
    auto leaves = std::make_unique<std::vector<int32_t>>();
    auto program = std::make_unique<Program>();
    if (graph_of(graph).check_usable() < 0) return nullptr;
    if (read_fetches(graph, fetches, request, *leaves) < 0 || read_feeds(graph, feeds, request) < 0) return nullptr;
    if (writes && read_writes(graph, writes, request) < 0) return nullptr;
    if (run_unread(graph, request) < 0) return nullptr;
    if (lower(graph, request, threads > 1, *program) < 0) return nullptr;
    auto kept = std::make_unique<Request>(std::move(request));
    Ref self = Ref::steal(plan_type->tp_alloc(plan_type, 0));
    if (!self) return nullptr;
    PlanObject& plan = *plan_of(self.get());
    plan.vectorcall = plan_vectorcall;
    plan.graph = Py_NewRef(graph);
    plan.program = program.release();
    plan.program->plan = self.get();
    plan.request = kept.release();
    plan.leaves = leaves.release();
    plan.form = static_cast<FetchForm>(form);
    plan.tree = tree == Py_None ? nullptr : Py_NewRef(tree);
    if (plan.tree && plan.form == FetchForm::Tree) {
        plan.plain_tree = ResultTree::make(plan.tree).release();
        if (!plan.plain_tree && PyErr_Occurred()) return nullptr;
    }
    plan.threads = threads;
    return self.release();
}

PyObject* compile(PyObject*, PyObject* args, PyObject* kwargs) {
    return guarded([&] { return compile_graph(args, kwargs); }, static_cast<PyObject*>(nullptr));
}

int plan_traverse(PyObject* self, visitproc visit, void* arg) {
    PlanObject& plan = *plan_of(self);
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(plan.graph);
    Py_VISIT(plan.tree);
    Py_VISIT(plan.dict);
    if (plan.plain_tree)
        if (const int stop = plan.plain_tree->traverse(visit, arg)) return stop;
    return plan.program ? plan.program->traverse(visit, arg) : 0;
}

// The graph stays: the program points into it. Its own tp_clear breaks the cycle.
int plan_clear(PyObject* self) {
    Py_CLEAR(plan_of(self)->dict);
    return 0;
}

void plan_dealloc(PyObject* self) {
    PyObject_GC_UnTrack(self);
    PlanObject& plan = *plan_of(self);
    if (plan.weakrefs) PyObject_ClearWeakRefs(self);
    delete std::exchange(plan.entry, nullptr);
    delete std::exchange(plan.program, nullptr);
    delete std::exchange(plan.request, nullptr);
    delete std::exchange(plan.leaves, nullptr);
    delete std::exchange(plan.plain_tree, nullptr);
    Py_CLEAR(plan.dict);
    Py_CLEAR(plan.tree);
    Py_CLEAR(plan.graph);
    PyTypeObject* type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyObject* plan_report(PyObject* self, PyObject*) {
    const Program& p = *plan_of(self)->program;
    const UpdateCounts updates = count_updates(p, graph_of(plan_of(self)->graph));
    return Py_BuildValue("{s:n,s:n,s:n,s:n,s:n,s:n,s:n,s:n,s:n,s:n}", "nodes", p.n_nodes, "pruned", p.pruned, "merged",
                         p.merged, "folded", p.folded, "native", p.native, "groups", p.groups, "instructions",
                         p.instructions.size(), "slots", static_cast<size_t>(p.n_slots), "updates_in_place",
                         updates.in_place, "copies", updates.copies);
}

// As report(), but without the counts that nobody asks for when a function is compiled.
PyObject* plan_merged_or_folded(PyObject* self, PyObject*) {
    const Program& p = *plan_of(self)->program;
    return PyBool_FromLong(p.merged > 0 || p.folded > 0);
}

PyObject* plan_nodes(PyObject* self, void*) {
    const PlanObject& plan = *plan_of(self);
    std::vector<uint32_t> order;
    for (const Instruction& ins : plan.program->instructions) {
        if (!ins.native)
            order.push_back(ins.node);
        else
            for (const uint32_t node : ins.native->fallback().nodes) order.push_back(node);
    }
    Ref tuple = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(order.size())));
    for (size_t i = 0; tuple && i < order.size(); ++i) {
        PyObject* node = node_handle_new(plan.graph, order[i]);
        if (!node) return nullptr;
        PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), node);
    }
    return tuple.release();
}

// What an event of a profile stands for: (whether it is native, its nodes, what runs).
PyObject* plan_instruction(PyObject* self, PyObject* number) {
    const PlanObject& plan = *plan_of(self);
    const size_t i = PyLong_AsSize_t(number);
    if (PyErr_Occurred()) return nullptr;
    if (i >= plan.program->instructions.size())
        return PyErr_Format(PyExc_IndexError, "the plan has no instruction %zu", i);
    const Instruction& ins = plan.program->instructions[i];
    const std::vector<uint32_t> indices = ins.native ? ins.native->fallback().nodes : std::vector<uint32_t>{ins.node};
    const std::string text = ins.native ? ins.native->describe(0) : std::string();
    Ref nodes = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(indices.size())));
    for (size_t k = 0; nodes && k < indices.size(); ++k) {
        PyObject* node = node_handle_new(plan.graph, indices[k]);
        if (!node) return nullptr;
        PyTuple_SET_ITEM(nodes.get(), static_cast<Py_ssize_t>(k), node);
    }
    return nodes ? Py_BuildValue("(OOs)", ins.native ? Py_True : Py_False, nodes.get(), text.c_str()) : nullptr;
}

// The arguments of compile() that make this plan again, for pickling.
PyObject* plan_made_of(PyObject* self, void*) {
    const PlanObject& plan = *plan_of(self);
    const Request& request = *plan.request;
    Ref fetches = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(plan.leaves->size())));
    Ref feeds = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(request.feeds.size())));
    Ref disabled = Ref::steal(PyList_New(0));
    if (!fetches || !feeds || !disabled) return nullptr;
    size_t node = 0;
    for (size_t i = 0; i < plan.leaves->size(); ++i) {
        const int32_t at = (*plan.leaves)[i];
        PyObject* fetch = at < 0 ? node_handle_new(plan.graph, request.run_nodes[node++])
                                 : value_new(plan.graph, request.fetches[static_cast<size_t>(at)]);
        if (!fetch) return nullptr;
        PyTuple_SET_ITEM(fetches.get(), static_cast<Py_ssize_t>(i), fetch);
    }
    for (size_t i = 0; i < request.feeds.size(); ++i) {
        PyObject* feed = value_new(plan.graph, request.feeds[i]);
        if (!feed) return nullptr;
        PyTuple_SET_ITEM(feeds.get(), static_cast<Py_ssize_t>(i), feed);
    }
    for (size_t k = 0; k < kPasses.size(); ++k) {
        if (request.passes.has(static_cast<Pass>(k))) continue;
        Ref name = Ref::steal(PyUnicode_FromString(kPasses[k].name.data()));
        if (!name || PyList_Append(disabled.get(), name.get()) < 0) return nullptr;
    }
    Ref names = Ref::steal(PyList_AsTuple(disabled.get()));
    Ref writes = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(request.writes.size())));
    if (!names || !writes) return nullptr;
    for (size_t i = 0; i < request.writes.size(); ++i) {
        const Edge value = request.fetches[request.fetches.size() - request.writes.size() + i];
        PyObject* pair = Py_BuildValue("(NN)", value_new(plan.graph, request.feeds[request.writes[i]]),
                                       value_new(plan.graph, value));
        if (!pair) return nullptr;
        PyTuple_SET_ITEM(writes.get(), static_cast<Py_ssize_t>(i), pair);
    }
    return Py_BuildValue("(OOOiOOOiOO)", plan.graph, fetches.get(), feeds.get(), static_cast<int>(plan.form),
                         plan.tree ? plan.tree : Py_None, request.whole ? Py_True : Py_False, names.get(), plan.threads,
                         request.fast ? Py_True : Py_False, writes.get());
}

PyObject* plan_input_names(PyObject* self, void*) {
    const Program& p = *plan_of(self)->program;
    Ref tuple = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(p.feeds.size())));
    for (size_t k = 0; tuple && k < p.feeds.size(); ++k)
        PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(k), p.feeds[k].name.new_ref());
    return tuple.release();
}

PyObject* plan_writes(PyObject* self, void*) {
    const Program& p = *plan_of(self)->program;
    Ref tuple = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(p.writes.size())));
    for (size_t k = 0; tuple && k < p.writes.size(); ++k)
        PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(k), PyLong_FromUnsignedLong(p.writes[k].feed));
    return tuple.release();
}

PyObject* plan_graph(PyObject* self, void*) { return Py_NewRef(plan_of(self)->graph); }
PyObject* plan_threads(PyObject* self, void*) { return PyLong_FromLong(plan_of(self)->threads); }

PyObject* plan_repr(PyObject* self) {
    const PlanObject& plan = *plan_of(self);
    return PyUnicode_FromFormat("<pyop.Plan of %zu instructions, %s, %d thread%s>", plan.program->instructions.size(),
                                feed_names(*plan.program).c_str(), plan.threads, plan.threads == 1 ? "" : "s");
}

PyMethodDef plan_methods[] = {
    {"into", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(plan_into)), METH_FASTCALL,
     "into($self, /, *buffers)\n--\n\n"
     "The plan as a callable that writes its results into these arrays, and returns them.\n\n"
     "They are looked at once; a call of it is one of the plan with ``out=``, and a loop of calls allocates "
     "nothing.\n\n"
     "Parameters\n----------\n"
     "*buffers : ndarray\n"
     "    A writable array for each result, of its dtype and shape, that share no memory.\n\n"
     "Returns\n-------\n"
     "BoundPlan\n"
     "    Takes the inputs, by position or by name. `buffers` is what it returns: the array, or a tuple of several.\n\n"
     "Raises\n------\n"
     "InputError\n"
     "    An array does not fit its result.\n\n"
     "Examples\n--------\n"
     ">>> import numpy as np, pyop\n"
     ">>> plan = pyop.trace(lambda x, v: x + 0.5 * v, \"float64[3]\", \"float64[3]\").compile()\n"
     ">>> here, there, v = np.zeros(3), np.zeros(3), np.ones(3)\n"
     ">>> forth, back = plan.into(there), plan.into(here)\n"
     ">>> for _ in range(2):\n"
     "...     now = back(forth(here, v), v)\n"
     ">>> now is here, now\n"
     "(True, array([2., 2., 2.]))"},
    {"report", plan_report, METH_NOARGS,
     "Return what became of the graph: a dict of the numbers of `nodes`, of those `pruned` (not needed), `merged` and\n"
     "`folded` (computed at compile), of those that run as `native` loops and the `groups` these form, of\n"
     "`instructions` left, of memory `slots` they share, and of writes into arrays that are `updates_in_place` or\n"
     "make `copies` of the array first (those of a loop count once)."},
    {"_instruction", plan_instruction, METH_O, "_instruction(i): (native, nodes, what runs); for profiles."},
    {"_merged_or_folded", plan_merged_or_folded, METH_NOARGS, "_merged_or_folded() -> whether nodes were."},
    {"_owners", plan_owners, METH_NOARGS,
     "_owners(): for each result, whose memory it shows as the graph was written, and whose when equal nodes are one\n"
     "(None for what was computed at compile); numbers that are equal for the same."},
    {"_machine_code", plan_machine_code, METH_NOARGS,
     "_machine_code(): a list of (node, TapeCode), one a loop or another stretch that runs as a tape."},
    {"_make_machine_code", plan_set_machine_code, METH_O,
     "_make_machine_code(policy): 'off', 'hot' or 'now', for all tapes of the plan."},
    {"_facts", plan_facts, METH_NOARGS, "_facts(): what became of each node; see python/pyop/graph/explain.py."},
    {},
};

PyGetSetDef plan_getset[] = {
    {"nodes", plan_nodes, nullptr, "The nodes that are executed, in order.", nullptr},
    {"input_names", plan_input_names, nullptr, "The names of the arguments, in order.", nullptr},
    {"graph", plan_graph, nullptr, "The graph that was compiled.", nullptr},
    {"_writes", plan_writes, nullptr, "The positions of the arguments that a call writes into.", nullptr},
    {"_made_of", plan_made_of, nullptr, "The arguments of _core.compile that make it again.", nullptr},
    {"threads", plan_threads, nullptr, "Return how many threads a call may use.", nullptr},
    {},
};

PyMemberDef plan_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(PlanObject, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(PlanObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(PlanObject, weakrefs), READONLY, nullptr},
    {},
};

PyType_Slot plan_slots[] = {
    {Py_tp_doc,
     const_cast<char*>(
         "A compiled graph: a flat list of instructions, run by C++.\n\n"
         "Call it with one array for each input, by position or by name; `out=` takes arrays for the results.\n"
         "Made by `Graph.compile`. May be called from many threads at once.\n\n"
         "Examples\n--------\n"
         ">>> import numpy as np, pyop\n"
         ">>> plan = pyop.trace(lambda x, y: x @ y, \"float64[n]\", \"float64[n]\").compile()\n"
         ">>> plan(np.ones(3), np.arange(3.0)), plan(y=np.ones(2), x=np.ones(2))\n"
         "(array(3.), array(2.))")},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_repr, reinterpret_cast<void*>(plan_repr)},
    {Py_tp_traverse, reinterpret_cast<void*>(plan_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(plan_clear)},
    {Py_tp_dealloc, reinterpret_cast<void*>(plan_dealloc)},
    {Py_tp_methods, plan_methods},
    {Py_tp_getset, plan_getset},
    {Py_tp_members, plan_members},
    {0, nullptr},
};

PyType_Spec plan_spec = {
    "pyop._core.Plan", sizeof(PlanObject), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    plan_slots};

PyMethodDef plan_functions[] = {
    {"compile", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(compile)), METH_VARARGS | METH_KEYWORDS,
     "compile(graph, fetches, feeds, form, tree, whole, disable, threads, fast, writes=()) -> Plan"},
    {"passes", passes_new, METH_NOARGS, "passes() -> dict of what each pass does, in order."},
    {},
};

}  // namespace

int plan_init(PyObject* module) {
    if (bound_plan_init(module) < 0) return -1;
    plan_type = reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(module, &plan_spec, nullptr));
    if (!plan_type || PyModule_AddType(module, plan_type) < 0) return -1;
    return PyModule_AddFunctions(module, plan_functions);
}

}  // namespace pyop
