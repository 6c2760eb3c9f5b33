// plan/steps/put_sum.cpp: the sum of several arrays, each in a part of zeros: what the gradients of several slices of one
// array come to. It is computed block by block of the result, each read and written once.
//
// A sum with zeros is a sum: what one array does not cover becomes x + 0.0, which is not x for -0.0.
#include <algorithm>
#include <cstring>

#include "array/loop/fp_flags.h"
#include "array/memory/pool.h"
#include "array/memory/recycle.h"
#include "plan/steps/call_arguments.h"
#include "plan/steps/node_call.h"
#include "plan/steps/put_sum.h"
#include "runtime/attach.h"
#include "runtime/release_gil.h"

namespace pyop {

namespace {

constexpr npy_intp kBlockBytes = 1 << 14;
constexpr size_t kMostAxes = 8, kMostParts = 16;

// Along one axis of the result: which positions an array has a line for, and how far its lines are apart.
struct Reach {
    npy_intp start, step, count, stride;
};

template <typename T>
struct Sum {
    int ndim;
    npy_intp dims[kMostAxes], strides[kMostAxes];  // of the result, in elements

    // Adds elements to positions [low, high) of an axis; `set` is for the first array, which is added to nothing.
    template <bool set>
    void add(const Reach* reach, int axis, T* out, const char* in, npy_intp low, npy_intp high) const {
        const Reach& r = reach[axis];
        const npy_intp size = strides[axis];
        const npy_intp first = low > r.start ? (low - r.start + r.step - 1) / r.step : 0;
        npy_intp k = first, at = r.start + first * r.step, done = low;
        if (axis == ndim - 1 && r.step == 1 && r.stride == sizeof(T)) {
            const npy_intp n = std::max<npy_intp>(std::min(r.count - first, high - at), 0);
            if (n) {
                nothing<set>(out, at - low);
                const T* from = reinterpret_cast<const T*>(in + first * r.stride);
                T* to = out + (at - low);
                for (npy_intp i = 0; i < n; ++i) to[i] = set ? from[i] : to[i] + from[i];
                done = at + n;
            }
        } else {
            for (; k < r.count && at < high; ++k, at += r.step) {
                T* to = out + (at - low) * size;
                nothing<set>(out + (done - low) * size, (at - done) * size);
                const char* from = in + k * r.stride;
                if (axis < ndim - 1)
                    add<set>(reach, axis + 1, to, from, 0, dims[axis + 1]);
                else
                    *to = set ? *reinterpret_cast<const T*>(from) : *to + *reinterpret_cast<const T*>(from);
                done = at + 1;
            }
        }
        nothing<set>(out + (done - low) * size, (high - done) * size);
    }

    template <bool set>
    static void nothing(T* out, npy_intp n) {
        if (set)
            std::memset(out, 0, static_cast<size_t>(n) * sizeof(T));
        else
            for (npy_intp i = 0; i < n; ++i) out[i] += T{0};
    }
};

class PutSumStep final : public NativeStep {
  public:
    using NativeStep::NativeStep;

    struct Key {
        Py_ssize_t start, stop, step;  // as of a slice; step 0: the integer `start`
    };
    struct Part {
        size_t input;
        std::vector<Key> keys;  // one for each axis
    };

    int run(PyObject* const* inputs, PyObject** results, const StepContext&) const override {
        if (!is_exact_array(inputs[like])) return 0;
        PyArrayObject* shaped = as_array(inputs[like]);
        Reach reach[kMostParts][kMostAxes];
        const char* data[kMostParts];
        for (size_t k = 0; k < parts.size(); ++k)
            if (!find(parts[k], inputs[parts[k].input], shaped, reach[k], data[k])) return 0;
        const npy_intp bytes = PyArray_SIZE(shaped) * PyDataType_ELSIZE(dtype);
        Ref result = Ref::steal(bytes <= ResultRecycler::kMostBytes
                                    ? recycler_.take(dtype, PyArray_NDIM(shaped), PyArray_DIMS(shaped))
                                    : pooled_array_new(dtype, PyArray_NDIM(shaped), PyArray_DIMS(shaped), nullptr));
        if (!result) return -1;
        if (bytes == 0) return results[0] = result.release(), 1;
        clear_all_fp_errors();
        {
            const DetachScope detached(bytes >= kReleaseBytes);
            if (dtype->type_num == NPY_DOUBLE)
                compute<double>(as_array(result.get()), reach, data);
            else
                compute<float>(as_array(result.get()), reach, data);
        }
        if (fp_errors()) return clear_all_fp_errors(), 0;  // NumPy has the words for it
        results[0] = result.release();
        return 1;
    }
    std::string describe(size_t) const override { return "copies into zeros, summed"; }

    size_t like = 0;
    PyArray_Descr* dtype = nullptr;  // float64 or float32, which live for ever
    std::vector<Part> parts;

  private:
    // Where an array lies in the result. False if its shape is not that of its key, or if it is of another kind.
    bool find(const Part& part, PyObject* x, PyArrayObject* shaped, Reach* reach, const char*& data) const {
        if (!is_exact_array(x) || PyArray_DESCR(as_array(x)) != dtype || !PyArray_ISALIGNED(as_array(x))) return false;
        PyArrayObject* a = as_array(x);
        if (PyArray_NDIM(shaped) != static_cast<int>(part.keys.size())) return false;
        data = PyArray_BYTES(a);
        int axis = 0;
        for (size_t d = 0; d < part.keys.size(); ++d) {
            const npy_intp size = PyArray_DIM(shaped, static_cast<int>(d));
            const Key& key = part.keys[d];
            if (key.step == 0) {
                const npy_intp at = key.start < 0 ? key.start + size : key.start;
                if (at < 0 || at >= size) return false;
                reach[d] = {at, 1, 1, 0};
                continue;
            }
            Py_ssize_t start = key.start, stop = key.stop;
            const npy_intp count = PySlice_AdjustIndices(size, &start, &stop, key.step);
            if (axis >= PyArray_NDIM(a) || PyArray_DIM(a, axis) != count) return false;
            const npy_intp stride = PyArray_STRIDE(a, axis++);
            if (key.step > 0 || count == 0) {
                reach[d] = {start, std::abs(key.step), count, stride};
            } else {  // from the lowest position on
                reach[d] = {start + (count - 1) * key.step, -key.step, count, -stride};
                data += (count - 1) * stride;
            }
        }
        return axis == PyArray_NDIM(a);
    }

    template <typename T>
    void compute(PyArrayObject* result, const Reach (*reach)[kMostAxes], const char* const* data) const {
        Sum<T> sum;
        sum.ndim = PyArray_NDIM(result);
        npy_intp size = 1;
        for (int d = sum.ndim; d-- > 0; size *= sum.dims[d]) {
            sum.dims[d] = PyArray_DIM(result, d);
            sum.strides[d] = size;
        }
        T* out = static_cast<T*>(PyArray_DATA(result));
        const npy_intp line = sum.strides[0], n = sum.dims[0];
        const npy_intp lines = std::max<npy_intp>(kBlockBytes / (line * static_cast<npy_intp>(sizeof(T))), 1);
        for (npy_intp low = 0; low < n; low += lines) {
            const npy_intp high = std::min(low + lines, n);
            sum.template add<true>(reach[0], 0, out + low * line, data[0], low, high);
            for (size_t k = 1; k < parts.size(); ++k)
                sum.template add<false>(reach[k], 0, out + low * line, data[k], low, high);
        }
    }

    mutable ResultRecycler recycler_;  // the GIL guards it
};

// One key for each axis. False for any other index than slices and integers that are numbers, and one ellipsis.
bool read_keys(PyObject* key, int ndim, std::vector<PutSumStep::Key>& keys) {
    Ref items = PyTuple_CheckExact(key) ? Ref::borrow(key) : Ref::steal(PyTuple_Pack(1, key));
    if (!items) return PyErr_Clear(), false;
    const auto n = PyTuple_GET_SIZE(items.get());
    bool open = false;  // whether the axes that are left have been given
    const auto fill = [&](Py_ssize_t used) {
        for (Py_ssize_t left = ndim - used; left > 0; --left) keys.push_back({0, PY_SSIZE_T_MAX, 1});
        open = true;
    };
    for (Py_ssize_t k = 0; k < n; ++k) {
        PyObject* item = PyTuple_GET_ITEM(items.get(), k);
        if (item == Py_Ellipsis) {
            if (open) return false;
            fill(n - 1);
            continue;
        }
        PutSumStep::Key found{0, 0, 0};
        const bool read = PySlice_Check(item) ? PySlice_Unpack(item, &found.start, &found.stop, &found.step) == 0
                                              : PyLong_CheckExact(item) != 0;
        if (read && found.step == 0) found.start = PyLong_AsSsize_t(item);
        if (!read || PyErr_Occurred()) return PyErr_Clear(), false;
        keys.push_back(found);
    }
    if (!open) fill(n);
    return keys.size() == static_cast<size_t>(ndim);
}

}  // namespace

void make_put_sum(const Rewrite& r, uint32_t i, std::unique_ptr<NativeStep>& step) {
    const PyNode& node = r.g.node_as<PyNode>(i);
    static constexpr std::string_view kNames[] = {"ct",    "like",  "key",   "ct_1",  "key_1", "ct_2",  "key_2", "ct_3",
                                                  "key_3", "ct_4",  "key_4", "ct_5",  "key_5", "ct_6",  "key_6", "ct_7",
                                                  "key_7", "ct_8",  "key_8", "ct_9",  "key_9", "ct_10", "key_10"};
    std::vector<NodeArgument> given;
    if (!NodeCall(node).bind(kNames, given) || !given[3].given() || given[1].input < 0) return;
    auto made = std::make_unique<PutSumStep>(Fallback::of_node(r.g, i));
    made->like = static_cast<size_t>(given[1].input);
    const int ndim = r.g.spec(node.inputs()[made->like]).ndim;
    if (ndim < 1 || ndim > static_cast<int>(kMostAxes)) return;
    for (size_t k = 0; k + 1 < given.size() && given[k].given(); k += k == 0 ? 3 : 2) {
        const NodeArgument &x = given[k], &key = given[k == 0 ? 2 : k + 1];
        PutSumStep::Part part;
        if (x.input < 0 || key.computed() || !key.value || !read_keys(key.value, ndim, part.keys)) return;
        part.input = static_cast<size_t>(x.input);
        PyArray_Descr* dtype = builtin_dtype(r.g, node.inputs()[part.input]);
        if (!dtype || (dtype->type_num != NPY_DOUBLE && dtype->type_num != NPY_FLOAT)) return;
        if (made->dtype && dtype != made->dtype) return;
        made->dtype = dtype;
        made->parts.push_back(std::move(part));
    }
    step = std::move(made);
}

}  // namespace pyop
