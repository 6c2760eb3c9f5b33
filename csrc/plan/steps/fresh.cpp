// plan/steps/fresh.cpp: make an array that the function makes of nothing (pyop.gradients.fresh), as a native step:
// filled with one element, or a copy of a constant.
#include <cstring>

#include "array/memory/pool.h"
#include "array/memory/recycle.h"
#include "plan/steps/call_arguments.h"
#include "plan/steps/fill_items.h"
#include "plan/steps/node_call.h"
#include "plan/steps/steps.h"
#include "plan/tape/tape_builder.h"
#include "runtime/attach.h"
#include "runtime/stack_array.h"
#include "runtime/up_calls.h"

namespace pyop {

namespace {

class FreshStep final : public NativeStep {
  public:
    using NativeStep::NativeStep;

    int run(PyObject* const* inputs, PyObject** results, const StepContext&) const override {
        PyObject* given = inputs[source];
        if (!is_exact_array(given)) return 0;
        PyArrayObject* item = as_array(given);
        if (PyArray_DESCR(item) != dtype || !PyArray_IS_C_CONTIGUOUS(item)) return 0;
        const npy_intp itemsize = PyArray_ITEMSIZE(item);
        if (!filled) {
            Ref made = array_of(PyArray_NDIM(item), PyArray_DIMS(item), PyArray_NBYTES(item));
            if (!made) return -1;
            std::memcpy(PyArray_DATA(as_array(made.get())), PyArray_DATA(item),
                        static_cast<size_t>(PyArray_NBYTES(item)));
            results[0] = made.release();
            return 1;
        }
        if (PyArray_NDIM(item) != 0) return 0;
        StackArray<npy_intp, 8> numbers(sizes ? sizes->sizes.size() : 0);
        if (sizes && !tree_sizes(*sizes, inputs, numbers.data())) return 0;
        StackArray<npy_intp, 8> dims(shape.size());
        npy_intp bytes = itemsize;
        for (size_t d = 0; d < shape.size(); ++d) {
            const npy_intp n = shape[d].symbolic ? numbers[static_cast<size_t>(shape[d].size)] : shape[d].size;
            if (n < 0 || __builtin_mul_overflow(bytes, n, &bytes)) return 0;  // NumPy's error
            dims[d] = n;
        }
        Ref made = array_of(static_cast<int>(shape.size()), dims.data(), bytes);
        if (!made) return -1;
        const DetachScope detached(bytes >= kDetachedFill);
        fill_items(PyArray_BYTES(as_array(made.get())), bytes, PyArray_BYTES(item), itemsize);
        results[0] = made.release();
        return 1;
    }
    bool record(TapeBuilder& tape, const TapeValue* inputs, TapeValue* results) const override {
        const TapeValue& item = inputs[source];
        if (!tape.with_blocks() || item.dtype != dtype || !tape.readable(item)) return false;
        if (!filled) {
            if (item.kind != TapeValue::Block || !item.contiguous()) return false;
            results[0] = tape.like_new(item);
            return tape.copy(results[0], item);
        }
        std::vector<npy_intp> dims;
        for (const Extent& extent : shape) {
            if (extent.symbolic) return false;
            dims.push_back(extent.size);
        }
        if (item.kind != TapeValue::Number || dims.empty()) return false;
        results[0] = tape.block_new(dtype, static_cast<int>(dims.size()), dims.data());
        return results[0].kind == TapeValue::Block && tape.copy(results[0], item);
    }
    std::string describe(size_t) const override { return filled ? "filled with a number" : "copied"; }

    struct Extent {
        bool symbolic;
        npy_intp size;  // or which of `sizes`
    };

    size_t source = 0;
    PyArray_Descr* dtype = nullptr;  // one of NumPy's own, which live for ever
    bool filled = false;
    std::vector<Extent> shape;
    const TreeCallObject::Layout* sizes = nullptr;

  private:
    Ref array_of(int ndim, const npy_intp* dims, npy_intp bytes) const {
        return Ref::steal(bytes <= ResultRecycler::kMostBytes ? recycler_.take(dtype, ndim, dims)
                                                              : pooled_array_new(dtype, ndim, dims, nullptr));
    }

    mutable ResultRecycler recycler_;  // the GIL guards it
};

bool read_shape(PyObject* shape, FreshStep& step) {
    if (!PyTuple_CheckExact(shape) || PyTuple_GET_SIZE(shape) > NPY_MAXDIMS) return false;
    for (Py_ssize_t d = 0; d < PyTuple_GET_SIZE(shape); ++d) {
        PyObject* size = PyTuple_GET_ITEM(shape, d);
        if (PyLong_CheckExact(size)) {
            step.shape.push_back({false, PyLong_AsSsize_t(size)});
            if (PyErr_Occurred()) {
                PyErr_Clear();
                return false;
            }
            continue;
        }
        size_t k = 0;
        const size_t n = step.sizes ? step.sizes->sizes.size() : 0;
        while (k < n && step.sizes->sizes[k].dim.get() != size) ++k;
        if (k == n) return false;
        step.shape.push_back({true, static_cast<npy_intp>(k)});
    }
    return true;
}

}  // namespace

int make_fresh_step(const Rewrite& r, uint32_t i, std::unique_ptr<NativeStep>& step) {
    const PyNode& node = r.g.node_as<PyNode>(i);
    if (!is_plain_call(node) || node.n_outputs() != 1 || !up_calls.fresh) return 0;
    const NodeCall call(node);
    std::vector<NodeArgument> given;
    if (call.fn() != up_calls.fresh || !call.bind({"item", "shape"}, given) || given[0].input < 0) return 0;
    if (given[1].computed()) return 0;
    auto made = std::make_unique<FreshStep>(Fallback::of_node(r.g, i));
    made->source = static_cast<size_t>(given[0].input);
    made->dtype = builtin_dtype(r.g, node.inputs()[made->source]);
    made->filled = !given[1].none();
    made->sizes = call.layout();
    if (made->dtype && (!made->filled || read_shape(given[1].value, *made))) step = std::move(made);
    return 0;
}

}  // namespace pyop
