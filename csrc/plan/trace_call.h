// plan/trace_call.h: what a call of a compiled function finds, and the trace where it finds nothing.
#pragma once

#include <algorithm>

#include "plan/plan.h"
#include "plan/read_call.h"

namespace pyop {

// A guard that fits a call, and what of it the call runs, as it is when it is found: other calls change the guard.
struct Found {
    std::shared_ptr<Guard> guard;
    Ref plan, finish;
    NumberForm form = NumberForm::AsIs;
    bool flat = false;      // the arguments are the leaves
    bool itself = false;    // the function itself is to run
    bool goes_on = false, on_trial = false, branches = false;

    explicit operator bool() const { return static_cast<bool>(guard); }
};

inline const Program& program_of(const Ref& plan) { return *reinterpret_cast<PlanObject*>(plan.get())->program; }

// Whether the plan writes where the function's own arrays lie, which it would not see.
inline bool writes_what_is_held(const Guard& guard, const Call& call, const Leaves& leaves) {
    if (guard.flat || !guard.plan || !guard.captured.reads_elements()) return false;
    const auto& writes = program_of(guard.plan).writes;
    return std::any_of(writes.begin(), writes.end(), [&](const WriteBack& write) {
        const uint32_t leaf = guard.feeds[write.feed];
        PyObject* array = leaves.filled ? leaves.items[leaf] : call.args[leaf];
        return is_exact_array(array) && guard.captured.may_lie_in(as_array(array));
    });
}

// Under the lock of the function, as the call has been compared.
inline Found found_in(std::shared_ptr<Guard> guard, const Call& call, const Leaves& leaves) {
    Found found;
    found.itself = guard->itself || writes_what_is_held(*guard, call, leaves);
    found.plan = guard->plan;
    found.finish = guard->finish;
    found.form = guard->quick.form;
    found.flat = guard->flat;
    found.goes_on = guard->goes_on;
    found.on_trial = static_cast<bool>(guard->trial);
    found.branches = !guard->outcomes.empty();
    found.guard = std::move(guard);
    return found;
}

// Traces a call. What serves it then; empty with the error set, or with `answer` if the function has been called in
// another way: by the function itself, too, where another thread is tracing it. `known`: the guard of paths that this
// call leaves, or null.
Found trace_call(PyObject* self, const ReadCall& read, uint64_t hash, const Guard* known, Leaves& leaves, Ref& answer);

// A call as `miss` and `plainly` take it; null with the error set.
inline Ref arguments_of(const Call& call) {
    Ref arguments = Ref::steal(PyTuple_New(call.n));
    for (Py_ssize_t i = 0; arguments && i < call.n; ++i) PyTuple_SET_ITEM(arguments.get(), i, Py_NewRef(call.args[i]));
    return arguments;
}

}  // namespace pyop
