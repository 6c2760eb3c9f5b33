// plan/compiled_function.cpp: make a call: by the most recent guard, a remembered one, or another trace.
#include "plan/compiled_function.h"

#include <optional>

#include "array/loop/quiet.h"
#include "array/memory/array_bytes.h"
#include "graph/build.h"
#include "plan/disabled.h"
#include "plan/paths.h"
#include "plan/plan.h"
#include "plan/quick/quick_arrays.h"
#include "plan/quick/quick_numbers.h"
#include "plan/read_call.h"
#include "plan/result_forms.h"
#include "plan/state_inputs.h"
#include "plan/trace_call.h"
#include "plan/trial.h"
#include "profile/scope.h"
#include "runtime/errors.h"
#include "runtime/lazy.h"
#include "runtime/meter.h"
#include "runtime/reaper.h"
#include "runtime/stack_array.h"
#include "runtime/stack_limit.h"
#include "runtime/up_calls.h"

namespace pyop {

namespace {

PyObject* run_plan_new(PyObject* plan, PyObject* const* feeds, size_t n, PyObject* out) {
    if (!out) return vectorcall_new(plan, feeds, n);
    static constinit Lazy out_names;
    PyObject* names = out_names.get([] { return PyTuple_Pack(1, out_name()); });
    if (!names) return nullptr;
    StackArray<PyObject*, 16> all(n + 1);
    std::copy_n(feeds, n, all.data());
    all[n] = out;
    return vectorcall_new(plan, all.data(), n, names);
}

// The function itself, whose result goes where that of a plan would.
PyObject* run_into_new(PyObject* fn, const ReadCall& read) {
    const Ref result = Ref::steal(vectorcall_new(fn, read.call.args, read.call.n_positional, read.call.names));
    if (!result) return nullptr;
    return PyObject_CallFunctionObjArgs(up_calls.result_into, fn, result.get(), read.out, nullptr);
}

// Runs a plan on the leaves of a call, numbers as arrays.
PyObject* run_on_leaves_new(const Guard& guard, PyObject* plan, PyObject* const* leaves, PyObject* out) {
    StackArray<PyObject*, 16> feeds(guard.feeds.size());
    StackRefs<16> made(guard.any_number ? guard.feeds.size() : 0);
    for (size_t k = 0; k < guard.feeds.size(); ++k) {
        const uint32_t leaf = guard.feeds[k];
        feeds[k] = leaves[leaf];
        if (guard.leaves[leaf].type_num == NPY_NOTYPE) continue;
        feeds[k] = made[k] = number_array_new(guard, leaf, feeds[k]);
        if (!made[k]) return nullptr;
    }
    return run_plan_new(plan, feeds.data(), feeds.size(), out);
}

// Runs the plan that was found for a call.
PyObject* run_plan_of(const Found& found, const Call& call, const Leaves& leaves, PyObject* out) {
    PyObject *const plan = found.plan.get(), *const finish = found.finish.get();
    const Guard& guard = *found.guard;
    const NumberForm form = found.form;
    std::optional<RaisingErrors> alert;
    if (PYOP_UNLIKELY(guard.alert)) {
        alert.emplace(guard.alert_underflow);
        if (!*alert) return PyErr_NoMemory();
    }
    Ref result =
        Ref::steal(found.flat || !leaves.filled ? run_plan_new(plan, call.args, static_cast<size_t>(call.n), out)
                                                : run_on_leaves_new(guard, plan, leaves.items.data(), out));
    if (!result || !finish) return result.release();
    if (form == NumberForm::Scalar && out) return result.release();  // the caller's own array
    if (form == NumberForm::Listed) return formed_steal(result.release(), finish, out);
    if (form != NumberForm::Other) return in_form_steal(result.release(), form);
    return survive([&] { return PyObject_CallFunctionObjArgs(finish, result.get(), out, nullptr); });
}

// Whether the function itself is to run after an error of its plan, from the start: it catches exceptions, or writes
// into arguments, of which NumPy's hold what was written before. Not if that would do other effects twice.
bool runs_after(const Found& found) {
    if (!PyErr_ExceptionMatches(PyExc_Exception)) return false;
    if (!found.plan || program_of(found.plan).writes.empty()) return found.guard->rerun;
    if (last_outcome == Outcome::Declined) return true;
    if (last_outcome != Outcome::Raised) return false;
    if (!program_of(found.plan).effects) return true;
    const Ref note = Ref::steal(PyUnicode_FromString(
        "the arguments that the compiled function writes into are as they were before the call: it also has effects "
        "(a stateful op), which are not done twice"));
    if (note) note_pending(note.get());
    return false;
}

// The function itself, on the arguments as they are or as they are declared.
PyObject* run_function_new(PyObject* self, const Guard& guard, const ReadCall& read) {
    CompiledFunctionObject& f = compiled_function_of(self);
    const Call& call = read.call;
    const Ref fn = Ref::borrow(f.fn), plainly = guard.plainly;
    if (!read.out && !f.declared)
        return vectorcall_new(fn.get(), call.args, static_cast<size_t>(call.n_positional), call.names);
    const Ref arguments = arguments_of(call), n = Ref::steal(PyLong_FromSsize_t(call.n_positional));
    if (!arguments || !n) return nullptr;
    PyObject* given[] = {arguments.get(), n.get(), call.names ? call.names : Py_None, read.out ? read.out : Py_None};
    return vectorcall_new(plainly.get(), given, 4);
}

// The same, in the profile if there is one.
PyObject* run_itself(PyObject* self, const Guard& guard, const ReadCall& read) {
    if (PYOP_LIKELY(!profiling())) return run_function_new(self, guard, read);
    Scope scope(compiled_function_of(self).profile_id, self, kWholeCall);
    for (Py_ssize_t i = 0; i < read.call.n; ++i) scope.bytes_in += bytes_in_arrays(read.call.args[i]);
    PyObject* result = run_function_new(self, guard, read);
    if (result) scope.succeeded(bytes_in_arrays(result));
    return result;
}

// What a call finds, tracing if there is nothing yet; empty with the error set, or with `answer` if the function has
// been called in another way.
Found find(PyObject* self, const ReadCall& read, Leaves& leaves, Ref& answer) {
    CompiledFunctionObject& f = compiled_function_of(self);
    int status;
    const auto counted = [&](const std::shared_ptr<Guard>& guard) {
        ++f.hits;
        if (!kWithoutGil && !guard->quick.looked_for && !read.call.names &&
            (guard->flat || guard->numbers || guard->quick_alert))
            look_for_quick_ways(*guard, read.call.args);
        return found_in(guard, read.call, leaves);
    };
    {
        const ObjectLock lock(self);
        const std::shared_ptr<Guard> guard = f.guards->find_recent(read.call, leaves, status);
        if (guard) return counted(guard);
    }
    if (status < 0) return {};
    if (f.states && !read.out && !read.wants_plan) {
        answer = Ref::steal(call_with_state_new(self, read));
        if (answer || PyErr_Occurred()) return {};
    }
    const uint64_t hash = hash_call(read.call, f.statics, f.declared);
    {
        const ObjectLock lock(self);
        const std::shared_ptr<Guard> guard = f.guards->find(hash, read.call, leaves, status);
        if (guard) return counted(guard);
    }
    if (status < 0) return {};
    return trace_call(self, read, hash, nullptr, leaves, answer);
}

// What a call gives whose plan has raised where that may not be the end: the result of another path, or of the function
// itself.
PyObject* go_on(PyObject* self, Found found, const ReadCall& read, Leaves& leaves) {
    constexpr int kMostChanges = 1000;  // more only if somebody writes the arguments meanwhile
    for (int changes = 0; PyErr_ExceptionMatches(up_calls.path_left); ++changes) {
        Leaving leaving;
        if (!read_leaving(leaving)) return nullptr;
        const std::shared_ptr<Guard> guard = found.guard;
        Way way = Way::Itself;
        if (changes < kMostChanges) {
            const ObjectLock lock(self);
            way = take_path(*guard, leaving.path, leaving.at, leaving.outcome);
        }
        if (way == Way::Untraced) {
            Ref answer;
            found = trace_call(self, read, guard->hash, guard.get(), leaves, answer);
            if (!found) return answer.release();
        } else if (way == Way::Itself) {
            return run_itself(self, *guard, read);
        }
        {
            const ObjectLock lock(self);
            // Another thread may have added a path by which the guard looks at leaves, or changed what the function
            // reads.
            const int same = found.guard->flat ? 1 : fits(*found.guard, read.call, leaves);
            if (same < 0) return nullptr;
            found = found_in(found.guard, read.call, leaves);
            found.itself |= same == 0;
        }
        if (found.itself) return run_itself(self, *found.guard, read);
        std::optional<QuietUntil> quiet;  // where errors raise nothing is warned of
        if (!found.guard->alert && quiet.emplace(leaving.at).failed()) return nullptr;
        PyObject* result = run_plan_of(found, read.call, leaves, read.out);
        if (result) return result;
    }
    if (!runs_after(found)) return nullptr;
    Guard& guard = *found.guard;
    if (guard.alert && PyErr_ExceptionMatches(PyExc_FloatingPointError)) {
        const ObjectLock lock(self);
        if (++guard.alarms >= 3) guard.itself = true;  // where it happens again and again the plan is in vain
    }
    PyErr_Clear();
    return run_itself(self, guard, read);
}

PyObject* run_found(PyObject* self, const Found& found, const ReadCall& read, Leaves& leaves) {
    if (found.itself) return run_itself(self, *found.guard, read);
    const auto run_plan = [&] {
        PyObject* result = run_plan_of(found, read.call, leaves, read.out);
        return PYOP_LIKELY(result || !found.goes_on) ? result : go_on(self, found, read, leaves);
    };
    if (PYOP_LIKELY(!found.on_trial)) return run_plan();
    return run_on_trial(self, *found.guard, run_plan, [&] { return run_itself(self, *found.guard, read); });
}

// The same where the plan has raised without a guard at hand.
PYOP_COLD PyObject* go_on_flat(PyObject* self, PyObject* const* args, Py_ssize_t n) {
    return guarded(
        [&]() -> PyObject* {
            CompiledFunctionObject& f = compiled_function_of(self);
            const Ref alive = Ref::borrow(self);
            const ReadCall read(f, args, n, nullptr);
            Leaves leaves;
            Ref error = take_pending();
            PyErr_Clear();
            int status;
            Found found;
            {
                const ObjectLock lock(self);
                const std::shared_ptr<Guard> guard =
                    f.guards->find(hash_call(read.call, f.statics, f.declared), read.call, leaves, status);
                if (status < 0) return nullptr;
                if (guard) found = found_in(guard, read.call, leaves);
            }
            // Forgotten meanwhile: from the beginning, if it was about a path.
            if (!found && PyErr_GivenExceptionMatches(error.get(), up_calls.path_left)) {
                Ref answer;
                found = find(self, read, leaves, answer);
                return found ? run_found(self, found, read, leaves) : answer.release();
            }
            restore_pending(std::move(error));
            return found ? go_on(self, std::move(found), read, leaves) : nullptr;
        },
        static_cast<PyObject*>(nullptr));
}

// Runs the plan of a guard that takes positional arrays and fits.
PYOP_INLINE PyObject* run_flat(PyObject* self, const Guard& guard, PyObject* const* args, Py_ssize_t n) {
    ++compiled_function_of(self).hits;
    PyObject* plan = guard.plan.get();  // keeps itself alive while it runs
    const bool goes_on = guard.goes_on;
    const NumberForm form = guard.quick.form;
    const Ref listed = form == NumberForm::Listed ? guard.finish : Ref();
    PyObject* result = reinterpret_cast<PlanObject*>(plan)->vectorcall(plan, args, static_cast<size_t>(n), nullptr);
    if (listed) result = formed_steal(result, listed.get(), nullptr);
    if (PYOP_LIKELY(result || !goes_on)) return in_form_steal(result, form);
    return go_on_flat(self, args, n);
}

PyObject* call_general(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* names) {
    CompiledFunctionObject& f = compiled_function_of(self);
    const Ref alive = Ref::borrow(self);
    const int disabled = disabled_anywhere ? is_disabled() : 0;
    if (disabled < 0) return nullptr;
    ReadCall read(f, args, PyVectorcall_NARGS(nargsf), names);
    if (read.failed) return nullptr;
    if (disabled || (graphs_being_built && graph_being_built())) {
        const Ref fn = Ref::borrow(f.fn);
        if (disabled && read.out) return run_into_new(fn.get(), read);
        return vectorcall_new(fn.get(), args, nargsf, names);
    }
    Leaves leaves;
    Ref answer;
    const Found found = find(self, read, leaves, answer);
    return found ? run_found(self, found, read, leaves) : answer.release();
}

// A call by whatever way it takes.
[[gnu::noinline]] PyObject* call_by_guard(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* names) {
    CompiledFunctionObject& f = compiled_function_of(self);
    const Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    const Ref alive = Ref::borrow(self);
    reaper_poll();
    Guard* guard = kWithoutGil || disabled_anywhere ? nullptr : f.guards->recent();
    const bool simple = guard && !names && !graphs_being_built;
    const bool plain = simple && n == guard->n_positional && guard->in_form();
    if (PYOP_LIKELY(plain && guard->flat && fits_flat(*guard, args) && guard->captured.unchanged())) {
        if (PYOP_UNLIKELY(!guard->quick.looked_for)) look_for_quick_ways(*guard, args);
        return run_flat(self, *guard, args, n);
    }
    if (simple)
        if (const Guard* other = f.guards->lately(args, n)) return run_flat(self, *other, args, n);
    if (plain && guard->numbers && fits_numbers(*guard, args) && guard->captured.unchanged()) {
        ++f.hits;
        if (PYOP_UNLIKELY(!guard->quick.looked_for)) look_for_quick_ways(*guard, args);
        const Ref plan = guard->plan;
        const bool goes_on = guard->goes_on;
        const NumberForm form = guard->quick.form;
        const Ref listed = form == NumberForm::Listed ? guard->finish : Ref();
        PyObject* result = guarded([&] { return run_on_leaves_new(*guard, plan.get(), args, nullptr); },
                                   static_cast<PyObject*>(nullptr));
        if (listed) result = formed_steal(result, listed.get(), nullptr);
        return PYOP_LIKELY(result || !goes_on) ? in_form_steal(result, form) : go_on_flat(self, args, n);
    }
    if (stack_is_low()) return no_stack_left(" in a compiled function");
    return guarded([&] { return call_general(self, args, nargsf, names); }, static_cast<PyObject*>(nullptr));
}

// The ways without a frame (plan/quick/) where that may run Python, or what the function had read has to be looked up.
[[gnu::noinline]] PyObject* call_quickly(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* names,
                                         PyObject* out) {
    CompiledFunctionObject& f = compiled_function_of(self);
    const Ref alive = Ref::borrow(self);
    const Guard& guard = *f.guards->recent();
    if (!guard.captured.unchanged()) return call_by_guard(self, args, nargsf, names);
    ++f.hits;
    if (guard.quick.arrays) return guard.quick.arrays->call(args, out, self, nargsf, names);
    return guard.quick.numbers->call(args, self, nargsf, names, compiled_vectorcall_otherwise);
}

}  // namespace

// Nothing is held, and hardly a register kept: what runs Python is a function apart, which holds `self`.
PyObject* compiled_vectorcall(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* names) {
    CompiledFunctionObject& f = compiled_function_of(self);
    const Guard* const guard = kWithoutGil ? nullptr : f.guards->recent();
    if (!guard || graphs_being_built || disabled_anywhere || profiling() ||
        PYOP_UNLIKELY(reaper::state.graveyard.load(std::memory_order_relaxed) != nullptr))
        return call_by_guard(self, args, nargsf, names);
    const QuickArrays* const arrays = guard->quick.arrays.get();
    const QuickNumbers* const numbers = guard->quick.numbers.get();
    const auto n = static_cast<size_t>(PyVectorcall_NARGS(nargsf));
    if (arrays ? n != arrays->n_arguments() : !numbers || n != numbers->n_arguments())
        return call_by_guard(self, args, nargsf, names);
    PyObject* out = nullptr;
    if (names && PyTuple_GET_SIZE(names) != 0) {
        if (!arrays || !f.takes_out || PyTuple_GET_SIZE(names) != 1 || PyTuple_GET_ITEM(names, 0) != out_name())
            return call_by_guard(self, args, nargsf, names);
        out = args[n];
    }
    if (PYOP_UNLIKELY(!guard->captured.plainly_unchanged()) || (!arrays && numbers->may_run_python()))
        return call_quickly(self, args, nargsf, names, out);
    ++f.hits;
    return arrays ? arrays->call(args, out, self, nargsf, names)
                  : numbers->call(args, self, nargsf, names, compiled_vectorcall_otherwise);
}

PyObject* compiled_vectorcall_otherwise(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* names) {
    --compiled_function_of(self).hits;
    return PyErr_Occurred() ? nullptr : call_by_guard(self, args, nargsf, names);
}

PyObject* compiled_plan_for(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    return guarded(
        [&]() -> PyObject* {
            ReadCall read(compiled_function_of(self), args, n, names);
            if (read.failed) return nullptr;
            read.wants_plan = true;
            Leaves leaves;
            Ref answer;
            Found found = find(self, read, leaves, answer);
            if (found && found.branches) {  // which path it is, only a run can tell
                const Ref result = Ref::steal(run_found(self, found, read, leaves));
                found = result ? find(self, read, leaves, answer) : Found();
            }
            if (found && found.plan) return found.plan.release();
            if (found && !PyErr_Occurred())
                PyErr_SetString(PyExc_TypeError,
                                "there is no plan for such arguments: the function itself runs, as a "
                                "RetraceWarning has told, with the reason");
            if (found) return nullptr;
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_TypeError,
                                "there is no plan for such arguments: they are symbolic, or must be converted to "
                                "ndarrays first");
            return nullptr;
        },
        static_cast<PyObject*>(nullptr));
}

PyObject* compiled_plans_for(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    return guarded(
        [&]() -> PyObject* {
            ReadCall read(compiled_function_of(self), args, n, names);
            if (read.failed) return nullptr;
            read.wants_plan = true;
            Leaves leaves;
            Ref answer;
            const Found found = find(self, read, leaves, answer);
            const ObjectLock lock(self);
            if (found) return plans_of_paths_new(*found.guard);
            return PyErr_Occurred() ? nullptr : PyTuple_New(0);
        },
        static_cast<PyObject*>(nullptr));
}

}  // namespace pyop
