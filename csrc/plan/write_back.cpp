// plan/write_back.cpp: which arguments a plan may write into, and how it does.
#include "plan/write_back.h"

#include "array/contract/describe.h"
#include "array/memory/copied.h"
#include "array/memory/overlap.h"
#include "runtime/errors.h"
#include "runtime/lazy.h"

namespace pyop {

thread_local Outcome last_outcome = Outcome::Done;

namespace {

// Whether they share an element: what is not known soon is taken for that.
PYOP_COLD bool share_elements(PyArrayObject* a, PyArrayObject* b) {
    static constinit Lazy shares_memory;
    PyObject* shares = shares_memory.attribute("numpy", "shares_memory");
    Ref answer = shares ? Ref::steal(PyObject_CallFunction(shares, "OOi", a, b, 1000)) : Ref();
    if (!answer) PyErr_Clear();
    return answer.get() != Py_False;
}

bool overlap(PyArrayObject* a, PyArrayObject* b) { return PYOP_UNLIKELY(may_overlap(a, b)) && share_elements(a, b); }

// Null if the plan may write into an argument, else why not.
const char* why_not(const Program& p, size_t k, PyObject* const* values, PyObject* const* feeds) {
    if (PYOP_UNLIKELY(values[k] != feeds[k])) return "is no plain ndarray";
    PyArrayObject* a = as_array(feeds[k]);
    if (PYOP_UNLIKELY(!PyArray_ISBEHAVED(a))) return PyArray_ISWRITEABLE(a) ? "is not aligned" : "is read-only";
    // A copy of it would lie otherwise: what is summed up then is so in another order.
    // One element is contiguous whatever its stride is; NumPy's loops look at that, and round by another order.
    const bool strided = PyArray_NDIM(a) == 1 && PyArray_DIM(a, 0) == 1 && PyArray_STRIDE(a, 0) != PyArray_ITEMSIZE(a);
    if (PYOP_UNLIKELY(strided || !PyArray_ISONESEGMENT(a))) return "is not contiguous";
    for (size_t j = 0; j < p.feeds.size(); ++j)
        if (j != k && overlap(a, as_array(feeds[j]))) return "shares memory with another argument";
    return nullptr;
}

}  // namespace

bool may_write(const Program& p, PyObject* const* values, PyObject* const* feeds) {
    for (const WriteBack& write : p.writes)
        if (why_not(p, write.feed, values, feeds)) return false;
    return true;
}

Outcome set_cannot_write(const Program& p, PyObject* const* values, PyObject* const* feeds) {
    Outcome outcome = Outcome::Declined;
    const char* found = nullptr;
    size_t feed = 0;
    for (const WriteBack& write : p.writes) {
        const char* why = why_not(p, write.feed, values, feeds);
        if (!why) continue;
        // What is made of a list or a tensor is an array of its own: a write into it is lost. A number is bound anew.
        const bool lost = !PyArray_Check(values[write.feed]) && PyArray_NDIM(as_array(feeds[write.feed])) > 0;
        if (found && !lost) continue;
        found = why;
        feed = write.feed;
        if (lost) outcome = Outcome::Refused;
    }
    PyErr_Format(errors.input, "input '%s' of the plan is written into, but %s: %s",
                 printable(p.feeds[feed].name.get()).c_str(), found,
                 outcome == Outcome::Refused ? "pass an ndarray"
                                             : "call the compiled function, which runs itself then, or pass a copy");
    return outcome;
}

int write_back(const Program& p, PyObject* const* feeds, PyObject** outputs) {
    // What is to be written into one may lie in another.
    for (size_t i = 1; i < p.writes.size(); ++i) {
        PyObject*& made = outputs[p.writes[i].output];
        for (size_t j = 0; j < i; ++j) {
            if (!is_exact_array(made) || !may_overlap(as_array(made), as_array(feeds[p.writes[j].feed]))) continue;
            PyObject* copy = counted(PyArray_NewCopy(as_array(made), NPY_KEEPORDER));
            if (!copy) return -1;
            Py_SETREF(made, copy);
        }
    }
    for (const WriteBack& write : p.writes) {
        PyArrayObject* target = as_array(feeds[write.feed]);
        const Ref made = Ref::steal(PyArray_FROM_O(outputs[write.output]));
        if (!made || counted(PyArray_CopyInto(target, as_array(made.get())), target) < 0) return -1;
    }
    return 0;
}

}  // namespace pyop
