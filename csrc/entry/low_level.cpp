// entry/low_level.cpp: define the functions of a scipy.LowLevelCallable, one for each signature of SciPy's.
//
// The numbers that SciPy has side by side are cut into the inputs of the plan, and its results are put side by side.
// Who calls holds the GIL and has come from Python. ndimage is told that a call failed and raises what is set; quad is
// not, so it gets NaN, and the error is raised when it returns to Python (raise_later).
#include <cmath>
#include <limits>

#include "entry/entry.h"
#include "entry/failure.h"
#include "runtime/attach.h"
#include "runtime/errors.h"
#include "runtime/stack_array.h"

namespace pyop {

namespace {

size_t elements(const std::deque<EntryArray>& arrays) {
    size_t n = 0;
    for (const EntryArray& a : arrays) n += a.told.bytes / a.told.itemsize;
    return n;
}

// What SciPy and the plan count differently. A pyop_status.
PYOP_COLD int wrong_number(const Entry& e, PyObject* type, const char* format, size_t want, size_t got) {
    const bool before = attached();
    const AttachScope scope;
    if (!scope) return failed_with(PYOP_SHUT_DOWN, "the plan was called with another number of values");
    PyErr_Format(type, format, e.plan, want, got);
    return failed_with_error(before);
}

// The plan on numbers side by side. A pyop_status.
int call_packed(const Entry& e, const void* in, size_t n_in, void* out) try {
    if (PYOP_UNLIKELY(n_in * sizeof(double) != e.packed_bytes))
        return wrong_number(e, errors.input, "%R takes %zu numbers from C, but was called with %zu", elements(e.inputs),
                            n_in);
    if (PYOP_LIKELY(e.packed_inputs.size() == 1 && e.packed_outputs.size() == 1)) return call_entry(e, &in, &out);
    StackArray<const void*, 16> from(e.packed_inputs.size());
    StackArray<void*, 16> to(e.packed_outputs.size());
    for (size_t k = 0; k < from.size(); ++k) from[k] = static_cast<const char*>(in) + e.packed_inputs[k];
    for (size_t k = 0; k < to.size(); ++k) to[k] = static_cast<char*>(out) + e.packed_outputs[k];
    return call_entry(e, from.data(), to.data());
} catch (const std::bad_alloc&) {
    return failed_for_memory();
}

PYOP_COLD double no_number() {
    if (attached() && (waits_to_raise || PyErr_Occurred())) raise_later();
    return std::numeric_limits<double>::quiet_NaN();
}

double integrand(int n, double* x, void* data) {
    const Entry& e = *static_cast<const Entry*>(data);
    double result;
    // quad goes on after a failure.
    if (PYOP_UNLIKELY(waits_to_raise) || call_packed(e, x, static_cast<size_t>(n), &result) != PYOP_OK)
        return no_number();
    return result;
}

int filter(double* window, intptr_t n, double* result, void* data) {
    return call_packed(*static_cast<const Entry*>(data), window, static_cast<size_t>(n), result) == PYOP_OK;
}

int line_filter(double* line, intptr_t n, double* result, intptr_t n_out, void* data) {
    const Entry& e = *static_cast<const Entry*>(data);
    if (const size_t want = elements(e.outputs); PYOP_UNLIKELY(static_cast<size_t>(n_out) != want))
        return wrong_number(e, errors.output, "%R gives %zu numbers, but the line of the output has %zu", want,
                            static_cast<size_t>(n_out)) == PYOP_OK;
    return call_packed(e, line, static_cast<size_t>(n), result) == PYOP_OK;
}

int mapping(intptr_t* to, double* from, int n_to, int n_from, void* data) {
    const Entry& e = *static_cast<const Entry*>(data);
    if (const size_t want = elements(e.outputs); PYOP_UNLIKELY(static_cast<size_t>(n_from) != want))
        return wrong_number(e, errors.output, "%R gives %zu coordinates, but the input has %zu axes", want,
                            static_cast<size_t>(n_from)) == PYOP_OK;
    return call_packed(e, to, static_cast<size_t>(n_to), from) == PYOP_OK;
}

struct Way {
    const char* name;       // SciPy's functions that call so
    const char* signature;  // as SciPy writes it
    void (*function)();
    int takes;            // dtype of all inputs
    bool gives_one;       // number
};

template <typename F>
void (*plain(F* function))() {
    return reinterpret_cast<void (*)()>(function);
}

const Way kWays[] = {
    {"quad", "double (int, double *, void *)", plain(integrand), NPY_DOUBLE, true},
    {"generic_filter", "int (double *, npy_intp, double *, void *)", plain(filter), NPY_DOUBLE, true},
    {"generic_filter1d", "int (double *, npy_intp, double *, npy_intp, void *)", plain(line_filter), NPY_DOUBLE, false},
    {"geometric_transform", "int (npy_intp *, double *, int, int, void *)", plain(mapping), NPY_INTP, false},
};

bool all_are(const std::deque<EntryArray>& arrays, int type) {
    for (const EntryArray& a : arrays)
        if (!PyArray_EquivTypenums(a.dtype->type_num, type)) return false;
    return true;
}

void drop_entry_plan(PyObject* capsule) { Py_DECREF(static_cast<const Entry*>(PyCapsule_GetContext(capsule))->plan); }

}  // namespace

PyObject* low_level_new(PyObject* plan, PyObject* name) {
    const Entry* const e = entry_of(plan);
    if (!e) return nullptr;
    const Way* way = nullptr;
    for (const Way& each : kWays)
        if (PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, each.name) == 0) way = &each;
    if (!way) return PyErr_Format(PyExc_ValueError, "there is no way of SciPy's to call that is named %R", name);
    const char* const takes = way->takes == NPY_DOUBLE ? "float64" : "int64";
    if (e->inputs.empty() || !all_are(e->inputs, way->takes))
        return PyErr_Format(PyExc_TypeError, "%s hands over %s; declare the inputs of the plan so", way->name, takes);
    if (!all_are(e->outputs, NPY_DOUBLE) || elements(e->outputs) == 0 || (way->gives_one && elements(e->outputs) != 1))
        return PyErr_Format(PyExc_TypeError,
                            "%s wants %s of the plan, which gives something else\n  return y.astype('float64')",
                            way->name, way->gives_one ? "one float64" : "float64 only");
    PyObject* capsule = PyCapsule_New(reinterpret_cast<void*>(way->function), way->signature, drop_entry_plan);
    if (!capsule) return nullptr;
    Py_INCREF(plan);
    if (PyCapsule_SetContext(capsule, const_cast<Entry*>(e)) < 0) Py_CLEAR(capsule);
    return capsule;
}

}  // namespace pyop
