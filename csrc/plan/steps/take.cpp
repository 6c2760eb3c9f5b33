// plan/steps/take.cpp: pick elements by integer arrays (np.take, x[indices]) and roll, as native steps.
//
// An index that is out of range is left to the function, which has the words for it.
#include <cstring>
#include <functional>
#include <numeric>

#include "array/memory/pool.h"
#include "array/memory/recycle.h"
#include "graph/value_item.h"
#include "plan/steps/call_arguments.h"
#include "plan/steps/node_call.h"
#include "plan/steps/steps.h"
#include "plan/tape/tape_builder.h"
#include "runtime/attach.h"
#include "runtime/release_gil.h"

namespace pyop {

namespace {

npy_intp product(const npy_intp* first, const npy_intp* last) {
    return std::accumulate(first, last, npy_intp{1}, std::multiplies<>());
}

PyObject* result_new(ResultRecycler& recycler, PyArray_Descr* dtype, int ndim, const npy_intp* dims, npy_intp& bytes) {
    bytes = PyDataType_ELSIZE(dtype) * product(dims, dims + ndim);
    return bytes <= ResultRecycler::kMostBytes ? recycler.take(dtype, ndim, dims)
                                               : pooled_array_new(dtype, ndim, dims, nullptr);
}

bool is_plain_array(PyObject* o, PyArray_Descr* dtype) {
    return is_exact_array(o) && PyArray_DESCR(as_array(o)) == dtype && PyArray_IS_C_CONTIGUOUS(as_array(o));
}

// `count` chunks of the size of T; false if an index is out of range.
template <typename T>
bool pick_items(char* to, const char* from, const npy_intp* at, npy_intp count, npy_intp n) {
    for (npy_intp k = 0; k < count; ++k) {
        npy_intp i = at[k];
        if (i < 0) i += n;
        if (i < 0 || i >= n) return false;
        std::memcpy(to + k * static_cast<npy_intp>(sizeof(T)), from + i * static_cast<npy_intp>(sizeof(T)), sizeof(T));
    }
    return true;
}

bool pick_chunks(char* to, const char* from, const npy_intp* at, npy_intp count, npy_intp n, npy_intp chunk) {
    for (npy_intp k = 0; k < count; ++k, to += chunk) {
        npy_intp i = at[k];
        if (i < 0) i += n;
        if (i < 0 || i >= n) return false;
        std::memcpy(to, from + i * chunk, static_cast<size_t>(chunk));
    }
    return true;
}

class TakeStep final : public NativeStep {
  public:
    using NativeStep::NativeStep;

    int run(PyObject* const* inputs, PyObject** results, const StepContext&) const override {
        PyObject* x = inputs[source];
        PyObject* indices = fixed ? fixed.get() : inputs[index];
        if (!is_plain_array(x, dtype) || !is_plain_array(indices, index_dtype)) return 0;
        PyArrayObject *a = as_array(x), *at = as_array(indices);
        const int ndim = PyArray_NDIM(a), n_at = PyArray_NDIM(at);
        // One element is a number; a row would be a view where an integer stands.
        if ((n_at < 1 && (!is_item || ndim != 1)) || !PyArray_ISALIGNED(at)) return 0;
        // Along one axis of lines, or of all elements.
        const npy_intp* have = PyArray_DIMS(a);
        const npy_intp all = PyArray_SIZE(a);
        const int before = flat ? 0 : axis, after = flat ? ndim : axis + 1;
        if (after > ndim || before + n_at + ndim - after > NPY_MAXDIMS) return 0;
        npy_intp dims[NPY_MAXDIMS];
        npy_intp* end = std::copy(have, have + before, dims);
        end = std::copy_n(PyArray_DIMS(at), n_at, end);
        end = std::copy(have + after, have + ndim, end);
        npy_intp bytes;
        Ref result = Ref::steal(result_new(recycler_, dtype, static_cast<int>(end - dims), dims, bytes));
        if (!result) return -1;
        const npy_intp n = flat ? all : have[axis],
                       chunk = PyDataType_ELSIZE(dtype) * product(have + after, have + ndim);
        const npy_intp outer = product(have, have + before), count = PyArray_SIZE(at);
        bool inside = true;
        {
            const DetachScope detached(bytes >= kReleaseBytes);
            const auto* indexes = static_cast<const npy_intp*>(PyArray_DATA(at));
            char* to = PyArray_BYTES(as_array(result.get()));
            const char* from = PyArray_BYTES(a);
            for (npy_intp o = 0; o < outer && inside; ++o, to += count * chunk, from += n * chunk) {
                inside = chunk == 8   ? pick_items<uint64_t>(to, from, indexes, count, n)
                         : chunk == 4 ? pick_items<uint32_t>(to, from, indexes, count, n)
                                      : pick_chunks(to, from, indexes, count, n, chunk);
            }
        }
        if (!inside || (outer == 0 && count > 0)) return 0;
        results[0] = result.release();
        return 1;
    }
    bool record(TapeBuilder& tape, const TapeValue* inputs, TapeValue* results) const override {
        return is_item && !fixed && tape.load(inputs[source], inputs[index], results[0]);
    }
    std::string describe(size_t) const override { return "picks elements"; }

    size_t source = 0, index = 0;
    Ref fixed;  // the indices, if they are static
    PyArray_Descr* dtype = nullptr;
    PyArray_Descr* index_dtype = nullptr;
    int axis = 0;
    bool flat = false;
    bool is_item = false;  // x[indices]

  private:
    mutable ResultRecycler recycler_;  // the GIL guards it
};

class RollStep final : public NativeStep {
  public:
    using NativeStep::NativeStep;

    int run(PyObject* const* inputs, PyObject** results, const StepContext&) const override {
        PyObject* x = inputs[source];
        if (!is_plain_array(x, dtype)) return 0;
        PyArrayObject* a = as_array(x);
        const int ndim = PyArray_NDIM(a);
        const npy_intp* dims = PyArray_DIMS(a);
        const int at = axis < 0 ? axis + ndim : axis;
        if (!flat && (at < 0 || at >= ndim)) return 0;
        const npy_intp n = flat ? PyArray_SIZE(a) : dims[at];
        if (n == 0 || PyArray_SIZE(a) == 0) return 0;
        npy_intp bytes;
        PyObject* result = result_new(recycler_, dtype, ndim, dims, bytes);
        if (!result) return -1;
        const npy_intp chunk = PyDataType_ELSIZE(dtype) * (flat ? 1 : product(dims + at + 1, dims + ndim));
        const npy_intp moved = ((shift % n + n) % n) * chunk, line = n * chunk;
        const npy_intp outer = flat ? 1 : product(dims, dims + at);
        {
            const DetachScope detached(bytes >= kReleaseBytes);
            char* to = PyArray_BYTES(as_array(result));
            const char* from = PyArray_BYTES(a);
            for (npy_intp o = 0; o < outer; ++o, to += line, from += line) {
                std::memcpy(to + moved, from, static_cast<size_t>(line - moved));
                std::memcpy(to, from + line - moved, static_cast<size_t>(moved));
            }
        }
        results[0] = result;
        return 1;
    }
    std::string describe(size_t) const override { return "copies 2 pieces"; }

    size_t source = 0;
    PyArray_Descr* dtype = nullptr;
    npy_intp shift = 0;
    int axis = 0;
    bool flat = true;

  private:
    mutable ResultRecycler recycler_;  // the GIL guards it
};

// --- reading calls

enum class TakeFunction { Take, Roll };
constexpr Named<TakeFunction> kTakes[] = {{"take", TakeFunction::Take}, {"roll", TakeFunction::Roll}};

bool read_integer(const NodeArgument& argument, npy_intp& value) {
    if (argument.computed() || !argument.value || !PyLong_CheckExact(argument.value)) return false;
    value = PyLong_AsSsize_t(argument.value);
    if (value != -1 || !PyErr_Occurred()) return true;
    PyErr_Clear();
    return false;
}

bool read_indices(const Rewrite& r, const PyNode& node, const NodeArgument& argument, TakeStep& step) {
    step.index_dtype = PyArray_DescrFromType(NPY_INTP);  // lives for ever
    Py_DECREF(step.index_dtype);
    if (argument.input >= 0) {
        step.index = static_cast<size_t>(argument.input);
        return builtin_dtype(r.g, node.inputs()[step.index]) == step.index_dtype;
    }
    if (argument.nested || !argument.value || !PyList_CheckExact(argument.value)) return false;
    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(argument.value); ++k)
        if (!PyLong_CheckExact(PyList_GET_ITEM(argument.value, k))) return false;
    step.fixed = Ref::steal(PyArray_FromAny(argument.value, nullptr, 1, 1, NPY_ARRAY_CARRAY_RO, nullptr));
    if (!step.fixed) PyErr_Clear();
    return step.fixed && PyArray_DESCR(as_array(step.fixed.get())) == step.index_dtype;
}

bool read_take(const Rewrite& r, const PyNode& node, const NodeCall& call, bool is_item, TakeStep& step) {
    std::vector<NodeArgument> given;
    if (is_item ? !call.bind({"a", "b"}, given) : !call.bind({"a", "indices", "axis", "out", "mode"}, given))
        return false;
    if (given[0].input < 0 || !read_indices(r, node, given[1], step)) return false;
    step.source = static_cast<size_t>(given[0].input);
    const Edge source = node.inputs()[step.source];
    const int ndim = r.g.spec(source).ndim;
    step.dtype = builtin_dtype(r.g, source);
    if (!step.dtype || ndim < 1) return false;
    step.is_item = is_item;
    if (is_item) return true;
    if (!given[3].none() || given[4].given()) return false;
    step.flat = given[2].none();
    npy_intp axis = 0;
    if (!step.flat && (!read_integer(given[2], axis) || axis < -ndim || axis >= ndim)) return false;
    step.axis = static_cast<int>(axis < 0 ? axis + ndim : axis);
    return true;
}

bool read_roll(const Rewrite& r, const PyNode& node, const NodeCall& call, RollStep& step) {
    std::vector<NodeArgument> given;
    if (!call.bind({"a", "shift", "axis"}, given) || given[0].input < 0 || !read_integer(given[1], step.shift))
        return false;
    step.source = static_cast<size_t>(given[0].input);
    step.dtype = builtin_dtype(r.g, node.inputs()[step.source]);
    step.flat = given[2].none();
    npy_intp axis = 0;
    if (!step.flat && (!read_integer(given[2], axis) || std::abs(axis) > NPY_MAXDIMS)) return false;
    step.axis = static_cast<int>(axis);
    return step.dtype != nullptr;
}

}  // namespace

int make_take_step(const Rewrite& r, uint32_t i, std::unique_ptr<NativeStep>& step) {
    const PyNode& node = r.g.node_as<PyNode>(i);
    if (!is_plain_call(node) || node.n_outputs() != 1) return 0;
    const NodeCall call(node);
    const bool is_item = call.fn() == getitem_function;
    const auto* found = is_item ? nullptr : function_table<kTakes>().find(call.fn());
    if (!is_item && !found) return 0;
    if (is_item || found->entry == TakeFunction::Take) {
        auto made = std::make_unique<TakeStep>(Fallback::of_node(r.g, i));
        if (read_take(r, node, call, is_item, *made)) step = std::move(made);
        return 0;
    }
    auto made = std::make_unique<RollStep>(Fallback::of_node(r.g, i));
    if (read_roll(r, node, call, *made)) step = std::move(made);
    return 0;
}

}  // namespace pyop
