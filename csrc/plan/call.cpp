// plan/call.cpp: make one call of a Plan, from its arguments to its results.
//
//     bind keywords  →  check the feeds  →  execute  →  deliver to out=  →  assemble
//
// A plan that is one native step, called with arrays that fit as they are, takes the direct way: no frame of slots and
// no references. Should the step decline, the call begins again on the general way.
#include <algorithm>
#include <vector>

#include "array/contract/describe.h"
#include "array/memory/copied.h"
#include "array/memory/overlap.h"
#include "graph/build.h"
#include "plan/execute.h"
#include "plan/plan.h"
#include "plan/profiled.h"
#include "runtime/errors.h"
#include "runtime/lazy.h"
#include "runtime/reaper.h"
#include "runtime/stack_array.h"
#include "runtime/stack_limit.h"
#include "runtime/up_calls.h"

namespace pyop {

namespace {

using CallReferences = StackRefs<8>;

PyObject* out_keyword() {
    static constinit Lazy name;
    return name.interned("out");
}

// Keyword arguments of a plan: inputs by name, and out=. Fills the gaps of `values` (borrowed).
int bind_keywords(const Program& p, PyObject* const* args, Py_ssize_t n_args, PyObject* kwnames,
                  std::vector<PyObject*>& values, PyObject** out) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(kwnames); ++i) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, i), *value = args[n_args + i];
        size_t k = 0;
        while (k < p.feeds.size() && PyUnicode_Compare(p.feeds[k].name.get(), name) != 0) ++k;
        if (k < p.feeds.size()) {
            if (values[k]) {
                PyErr_Format(PyExc_TypeError, "input '%s' of the plan is given twice", printable(name).c_str());
                return -1;
            }
            values[k] = value;
        } else if (PyUnicode_Compare(name, out_keyword()) == 0) {
            *out = value;
        } else {
            PyErr_Format(PyExc_TypeError, "the plan has no input '%s'; it has %s", printable(name).c_str(),
                         feed_names(p).c_str());
            return -1;
        }
    }
    return 0;
}

PYOP_COLD int wrong_arguments(const Program& p, Py_ssize_t got) {
    PyErr_Format(PyExc_TypeError, "the plan takes %zu arrays (%s), but got %zd", p.feeds.size(), feed_names(p).c_str(),
                 got);
    return -1;
}

PyObject* leaf_new(const PlanObject& plan, size_t i, PyObject* const* outputs) {
    const int32_t at = (*plan.leaves)[i];
    return at < 0 ? Py_NewRef(Py_None) : Py_NewRef(outputs[static_cast<size_t>(at)]);
}

PyObject* assemble(const PlanObject& plan, PyObject* const* outputs) {
    if (plan.plain_tree) return plan.plain_tree->build_new([&](size_t i) { return leaf_new(plan, i, outputs); });
    const size_t n = plan.leaves->size();
    if (plan.form == FetchForm::Single) return n == 0 ? Py_NewRef(Py_None) : leaf_new(plan, 0, outputs);
    const auto length = static_cast<Py_ssize_t>(n);
    Ref leaves = Ref::steal(plan.form == FetchForm::Tuple ? PyTuple_New(length) : PyList_New(length));
    for (size_t i = 0; leaves && i < n; ++i) {
        PyObject* leaf = leaf_new(plan, i, outputs);
        if (plan.form == FetchForm::Tuple)
            PyTuple_SET_ITEM(leaves.get(), static_cast<Py_ssize_t>(i), leaf);
        else
            PyList_SET_ITEM(leaves.get(), static_cast<Py_ssize_t>(i), leaf);
    }
    if (!leaves || plan.form != FetchForm::Tree) return leaves.release();
    return survive([&] { return PyObject_CallMethodOneArg(plan.tree, up_attributes.unflatten, leaves.get()); });
}

// --- out=

// out= is one array for a single output, else a sequence of one an output (None: no matter).
class Targets {
  public:
    // 0, or -1 with the error set.
    int read(const Program& p, PyObject* out) {
        const size_t n = p.n_results();
        if (n == 1 && !PyTuple_Check(out) && !PyList_Check(out)) {
            one_ = out;
            return 0;
        }
        items_ = Ref::steal(PySequence_Tuple(out));
        if (!items_) return -1;
        if (static_cast<size_t>(PyTuple_GET_SIZE(items_.get())) == n) return 0;
        PyErr_Format(errors.input, "out= must hold one array for each of the plan's %zu outputs, but holds %zd", n,
                     PyTuple_GET_SIZE(items_.get()));
        return -1;
    }
    PyObject* operator[](size_t k) const {
        return items_ ? PyTuple_GET_ITEM(items_.get(), static_cast<Py_ssize_t>(k)) : one_;
    }

  private:
    PyObject* one_ = nullptr;
    Ref items_;
};

std::string kind_text(PyObject* out) { return "a " + type_name(out) + " "; }

int check_out(PyObject* out, PyObject* result, size_t k) {
    const bool fits = is_exact_array(out) && is_exact_array(result) && PyArray_ISWRITEABLE(as_array(out)) &&
                      PyArray_EquivTypes(PyArray_DESCR(as_array(out)), PyArray_DESCR(as_array(result))) &&
                      PyArray_SAMESHAPE(as_array(out), as_array(result));
    if (fits) return 0;
    PyErr_Format(errors.input, "out= for output %zu of the plan must be a writable ndarray %s, but is %s%s%s", k,
                 array_text(result).c_str(), PyArray_Check(out) && !is_exact_array(out) ? kind_text(out).c_str() : "",
                 array_text(out).c_str(),
                 is_exact_array(out) && !PyArray_ISWRITEABLE(as_array(out)) ? " (read-only)" : "");
    return -1;
}

// A result that lies where another one is about to be written (the plan returns an input, and out= holds that).
int separate(PyObject*& result, PyObject* target) {
    if (!is_exact_array(result) || !may_overlap(as_array(result), as_array(target))) return 0;
    PyObject* copy = counted(PyArray_NewCopy(as_array(result), NPY_KEEPORDER));
    if (!copy) return -1;
    Py_SETREF(result, copy);
    return 0;
}

// Whether the results fit their targets. 0, or -1 with the error set.
int check_targets(const Program& p, const Targets& targets, CallReferences& outputs) {
    for (size_t k = 0; k < p.n_results(); ++k)
        if (targets[k] != Py_None && targets[k] != outputs[k] && check_out(targets[k], outputs[k], k) < 0) return -1;
    return 0;
}

// Copies the results that were not computed in their targets.
int deliver(const Program& p, const Targets& targets, CallReferences& outputs) {
    const size_t n = p.n_results();
    const auto written = [&](size_t k) { return targets[k] != Py_None && targets[k] != outputs[k]; };
    for (size_t k = 0; k < n; ++k) {
        if (!written(k)) continue;
        // NumPy's own copy between two windows of a row, of different steps, reads what it has written.
        for (size_t j = 0; j < n; ++j)
            if (separate(outputs[j], targets[k]) < 0) return -1;
    }
    for (size_t k = 0; k < n; ++k) {
        if (!written(k)) continue;
        PyArrayObject* target = as_array(targets[k]);
        if (counted(PyArray_CopyInto(target, as_array(outputs[k])), target) < 0) return -1;
        Py_SETREF(outputs[k], Py_NewRef(targets[k]));
    }
    return 0;
}

// Which results may be computed where the caller wants them: in arrays that nothing else of this run lies in.
void direct_targets(const Program& p, const Targets& targets, PyObject* const* feeds, PyObject** direct) {
    for (size_t k = 0; k < p.n_results(); ++k) {
        PyObject* target = targets[k];
        bool apart = is_exact_array(target);
        for (size_t j = 0; apart && j < p.feeds.size(); ++j)
            apart = !is_exact_array(feeds[j]) || !may_overlap(as_array(target), as_array(feeds[j]));
        for (size_t j = 0; apart && j < p.n_results(); ++j)
            apart = j == k || !is_exact_array(targets[j]) || !may_overlap(as_array(target), as_array(targets[j]));
        direct[k] = apart ? target : nullptr;
    }
}

// Gives results memory of their own that are two arrays as the graph was written.
PYOP_COLD int keep_apart(const Program& p, CallReferences& outputs) {
    for (const auto& group : p.shared_outputs) {
        for (size_t m = 1; m < group.size(); ++m) {
            PyObject*& result = outputs[group[m].output];
            for (size_t l = 0; l < m; ++l) {
                PyObject* other = outputs[group[l].output];
                if (group[l].owner == group[m].owner || !is_exact_array(other)) continue;
                if (result != other) {
                    if (separate(result, other) < 0) return -1;
                    continue;
                }
                PyObject* copy = counted(PyArray_NewCopy(as_array(result), NPY_KEEPORDER));
                if (!copy) return -1;
                Py_SETREF(result, copy);
            }
        }
    }
    return 0;
}

// --- the two ways

// Writes back, once nothing can be refused any more.
PYOP_COLD int finish_writes(const Program& p, const Graph& g, PyObject* const* feeds, const Targets* targets,
                            CallReferences& outputs) {
    if (targets && check_targets(p, *targets, outputs) < 0) return -1;
    last_outcome = Outcome::Done;
    return write_back(p, g, feeds, outputs.data());
}

PyObject* run_generally(PyObject* self, PyObject* const* values, PyObject* out) {
    const PlanObject& plan = *reinterpret_cast<PlanObject*>(self);
    const Program& p = *plan.program;
    CallReferences feeds(p.feeds.size()), outputs(p.outputs.size());
    Targets targets;
    StackArray<PyObject*, 8> direct(p.outputs.size());
    if (graph_of(plan.graph).check_usable() < 0 || check_feeds(p, values, feeds.data()) < 0) return nullptr;
    if (out && targets.read(p, out) < 0) return nullptr;
    if (PYOP_UNLIKELY(!p.writes.empty())) {
        last_outcome = Outcome::Refused;
        if (!may_write(p, values, feeds.data())) {
            last_outcome = set_cannot_write(p, values, feeds.data());
            return nullptr;
        }
    }
    std::fill_n(direct.data(), p.outputs.size(), nullptr);
    bool aims = out != nullptr;
    if (out) direct_targets(p, targets, feeds.data(), direct.data());
    CallReferences parts(p.writes_at_once && !out ? p.writes.size() : 0);
    if (p.writes_at_once && !out && parts_to_write_at_once(p, feeds.data(), parts.data())) {
        for (size_t k = 0; k < p.writes.size(); ++k) direct[p.writes[k].output] = parts[k];
        aims = true;
    }
    if (stack_is_low()) return no_stack_left(" in a pyop plan");
    if (Py_EnterRecursiveCall(" in a pyop plan")) return nullptr;
    int status;
    {
        const NotBuilding not_building;
        PyObject* const* const aim = aims ? direct.data() : nullptr;
        status = p.concurrent ? execute_concurrently(p, self, plan.graph, plan.threads, feeds.data(),
                                                     out ? nullptr : aim, outputs.data())
                              : execute(p, plan.graph, feeds.data(), aim, outputs.data());
    }
    Py_LeaveRecursiveCall();
    if (status < 0 && !p.writes.empty()) last_outcome = Outcome::Raised;
    if (status < 0 || (!p.shared_outputs.empty() && keep_apart(p, outputs) < 0)) return nullptr;
    if (PYOP_UNLIKELY(!p.writes.empty()) &&
        finish_writes(p, graph_of(plan.graph), feeds.data(), out ? &targets : nullptr, outputs) < 0)
        return nullptr;
    if (out && (check_targets(p, targets, outputs) < 0 || deliver(p, targets, outputs) < 0)) return nullptr;
    return assemble(plan, outputs.data());
}

// Null with no error set: not this way.
PyObject* run_directly(const PlanObject& plan, PyObject* const* values, PyObject* out) {
    const Program& p = *plan.program;
    const DirectCall& direct = *p.direct;
    if (PYOP_UNLIKELY(graph_of(plan.graph).check_usable() < 0) || !feeds_fit(p, values)) return nullptr;
    const size_t n_out = p.outputs.size();
    CallReferences outputs(n_out);
    StackArray<PyObject*, 8> inputs(direct.inputs.size());
    for (size_t k = 0; k < inputs.size(); ++k) {
        const Operand o = direct.inputs[k];
        inputs[k] = o.constant() ? p.constants[o.index()].get() : values[o.index()];
    }
    StepContext context;
    context.threads = plan.threads;
    if (out) {
        if (n_out != 1 || !is_exact_array(out)) return nullptr;
        context.targets = &out;
    }
    const auto run = [&] {
        const int done = direct.step->run(inputs.data(), outputs.data(), context);
        return done > 0 ? 0 : done < 0 ? -1 : 1;
    };
    // The step is the only instruction.
    const int status = profiling() ? run_profiled(p, 0, inputs.data(), outputs.data(), run) : run();
    if (status != 0 || (out && outputs[0] != out)) return nullptr;
    if (PYOP_LIKELY(plan.form == FetchForm::Single)) return std::exchange(outputs[0], nullptr);
    return assemble(plan, outputs.data());
}

PYOP_INLINE PyObject* run_plan(PyObject* self, PyObject* const* values, PyObject* out) {
    const PlanObject& plan = *reinterpret_cast<PlanObject*>(self);
    if (out == Py_None) out = nullptr;
    if (PYOP_LIKELY(plan.program->direct != nullptr)) {
        PyObject* result = run_directly(plan, values, out);
        if (PYOP_LIKELY(result != nullptr)) return result;
        if (PyErr_Occurred()) return nullptr;
    }
    return run_generally(self, values, out);
}

PYOP_COLD PyObject* run_plan_profiled(PyObject* self, PyObject* const* values, PyObject* out) {
    const Program& p = *reinterpret_cast<PlanObject*>(self)->program;
    Scope scope(p.profile_id, self, kWholeCall);
    for (size_t k = 0; k < p.feeds.size(); ++k) scope.bytes_in += bytes_in_arrays(values[k]);
    PyObject* result = run_plan(self, values, out);
    if (result) scope.succeeded(bytes_in_arrays(result));
    return result;
}

PyObject* call_plan(PyObject* self, PyObject* const* values, PyObject* out) {
    return profiling() ? run_plan_profiled(self, values, out) : run_plan(self, values, out);
}

PyObject* call_with_keywords(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
    const Program& p = *reinterpret_cast<PlanObject*>(self)->program;
    if (static_cast<size_t>(n) > p.feeds.size()) {
        wrong_arguments(p, n);
        return nullptr;
    }
    std::vector<PyObject*> values(args, args + n);
    values.resize(p.feeds.size() + 1);
    PyObject* out = nullptr;
    if (kwnames && bind_keywords(p, args, n, kwnames, values, &out) < 0) return nullptr;
    for (size_t k = 0; k < p.feeds.size(); ++k) {
        if (values[k]) continue;
        PyErr_Format(PyExc_TypeError, "input '%s' of the plan is missing; it has %s",
                     printable(p.feeds[k].name.get()).c_str(), feed_names(p).c_str());
        return nullptr;
    }
    return call_plan(self, values.data(), out);
}

}  // namespace

std::string feed_names(const Program& p) {
    std::string text;
    for (const Feed& feed : p.feeds) {
        text += (text.empty() ? "" : ", ") + printable(feed.name.get());
    }
    return text.empty() ? "no inputs" : "inputs " + text;
}

PyObject* plan_vectorcall(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
    return guarded(
        [&]() -> PyObject* {
            // The caller may drop its last reference to the plan while it runs, or while others are released.
            const Ref alive = Ref::borrow(self);
            reaper_poll();
            const Py_ssize_t n = PyVectorcall_NARGS(nargsf);
            if (PYOP_LIKELY(static_cast<size_t>(n) == reinterpret_cast<PlanObject*>(self)->program->feeds.size())) {
                if (PYOP_LIKELY(!kwnames)) return call_plan(self, args, nullptr);
                if (PyTuple_GET_SIZE(kwnames) == 1 && PyTuple_GET_ITEM(kwnames, 0) == out_keyword())
                    return call_plan(self, args, args[n]);
            }
            return call_with_keywords(self, args, n, kwnames);
        },
        static_cast<PyObject*>(nullptr));
}

}  // namespace pyop
