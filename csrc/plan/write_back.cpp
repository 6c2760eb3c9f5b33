// plan/write_back.cpp: find which arguments a plan may write into, and write them.
#include "plan/write_back.h"

#include "array/contract/describe.h"
#include "array/loop/error_policy.h"
#include "array/memory/copied.h"
#include "array/memory/overlap.h"
#include "runtime/errors.h"
#include "runtime/lazy.h"
#include "runtime/stack_array.h"

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

// What a store at the end reads; `value` may be null.
class StoreInputs {
  public:
    StoreInputs(const Program& p, const WriteBack& write, PyObject* const* feeds, PyObject* value)
        : inputs_(write.inputs.size()) {
        for (size_t k = 0; k < inputs_.size(); ++k)
            inputs_[k] = write.inputs[k].constant() ? p.constants[write.inputs[k].index()].get() : nullptr;
        inputs_[static_cast<size_t>(write.store->written_input())] = feeds[write.feed];
        inputs_[static_cast<size_t>(write.store->stored_input())] = value;
    }
    PyObject* const* data() { return inputs_.data(); }

  private:
    StackArray<PyObject*, 8> inputs_;
};

// Whether what is to be written is the part of the argument itself: it was computed there.
bool stands_there(const Program& p, const WriteBack& write, PyObject* const* feeds, PyObject* made) {
    StoreInputs inputs(p, write, feeds, made);
    const Ref part = Ref::steal(write.store->part_new(inputs.data()));
    if (!part) PyErr_Clear();
    PyArrayObject *a = as_array(made), *b = as_array(part.get());
    return part && PyArray_BYTES(a) == PyArray_BYTES(b) && PyArray_SAMESHAPE(a, b) &&
           PyArray_CompareLists(PyArray_STRIDES(a), PyArray_STRIDES(b), PyArray_NDIM(a));
}

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

bool parts_to_write_at_once(const Program& p, PyObject* const* feeds, PyObject** parts) {
    constexpr npy_intp kWorthwhileBytes = 8192;  // to ask whether warnings can raise
    bool any = false, asked = false;
    for (size_t k = 0; k < p.writes.size(); ++k) {
        const WriteBack& write = p.writes[k];
        if (!write.by_last || PyArray_NBYTES(as_array(feeds[write.feed])) < kWorthwhileBytes) continue;
        if (!asked && !fp_errors_cannot_raise()) return false;
        asked = true;
        StoreInputs inputs(p, write, feeds, nullptr);
        parts[k] = write.store->part_new(inputs.data());
        if (!parts[k]) PyErr_Clear();
        any |= parts[k] != nullptr;
    }
    return any;
}

int write_back(const Program& p, const Graph& g, PyObject* const* feeds, PyObject** outputs) {
    std::vector<bool> in_place(p.writes.size());
    for (size_t k = 0; k < p.writes.size(); ++k) {
        const WriteBack& write = p.writes[k];
        if (!write.store) continue;
        StoreInputs inputs(p, write, feeds, outputs[write.output]);
        in_place[k] = write.store->would_write(inputs.data());
        if (in_place[k]) continue;
        PyObject* whole = nullptr;
        const int done = write.store->run(inputs.data(), &whole, {});
        if (done < 0 || (done == 0 && write.store->call(g, inputs.data(), &whole) < 0)) {
            last_outcome = Outcome::Raised;
            return -1;
        }
        Py_SETREF(outputs[write.output], whole);
    }
    // What is to be written into one may lie in another, or elsewhere in the same.
    for (size_t i = 0; i < p.writes.size(); ++i) {
        PyObject*& made = outputs[p.writes[i].output];
        for (size_t j = 0; j < i + in_place[i]; ++j) {
            PyArrayObject* const other = as_array(feeds[p.writes[j].feed]);
            if (!is_exact_array(made) || !may_overlap(as_array(made), other)) continue;
            if (j == i && stands_there(p, p.writes[i], feeds, made)) continue;
            PyObject* copy = counted(PyArray_NewCopy(as_array(made), NPY_KEEPORDER));
            if (!copy) {
                last_outcome = Outcome::Raised;
                return -1;
            }
            Py_SETREF(made, copy);
        }
    }
    for (size_t k = 0; k < p.writes.size(); ++k) {
        const WriteBack& write = p.writes[k];
        PyArrayObject* target = as_array(feeds[write.feed]);
        if (in_place[k]) {
            StoreInputs inputs(p, write, feeds, outputs[write.output]);
            StepContext context;
            context.dying = uint64_t{1} << write.store->written_input();
            PyObject* same = nullptr;
            const int done = write.store->run(inputs.data(), &same, context);
            Py_XDECREF(same);
            if (done < 0) return -1;
            if (done > 0) continue;
            PyObject* whole = nullptr;  // what it would do after all, NumPy does
            if (write.store->call(g, inputs.data(), &whole) < 0) return -1;
            Py_SETREF(outputs[write.output], whole);
        }
        const Ref made = Ref::steal(PyArray_FROM_O(outputs[write.output]));
        if (!made || counted(PyArray_CopyInto(target, as_array(made.get())), target) < 0) return -1;
    }
    return 0;
}

}  // namespace pyop
