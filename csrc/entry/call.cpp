// entry/call.cpp: one call from C.
#include <cstring>

#include "array/loop/fp_flags.h"
#include "entry/entry.h"
#include "entry/failure.h"
#include "plan/tape/bound_array.h"
#include "profile/scope.h"
#include "runtime/attach.h"
#include "runtime/errors.h"
#include "runtime/lazy.h"
#include "runtime/stack_array.h"

namespace pyop {

namespace {

const Entry& entry_in(const pyop_plan* plan) { return *reinterpret_cast<const Entry*>(plan); }

// --- with Python

PyObject* array_new(const EntryArray& a) {
    Py_INCREF(a.dtype);
    return PyArray_NewFromDescr(&PyArray_Type, a.dtype, a.told.ndim, a.dims.data(), nullptr, nullptr, 0, nullptr);
}

// Attached threads. Copies, since a function may keep what it is given, and may be given nothing misaligned. 0, or -1
// with the error set and nothing written.
int call_attached(const Entry& e, const void* const* in, void* const* out) {
    static constinit Lazy out_names;
    PyObject* const names = out_names.get([] { return Py_BuildValue("(s)", "out"); });
    if (!names) return -1;
    const Ref alive = Ref::borrow(e.plan);
    const size_t n_in = e.inputs.size(), n_out = e.outputs.size();
    StackRefs<16> arguments(n_in + 1);
    for (size_t k = 0; k < n_in; ++k) {
        arguments[k] = array_new(e.inputs[k]);
        if (!arguments[k]) return -1;
        std::memcpy(PyArray_DATA(as_array(arguments[k])), in[k], e.inputs[k].told.bytes);
    }
    PyObject* const targets = PyTuple_New(static_cast<Py_ssize_t>(n_out));
    arguments[n_in] = targets;
    for (size_t k = 0; targets && k < n_out; ++k) {
        PyObject* target = array_new(e.outputs[k]);
        if (!target) return -1;
        PyTuple_SET_ITEM(targets, static_cast<Py_ssize_t>(k), target);
    }
    if (!targets) return -1;
    const Ref result = Ref::steal(plan_vectorcall(e.plan, arguments.data(), n_in, names));
    if (!result) return -1;
    for (size_t k = 0; k < n_out; ++k)
        std::memcpy(out[k], PyArray_DATA(as_array(PyTuple_GET_ITEM(targets, static_cast<Py_ssize_t>(k)))),
                    e.outputs[k].told.bytes);
    return 0;
}

PYOP_COLD int call_with_python(const Entry& e, const void* const* in, void* const* out) {
    const bool before = attached();
    const AttachScope scope;
    if (!scope) return failed_with(PYOP_SHUT_DOWN, "the plan needs Python, which is shutting down");
    if (guarded([&] { return call_attached(e, in, out); }, -1) == 0) return PYOP_OK;
    return failed_with_error(before);
}

// --- without

// What np.errstate has for a thread that never was in Python is NumPy's default: an underflow is nothing.
PYOP_COLD bool ignored(int flags) {
    if (!attached() && !PyGILState_GetThisThreadState()) return (flags & ~FE_UNDERFLOW) == 0;
    const AttachScope scope;
    return scope && errstate_ignores(flags);
}

// One number, without a call.
PYOP_INLINE void copy_number(void* to, const void* from, size_t size) {
    if (PYOP_LIKELY(size == 8))
        std::memcpy(to, from, 8);
    else
        std::memcpy(to, from, size);
}

// 1: done; 0: not this way, nothing is written.
int run_native(const Entry& e, const void* const* in, void* const* out) {
    const Tape& tape = e.tape;
    StackArray<TapeCell, 256> memory(tape.cells.size() + 1);
    TapeCell* const cells = memory.data() + (reinterpret_cast<uintptr_t>(memory.data()) % 16 != 0);
    std::memcpy(cells, tape.cells.data(), tape.cells.size() * sizeof(TapeCell));
    for (size_t k = 0; k < e.given.size(); ++k) {
        const EntryArray& a = e.inputs[k];
        TapeCell* cell = cells + e.given[k].cell;
        if (a.told.ndim == 0) {
            copy_number(cell, in[k], a.told.itemsize);
            continue;
        }
        // A tape that reads elements never writes them.
        cell++->data = const_cast<char*>(static_cast<const char*>(in[k]));
        int64_t stride = static_cast<int64_t>(a.told.bytes);
        for (const int64_t size : a.shape) {
            cell++->I64 = size;
            if (size) stride /= size;
            cell++->I64 = stride;
        }
    }
    const auto flags_up = [&] { return tape.calls_loops ? all_fp_errors() : fp_errors(); };
    if (PYOP_UNLIKELY(flags_up() != 0)) clear_all_fp_errors();
    TapeJournal journal;
    unsigned until_look = kUntilLook;
    const TapeEnd end = interpret(tape.code.data(), cells, journal, until_look);
    if (PYOP_UNLIKELY(end == TapeEnd::Failed)) return -1;
    if (PYOP_UNLIKELY(end == TapeEnd::Left)) {
        clear_all_fp_errors();
        return 0;
    }
    if (const int flags = flags_up(); PYOP_UNLIKELY(flags != 0)) {
        clear_all_fp_errors();
        if (!ignored(flags)) return 0;
    }
    for (size_t k = 0; k < e.outputs.size(); ++k)
        copy_number(out[k], cells + e.made[k].cell, e.outputs[k].told.itemsize);
    return 1;
}

int call(const pyop_plan* plan, const void* const* in, void* const* out) { return call_entry(entry_in(plan), in, out); }
const char* message() { return failure_message(); }
int raise() { return raise_failure(); }
int is_native(const pyop_plan* plan) { return entry_in(plan).native; }
size_t n_inputs(const pyop_plan* plan) { return entry_in(plan).inputs.size(); }
size_t n_outputs(const pyop_plan* plan) { return entry_in(plan).outputs.size(); }
const pyop_array* input(const pyop_plan* plan, size_t i) {
    const Entry& e = entry_in(plan);
    return i < e.inputs.size() ? &e.inputs[i].told : nullptr;
}
const pyop_array* output(const pyop_plan* plan, size_t i) {
    const Entry& e = entry_in(plan);
    return i < e.outputs.size() ? &e.outputs[i].told : nullptr;
}

}  // namespace

int call_entry(const Entry& e, const void* const* in, void* const* out) try {
    if (PYOP_LIKELY(e.native) && PYOP_LIKELY(!profiling())) {
        const int done = run_native(e, in, out);
        if (PYOP_LIKELY(done > 0)) return PYOP_OK;
        // Only a handler of a signal has set an error, on the thread that had the GIL before.
        if (done < 0) return failed_with_error(true);
    }
    return call_with_python(e, in, out);
} catch (const std::bad_alloc&) {
    return failed_for_memory();
}

const pyop_table entry_table = {PYOP_ENTRY_VERSION, sizeof(pyop_table), call,      message, raise,
                                is_native,          n_inputs,           n_outputs, input,   output};

}  // namespace pyop
