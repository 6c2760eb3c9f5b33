// entry/call.cpp: make one call from C.
#include <cstring>

#include "entry/blas_calls.h"
#include "entry/entry.h"
#include "entry/failure.h"
#include "profile/scope.h"
#include "runtime/attach.h"
#include "runtime/errors.h"
#include "runtime/lazy.h"
#include "runtime/stack_array.h"

namespace pyop {

namespace {

const Entry& entry_in(const pyop_plan* plan) { return *reinterpret_cast<const Entry*>(plan); }

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
        const BlasCall blas(e.tape.calls_blas());
        const int done = PYOP_LIKELY(blas) ? e.tape.run(in, out) : 0;
        if (PYOP_LIKELY(done > 0)) return PYOP_OK;
        // Only a handler of a signal has set an error, on the thread that had the GIL before.
        if (done < 0) return failed_with_error(true);
    }
    return call_with_python(e, in, out);
} catch (const std::bad_alloc&) {
    return failed_for_memory();
}

int call_entry_keeping(const pyop_plan* plan, const void* const* in, void* const* out) {
    const int status = call_entry(entry_in(plan), in, out);
    if (PYOP_LIKELY(status == PYOP_OK)) return status;
    const bool known = PyGILState_GetThisThreadState() != nullptr;
    if (const AttachScope scope; scope) {
        if (status == PYOP_NO_MEMORY && !PyErr_Occurred()) PyErr_NoMemory();
        if (PyErr_Occurred()) failed_with_error(false);
        if (!known) {
            raise_failure();
            PyErr_WriteUnraisable(entry_in(plan).plan);
        }
    }
    return status;
}

int call_entry_later(const pyop_plan* plan, const void* const* in, void* const* out) {
    if (PYOP_LIKELY(!waits_to_raise)) {
        const int status = call_entry(entry_in(plan), in, out);
        if (PYOP_LIKELY(status == PYOP_OK)) return status;
    }
    const bool known = PyGILState_GetThisThreadState() != nullptr;
    if (const AttachScope scope; scope) {
        if (!waits_to_raise && !PyErr_Occurred()) raise_failure();
        if (known)
            raise_later();
        else
            PyErr_WriteUnraisable(entry_in(plan).plan);
    }
    return PYOP_RAISED;
}

const pyop_table entry_table = {PYOP_ENTRY_VERSION, sizeof(pyop_table), call,      message, raise,
                                is_native,          n_inputs,           n_outputs, input,   output};

}  // namespace pyop
