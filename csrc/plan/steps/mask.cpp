// plan/steps/mask.cpp: compute x[mask] and x[mask] = value, by a mask of the array's own shape, as native steps.
//
// Whatever else NumPy makes of a mask (of fewer axes, values of another dtype or of another count) is left to it.
#include <bit>
#include <cstring>
#include <type_traits>

#include "array/memory/pool.h"
#include "array/memory/recycle.h"
#include "graph/value_item.h"
#include "plan/steps/call_arguments.h"
#include "plan/steps/computed_key.h"
#include "plan/steps/node_call.h"
#include "plan/steps/steps.h"
#include "plan/steps/store_parts.h"
#include "runtime/attach.h"
#include "runtime/release_gil.h"
#include "runtime/stack_array.h"
#include "runtime/up_calls.h"

namespace pyop {

namespace {

struct Pair {
    uint64_t low, high;
};

// Calls f with a value of a type of that size: elements are moved as they are.
template <typename F>
bool with_size(npy_intp itemsize, F f) {
    switch (itemsize) {
        case 1:
            f(uint8_t{});
            return true;
        case 2:
            f(uint16_t{});
            return true;
        case 4:
            f(uint32_t{});
            return true;
        case 8:
            f(uint64_t{});
            return true;
        case 16:
            f(Pair{});
            return true;
        default:
            return false;
    }
}

// Calls f(elements, their stride, mask, its stride, count) for each line of both, in C order.
template <typename F>
void each_line(const ArrayView& a, const ArrayView& mask, F f) {
    const int last = a.ndim - 1;
    if (a.size() == 0) return;
    if (a.contiguous(false) && mask.contiguous(false)) return f(a.data, a.itemsize, mask.data, npy_intp{1}, a.size());
    npy_intp at[NPY_MAXDIMS] = {};
    char *data = a.data, *test = mask.data;
    for (;;) {
        f(data, a.strides[last], test, mask.strides[last], a.dims[last]);
        int d = last - 1;
        for (; d >= 0; --d) {
            data += a.strides[d];
            test += mask.strides[d];
            if (++at[d] < a.dims[d]) break;
            data -= at[d] * a.strides[d];
            test -= at[d] * mask.strides[d];
            at[d] = 0;
        }
        if (d < 0) return;
    }
}

constexpr npy_intp kSpan = 32, kWord = 8;  // bytes of a mask that are looked at together
constexpr uint64_t kAllTrue = 0x0101010101010101;

npy_intp count_bytes(const char* test, npy_intp n) {
    npy_intp count = 0, i = 0;
    while (i + kSpan <= n) {  // in bytes, which add up many at a time, as long as they cannot overflow
        uint8_t lanes[kSpan] = {};
        for (int round = 0; round < 255 && i + kSpan <= n; ++round, i += kSpan)
            for (npy_intp k = 0; k < kSpan; ++k) lanes[k] = static_cast<uint8_t>(lanes[k] + (test[i + k] != 0));
        for (const uint8_t lane : lanes) count += lane;
    }
    for (; i < n; ++i) count += test[i] != 0;
    return count;
}

bool none_in_span(const char* test) {
    uint64_t words[kSpan / 8];
    std::memcpy(words, test, kSpan);
    return (words[0] | words[1] | words[2] | words[3]) == 0;
}

bool all_in_span(const char* test) {
    uint64_t words[kSpan / 8];
    std::memcpy(words, test, kSpan);
    return (words[0] & words[1] & words[2] & words[3]) == kAllTrue;
}

npy_intp count_true(const ArrayView& mask) {
    npy_intp count = 0;
    each_line(mask, mask, [&](const char* test, npy_intp stride, const char*, npy_intp, npy_intp n) {
        npy_intp here = 0;
        if (stride == 1)
            here = count_bytes(test, n);
        else
            for (npy_intp i = 0; i < n; ++i) here += test[i * stride] != 0;
        count += here;
    });
    return count;
}

// Where picked elements go, never beyond the room for those that were counted, whoever writes the mask meanwhile. What
// is not picked is written over by the next, if there is room for one.
template <typename T>
struct Picked {
    char* to;
    char* const end;

    void take(const char* from, bool here) {
        std::memcpy(to, from, sizeof(T));
        to += here ? sizeof(T) : 0;
    }
    void take_some(const char* from, npy_intp stride, const char* test, npy_intp step, npy_intp n) {
        for (npy_intp i = 0; i < n && to < end; ++i) take(from + i * stride, test[i * step] != 0);
    }
    void take_all(const char* from, npy_intp n) {
        std::memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
        to += static_cast<size_t>(n) * sizeof(T);
    }
    bool has_room(npy_intp n) const { return end - to >= n * static_cast<npy_intp>(sizeof(T)); }
    // By eight bytes of the mask, of which some are not zero.
    void take_word(const char* from, npy_intp stride, const char* test, uint64_t word) {
        if (!has_room(kWord)) {
            take_some(from, stride, test, 1, kWord);
        } else if (stride == static_cast<npy_intp>(sizeof(T)) && word == kAllTrue) {
            take_all(from, kWord);
        } else if (std::popcount(word) <= 2) {
            for (; word; word &= ~(uint64_t{0xff} << (std::countr_zero(word) & ~7)))
                take(from + (std::countr_zero(word) >> 3) * stride, true);
        } else {
            for (npy_intp k = 0; k < kWord; ++k) take(from + k * stride, test[k] != 0);
        }
    }
};

template <typename T>
void pick(const ArrayView& a, const ArrayView& mask, char* to, npy_intp count) {
    char* const end = to + count * static_cast<npy_intp>(sizeof(T));
    each_line(a, mask, [&](const char* from, npy_intp stride, const char* test, npy_intp step, npy_intp n) {
        Picked<T> picked{to, end};
        npy_intp i = 0;
        for (; step == 1 && i + kSpan <= n && picked.to < end; i += kSpan) {
            // What is alike for a while is passed over, or copied, at once.
            if (none_in_span(test + i)) continue;
            if (stride == static_cast<npy_intp>(sizeof(T)) && all_in_span(test + i) && picked.has_room(kSpan)) {
                picked.take_all(from + i * stride, kSpan);
                continue;
            }
            for (npy_intp part = i; part < i + kSpan; part += kWord) {
                uint64_t word;
                std::memcpy(&word, test + part, sizeof word);
                if (word) picked.take_word(from + part * stride, stride, test + part, word);
            }
        }
        picked.take_some(from + i * stride, stride, test + i * step, step, n - i);
        to = picked.to;
    });
}

// Without a branch, so that the processor need not guess masks.
template <typename T>
PYOP_INLINE void blend(char* to, T one, bool here) {
    T now;
    std::memcpy(&now, to, sizeof(T));
    if constexpr (std::is_same_v<T, Pair>) {
        const uint64_t bits = -static_cast<uint64_t>(here);
        now = {(one.low & bits) | (now.low & ~bits), (one.high & bits) | (now.high & ~bits)};
    } else {
        const auto bits = static_cast<T>(-static_cast<T>(here));
        now = static_cast<T>((one & bits) | (now & static_cast<T>(~bits)));
    }
    std::memcpy(to, &now, sizeof(T));
}

// `step`: from one value to the next, 0 for one that goes everywhere.
template <typename T>
void put(const ArrayView& a, const ArrayView& mask, const char* value, npy_intp step) {
    each_line(a, mask, [&](char* to, npy_intp stride, const char* test, npy_intp test_step, npy_intp n) {
        if (step == 0 && stride == static_cast<npy_intp>(sizeof(T)) && test_step == 1) {
            T one;
            std::memcpy(&one, value, sizeof(T));
            for (npy_intp i = 0; i < n; ++i) blend(to + i * static_cast<npy_intp>(sizeof(T)), one, test[i] != 0);
            return;
        }
        for (npy_intp i = 0; i < n; ++i) {
            if (!test[i * test_step]) continue;
            std::memcpy(to + i * stride, value, sizeof(T));
            value += step;
        }
    });
}

bool is_mask_of(PyObject* given, int ndim, const npy_intp* dims) {
    if (!is_exact_array(given)) return false;
    PyArrayObject* mask = as_array(given);
    return PyArray_TYPE(mask) == NPY_BOOL && PyArray_NDIM(mask) == ndim &&
           PyArray_CompareLists(PyArray_DIMS(mask), dims, ndim);
}

class MaskRead final : public NativeStep {
  public:
    using NativeStep::NativeStep;

    int run(PyObject* const* inputs, PyObject** results, const StepContext&) const override {
        if (!is_exact_array(inputs[source])) return 0;
        PyArrayObject* x = as_array(inputs[source]);
        if (PyArray_DESCR(x) != dtype || PyArray_NDIM(x) < 1) return 0;
        if (!is_mask_of(inputs[mask], PyArray_NDIM(x), PyArray_DIMS(x))) return 0;
        const ArrayView from(x), test(as_array(inputs[mask]));
        npy_intp count = 0;
        {
            const DetachScope detached(from.size() >= kReleaseElements);
            count = count_true(test);
        }
        const npy_intp bytes = count * from.itemsize;
        Ref made = Ref::steal(bytes <= ResultRecycler::kMostBytes ? recycler_.take(dtype, 1, &count)
                                                                  : pooled_array_new(dtype, 1, &count, nullptr));
        if (!made) return -1;
        char* const to = PyArray_BYTES(as_array(made.get()));
        {
            const DetachScope detached(from.size() >= kReleaseElements);
            with_size(from.itemsize, [&](auto zero) { pick<decltype(zero)>(from, test, to, count); });
        }
        results[0] = made.release();
        return 1;
    }
    std::string describe(size_t) const override { return "picks by a mask"; }

    size_t source = 0, mask = 0;
    PyArray_Descr* dtype = nullptr;  // one of NumPy's own, which live for ever

  private:
    mutable ResultRecycler recycler_;  // the GIL guards it
};

class MaskWrite final : public NativeStep {
  public:
    MaskWrite(const Graph& g, uint32_t node, ComputedKey of)
        : NativeStep(Fallback::of_node(g, node)), key(std::move(of)) {}

    int run(PyObject* const* inputs, PyObject** results, const StepContext& context) const override {
        PyObject* x = inputs[source];
        if (!is_exact_array(x) || PyArray_DESCR(as_array(x)) != dtype) return 0;
        WrittenValue::Elements written;
        if (!value.read(inputs, dtype, written)) return 0;
        PyArrayObject* const array = written.array;
        if (array && PyArray_NDIM(array) > 1) return 0;
        StackArray<npy_intp, 8> numbers(key.count());
        if (!key.read(inputs, numbers.data())) return 0;
        ArrayView memory[2];
        const ArrayView* part = part_of(as_array(x), views, numbers.data(), memory);
        if (!part || part->ndim < 1 || !is_mask_of(inputs[mask], part->ndim, part->dims)) return 0;
        const ArrayView test(as_array(inputs[mask]));
        npy_intp step = 0;
        if (array && PyArray_NDIM(array) == 1 && PyArray_DIM(array, 0) != 1) {
            if (PyArray_DIM(array, 0) != count_true(test)) return 0;
            step = PyArray_STRIDE(array, 0);
            if (step == 0) return 0;
        }
        const bool overwrites = context.dying >> source & 1;
        Ref result = overwrites ? Ref::borrow(x) : copy_to_write(as_array(x), recycler_);
        if (!result) return -1;
        if (!overwrites) part = part_of(as_array(result.get()), views, numbers.data(), memory);
        if (!part) return 0;
        {
            const DetachScope detached(part->size() >= kReleaseElements);
            with_size(part->itemsize, [&](auto zero) { put<decltype(zero)>(*part, test, written.from, step); });
        }
        results[0] = result.release();
        return 1;
    }
    std::string describe(size_t) const override { return "writes by a mask"; }
    bool may_overwrite() const override { return true; }
    int written_input() const override { return static_cast<int>(source); }

    size_t source = 0, mask = 0;
    WrittenValue value;
    PyArray_Descr* dtype = nullptr;  // one of NumPy's own, which live for ever
    const ComputedKey key;           // numbers in the views
    std::vector<ViewRecipe> views;   // from the whole to what the mask is of

  private:
    mutable ResultRecycler recycler_;  // the GIL guards it
};

bool is_mask(const Rewrite& r, const PyNode& node, const NodeArgument& argument) {
    if (argument.input < 0) return false;
    const Edge e = node.inputs()[static_cast<size_t>(argument.input)];
    PyArray_Descr* descr = builtin_dtype(r.g, e);
    return descr && descr->type_num == NPY_BOOL && r.g.spec(e).ndim > 0;
}

bool has_simple_size(PyArray_Descr* dtype) {
    return dtype && with_size(PyDataType_ELSIZE(dtype), [](auto) {});
}

}  // namespace

int make_mask_step(const Rewrite& r, uint32_t i, std::unique_ptr<NativeStep>& step) {
    const PyNode& node = r.g.node_as<PyNode>(i);
    if (!is_plain_call(node) || node.n_outputs() != 1) return 0;
    PyObject* const fn = NodeCall::function_of(node);
    const bool writes = fn == up_calls.store;
    if (!writes && fn != getitem_function) return 0;
    const NodeCall call(node);
    std::vector<NodeArgument> given;
    if (!(writes ? call.bind({"x", "value", "key", "views", "scalar"}, given) : call.bind({"a", "b"}, given))) return 0;
    const NodeArgument& index = given[writes ? 2 : 1];
    if (given[0].input < 0 || !is_mask(r, node, index)) return 0;
    const auto source = static_cast<size_t>(given[0].input);
    PyArray_Descr* dtype = builtin_dtype(r.g, node.inputs()[source]);
    const int ndim = r.g.spec(node.inputs()[source]).ndim;
    if (!has_simple_size(dtype) || ndim < 1) return 0;
    if (!writes) {
        auto made = std::make_unique<MaskRead>(Fallback::of_node(r.g, i));
        made->source = source;
        made->mask = static_cast<size_t>(index.input);
        made->dtype = dtype;
        step = std::move(made);
        return 0;
    }
    ComputedKey key(call.layout());
    PyObject* const views = key.object(r, node, given[3]);
    auto made = std::make_unique<MaskWrite>(r.g, i, std::move(key));
    made->source = source;
    made->mask = static_cast<size_t>(index.input);
    made->dtype = dtype;
    if (!made->value.bind(given[1], dtype)) return 0;
    if (!views || !read_views(views, nullptr, ndim, made->key.sizes(), made->views)) return 0;
    step = std::move(made);
    return 0;
}

}  // namespace pyop
