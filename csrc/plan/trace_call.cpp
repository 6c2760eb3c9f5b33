// plan/trace_call.cpp: Python traces, and a guard is made of what it says.
#include "plan/trace_call.h"

#include <unistd.h>  // usleep

#include <algorithm>
#include <optional>

#include "array/memory/array_bytes.h"
#include "plan/paths.h"
#include "plan/trial.h"
#include "runtime/attach.h"
#include "runtime/errors.h"

namespace pyop {

namespace {

// What `miss` may say beside 1 of a function that runs itself where its plan raises.
constexpr int kAlert = 2, kAlertUnderflow = 4;

// What `miss` says of a call that it has traced.
struct Traced {
    PyObject *plan, *kinds, *trees, *keys, *finish, *readings, *outcomes = Py_None, *plainly = Py_None,
                                                               *trial = Py_None;  // borrowed
    int identity, rerun = 0;

    bool read(PyObject* made) {
        return PyArg_ParseTuple(made, "OSO!O!OO!p|OOiO", &plan, &kinds, &PyTuple_Type, &trees, &PyTuple_Type, &keys,
                                &finish, &PyTuple_Type, &readings, &identity, &outcomes, &plainly, &rerun, &trial);
    }
    bool itself() const { return plan == Py_None && outcomes == Py_None; }
    // 0, or -1 with the error set.
    int read_path(Path& path) const {
        for (Py_ssize_t i = 0; outcomes != Py_None && i < PyTuple_GET_SIZE(outcomes); ++i)
            path.outcomes.push_back(PyLong_AsLongLong(PyTuple_GET_ITEM(outcomes, i)));
        if (PyErr_Occurred()) return -1;
        if (plan != Py_None) path.plan = Ref::borrow(plan);
        if (finish != Py_None) path.finish = Ref::borrow(finish);
        path.quick.form = number_form_of(path.finish.get());
        return path.captured.set(readings);
    }
};

// A plan that writes into arguments may leave the call to the function itself.
void note_writes(Guard& guard) {
    if (!guard.plan || program_of(guard.plan).writes.empty()) return;
    guard.goes_on = true;
    if (!guard.captured.reads_elements()) return;
    guard.flat = guard.numbers = guard.quick_alert = false;
    guard.ways = {};
}

// Fills the leaves of the call that a guard was made for, or changed for; false with the error set.
bool fitting(const Guard& guard, const Call& call, Leaves& leaves) {
    const int same = fits(guard, call, leaves);
    if (same == 0) PyErr_SetString(PyExc_RuntimeError, "the arguments of a compiled function do not equal themselves");
    return same > 0;
}

// One thread at a time traces a function: what a trace keeps of it is kept once, and a plan is made once.
class TraceTurn {
  public:
    explicit TraceTurn(PyObject* self) : f_(compiled_function_of(self)) {
        const unsigned long here = PyThread_get_thread_ident();
        taken_ = f_.traces == 0 || f_.tracer == here;
        if (!taken_) return;
        f_.tracer = here;
        ++f_.traces;
    }
    ~TraceTurn() {
        if (!taken_) return;
        const ObjectLock lock(reinterpret_cast<PyObject*>(&f_));
        --f_.traces;
    }
    TraceTurn(const TraceTurn&) = delete;
    TraceTurn& operator=(const TraceTurn&) = delete;
    bool taken() const { return taken_; }

  private:
    CompiledFunctionObject& f_;
    bool taken_;
};

// Whether the function itself may be called with these, whatever is traced: nothing symbolic or recorded is in them.
bool are_plain(const Call& call) {
    return std::all_of(call.args, call.args + call.n, [](PyObject* o) {
        return is_exact_array(o) || PyFloat_CheckExact(o) || PyLong_CheckExact(o) || PyBool_Check(o) ||
               PyComplex_CheckExact(o) || PyUnicode_CheckExact(o) || o == Py_None || PyArray_IsScalar(o, Generic);
    });
}

// How long one waits who cannot do without a plan. Not for ever: the function that is traced may wait for him.
constexpr int kMostWaits = 500, kWait = 2000;  // µs

// Waits until no other thread traces the function. 0, or -1 with the error set.
int await_trace(const CompiledFunctionObject& f) {
    for (int k = 0; k < kMostWaits && __atomic_load_n(&f.traces, __ATOMIC_RELAXED) != 0; ++k) {
        {
            const DetachScope detached;
            usleep(kWait);
        }
        if (PyErr_CheckSignals() < 0) return -1;
    }
    return 0;
}

Found trace_in_turn(PyObject* self, const ReadCall& read, uint64_t hash, const Guard* known, Leaves& leaves,
                    Ref& answer) {
    CompiledFunctionObject& f = compiled_function_of(self);
    const Call& call = read.call;
    const Ref arguments = arguments_of(call), n_positional = Ref::steal(PyLong_FromSsize_t(call.n_positional));
    Ref paths = read.wants_plan ? Ref::steal(PyTuple_New(0)) : Ref::borrow(Py_None);
    if (known) {
        const ObjectLock lock(self);
        paths = Ref::steal(plans_of_paths_new(*known));
    }
    if (!arguments || !n_positional || !paths) return {};
    PyObject* given[] = {self,
                         arguments.get(),
                         n_positional.get(),
                         call.names ? call.names : Py_None,
                         read.out ? read.out : Py_None,
                         paths.get()};
    const Ref miss = Ref::borrow(f.miss);
    const Ref made = Ref::steal(vectorcall_new(miss.get(), given, 6));
    if (!made) return {};
    if (!PyTuple_Check(made.get()) || PyTuple_GET_SIZE(made.get()) == 1) {
        answer = PyTuple_Check(made.get()) ? Ref::borrow(PyTuple_GET_ITEM(made.get(), 0)) : made;
        return {};
    }
    ++f.misses;
    Traced traced;
    Path path;
    if (!traced.read(made.get()) || traced.read_path(path) < 0) return {};
    const ObjectLock lock(self);
    // Another call of this thread may have been as quick.
    int status;
    std::shared_ptr<Guard> guard = f.guards->find(hash, call, leaves, status);
    if (status < 0) return {};
    if (guard && !traced.itself() && (path.outcomes.empty() || guard->itself))
        return found_in(std::move(guard), call, leaves);
    if (guard && !traced.itself() && PyObject_RichCompareBool(guard->kinds.get(), traced.kinds, Py_EQ) == 1) {
        const bool runs = path.plan.get();
        add_path(*guard, std::move(path));
        if (runs) {
            note_writes(*guard);  // which may have it look at leaves that it did not before
            begin_trial(*guard, traced.trial);
            return fitting(*guard, call, leaves) ? found_in(std::move(guard), call, leaves) : Found();
        }
    } else if (guard) {
        f.guards->remove(guard.get());
    }
    const bool only_now = !traced.itself() && traced.plan == Py_None;
    Ref gone = Ref::steal(PyObject_GetAttrString(self, "_forget"));
    guard = gone ? make_guard(call, traced.kinds, traced.trees, traced.keys, gone.get(), f.declared) : nullptr;
    if (!guard) return {};
    guard->hash = hash;
    if (traced.identity) guard->identity = true, guard->flat = guard->numbers = false;
    guard->kinds = Ref::borrow(traced.kinds);
    guard->itself = traced.plan == Py_None;
    guard->plainly = Ref::borrow(traced.plainly);
    guard->rerun = traced.rerun != 0;
    guard->alert = (traced.rerun & kAlert) != 0;
    guard->alert_underflow = (traced.rerun & kAlertUnderflow) != 0;
    if (guard->alert) {
        guard->quick_alert = !guard->alert_underflow && (guard->flat || guard->numbers);
        guard->flat = guard->numbers = false;
    }
    guard->goes_on = guard->rerun || !path.outcomes.empty();
    guard->plan = std::move(path.plan);
    guard->finish = std::move(path.finish);
    guard->quick = std::move(path.quick);
    guard->captured = std::move(path.captured);
    guard->outcomes = std::move(path.outcomes);
    if (guard->itself) guard->flat = guard->numbers = false;
    note_writes(*guard);
    begin_trial(*guard, traced.trial);
    if (!fitting(*guard, call, leaves)) return {};
    if (!only_now) f.guards->add(guard);
    return found_in(std::move(guard), call, leaves);
}

}  // namespace

Found trace_call(PyObject* self, const ReadCall& read, uint64_t hash, const Guard* known, Leaves& leaves, Ref& answer) {
    CompiledFunctionObject& f = compiled_function_of(self);
    const bool needs_plan = read.out || read.wants_plan || f.declared || f.derives || !are_plain(read.call);
    if (needs_plan && f.traces != 0 && f.tracer != PyThread_get_thread_ident() && await_trace(f) < 0) return {};
    std::optional<TraceTurn> turn;
    {
        const ObjectLock lock(self);
        turn.emplace(self);
        // Whom another thread has been quicker than.
        int status = 0;
        const bool again = turn->taken() && !known && !read.wants_plan;
        std::shared_ptr<Guard> guard = again ? f.guards->find(hash, read.call, leaves, status) : nullptr;
        if (guard) return ++f.hits, found_in(std::move(guard), read.call, leaves);
        if (status < 0) return {};
    }
    if (turn->taken() || needs_plan) return trace_in_turn(self, read, hash, known, leaves, answer);
    const Ref fn = Ref::borrow(f.fn);
    const Call& call = read.call;
    answer = Ref::steal(vectorcall_new(fn.get(), call.args, static_cast<size_t>(call.n_positional), call.names));
    return {};
}

}  // namespace pyop
