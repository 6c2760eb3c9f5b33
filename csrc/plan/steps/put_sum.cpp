// plan/steps/put_sum.cpp: sum several arrays, each in a part of zeros: what the gradients of several slices of one
// array come to. It is computed block by block, so that the result is written once.
//
// A sum with zeros is a sum: what one array does not cover becomes x + 0.0, which is not x for -0.0.
#include <algorithm>
#include <array>
#include <cstring>

#include "array/loop/fp_flags.h"
#include "array/memory/pool.h"
#include "array/memory/recycle.h"
#include "kernels/kernel.h"
#include "plan/steps/call_arguments.h"
#include "plan/steps/node_call.h"
#include "plan/steps/put_sum.h"
#include "runtime/attach.h"
#include "runtime/release_gil.h"

namespace pyop {

namespace {

constexpr npy_intp kBlockBytes = 1 << 14;
constexpr size_t kMostAxes = 8, kMostParts = 8;

// Along one axis of the result: which positions an array has a line for, and how far its lines are apart.
struct Reach {
    npy_intp start, step, count, stride;
};

// out[i * out_step] += in[i * in_step]
using AddLine = void(char* out, npy_intp out_step, const char* in, npy_intp in_step, npy_intp n);

template <typename T>
void add_line(char* out, npy_intp out_step, const char* in, npy_intp in_step, npy_intp n) {
    for (; n > 0; --n, out += out_step, in += in_step) *reinterpret_cast<T*>(out) += *reinterpret_cast<const T*>(in);
}

constexpr double kNothing = 0.0;  // the zero of float32, too

struct Sum {
    int ndim;
    npy_intp dims[kMostAxes], strides[kMostAxes];  // of the result
    AddLine* add_line;
    Kernel kernel;  // for what lies side by side

    // Adds an array to positions [low, high) of an axis; `set` is for the first, which is added to nothing.
    void add(const Reach* reach, int axis, char* out, const char* in, npy_intp low, npy_intp high, bool set) const {
        const Reach& r = reach[axis];
        const npy_intp size = strides[axis];
        npy_intp k = low > r.start ? (low - r.start + r.step - 1) / r.step : 0;
        npy_intp at = r.start + k * r.step, done = low;
        char* const origin = out - low * size;
        if (axis < ndim - 1) {
            for (; k < r.count && at < high; ++k, at += r.step) {
                nothing(origin + done * size, (at - done) * size, set);
                add(reach, axis + 1, origin + at * size, in + k * r.stride, 0, dims[axis + 1], set);
                done = at + 1;
            }
        } else if (const npy_intp n = at < high ? std::min(r.count - k, (high - at - 1) / r.step + 1) : 0; n > 0) {
            nothing(origin + done * size, (at - done) * size, set);
            char* const to = origin + at * size;
            done = at + (n - 1) * r.step + 1;
            if (set) std::memset(to, 0, static_cast<size_t>((done - at) * size));
            for (npy_intp gap = 1; gap < r.step && !set; ++gap) line(to + gap * size, r.step, &kNothing, 0, n - 1);
            if (set)
                copy(to, r.step * size, in + k * r.stride, r.stride, n);
            else
                line(to, r.step, in + k * r.stride, r.stride, n);
        }
        nothing(origin + done * size, (high - done) * size, set);
    }

  private:
    // What the array does not cover.
    void nothing(char* out, npy_intp bytes, bool set) const {
        if (set)
            std::memset(out, 0, static_cast<size_t>(bytes));
        else
            line(out, 1, &kNothing, 0, bytes / strides[ndim - 1]);
    }
    void line(char* out, npy_intp step, const void* in, npy_intp in_step, npy_intp n) const {
        const npy_intp itemsize = strides[ndim - 1];
        char* const from = static_cast<char*>(const_cast<void*>(in));
        if (char* const data[] = {out, from, out}; step == 1 && in_step == itemsize)
            kernel(data, std::max<npy_intp>(n, 0));
        else
            add_line(out, step * itemsize, from, in_step, n);
    }
    void copy(char* out, npy_intp out_step, const char* in, npy_intp in_step, npy_intp n) const {
        const auto itemsize = static_cast<size_t>(strides[ndim - 1]);
        if (out_step == in_step && static_cast<size_t>(in_step) == itemsize)
            std::memcpy(out, in, static_cast<size_t>(n) * itemsize);
        else
            for (npy_intp i = 0; i < n; ++i) std::memcpy(out + i * out_step, in + i * in_step, itemsize);
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
            compute(as_array(result.get()), reach, data);
        }
        if (fp_errors()) return clear_all_fp_errors(), 0;  // NumPy has the words for it
        results[0] = result.release();
        return 1;
    }
    std::string describe(size_t) const override { return "copies into zeros, summed"; }

    size_t like = 0;
    PyArray_Descr* dtype = nullptr;  // float64 or float32, which live for ever
    Kernel kernel = nullptr;  // that adds
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
            if (count < 2) {
                reach[d] = {start, 1, count, stride};  // the step may be any number
            } else if (key.step > 0) {
                reach[d] = {start, key.step, count, stride};
            } else {  // from the lowest position on
                reach[d] = {start + (count - 1) * key.step, -key.step, count, -stride};
                data += (count - 1) * stride;
            }
        }
        return axis == PyArray_NDIM(a);
    }

    void compute(PyArrayObject* result, const Reach (*reach)[kMostAxes], const char* const* data) const {
        Sum sum;
        sum.ndim = PyArray_NDIM(result);
        sum.add_line = dtype->type_num == NPY_DOUBLE ? add_line<double> : add_line<float>;
        sum.kernel = kernel;
        std::copy_n(PyArray_DIMS(result), sum.ndim, sum.dims);
        npy_intp size = PyDataType_ELSIZE(dtype);  // the strides of an array of no elements, or of one, may be others
        for (int d = sum.ndim; d-- > 0; size *= sum.dims[d]) sum.strides[d] = size;
        char* out = PyArray_BYTES(result);
        const npy_intp line = sum.strides[0], n = sum.dims[0], lines = std::max<npy_intp>(kBlockBytes / line, 1);
        for (npy_intp low = 0; low < n; low += lines)
            for (size_t k = 0; k < parts.size(); ++k)
                sum.add(reach[k], 0, out + low * line, data[k], low, std::min(low + lines, n), k == 0);
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
    // Three, and two for each of as many arrays as there may be more; they are given by position.
    static constexpr std::array<std::string_view, 2 * kMostParts + 1> kNames{"ct", "like", "key"};
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
    made->kernel = find_kernel(Operation::Add, made->dtype->type_num == NPY_DOUBLE ? Element::F64 : Element::F32);
    if (made->kernel) step = std::move(made);
}

}  // namespace pyop
