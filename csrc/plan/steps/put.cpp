// plan/steps/put.cpp: put an array into part of zeros, the adjoint of indexing by slices and integers, as a native
// step. What the key shows of the zeros is found as for the index itself.
#include <cstring>
#include <functional>
#include <numeric>

#include "array/memory/pool.h"
#include "array/memory/recycle.h"
#include "plan/steps/call_arguments.h"
#include "plan/steps/copy_into.h"
#include "plan/steps/node_call.h"
#include "plan/steps/put_sum.h"
#include "plan/steps/steps.h"
#include "plan/steps/view_reading.h"
#include "runtime/attach.h"
#include "runtime/release_gil.h"
#include "runtime/stack_array.h"
#include "runtime/up_calls.h"

namespace pyop {

namespace {

class PutStep final : public NativeStep {
  public:
    using NativeStep::NativeStep;

    int run(PyObject* const* inputs, PyObject** results, const StepContext&) const override {
        PyObject *x = inputs[source], *shaped = inputs[like];
        if (!is_exact_array(x) || !is_exact_array(shaped) || PyArray_DESCR(as_array(x)) != dtype) return 0;
        const int ndim = PyArray_NDIM(as_array(shaped));
        const npy_intp* dims = PyArray_DIMS(as_array(shaped));
        StackArray<npy_intp, 8> numbers(sizes ? sizes->sizes.size() : 0);
        if (sizes && !tree_sizes(*sizes, inputs, numbers.data())) return 0;
        const npy_intp bytes =
            PyDataType_ELSIZE(dtype) * std::accumulate(dims, dims + ndim, npy_intp{1}, std::multiplies<>());
        Ref result = Ref::steal(bytes <= ResultRecycler::kMostBytes ? recycler_.take(dtype, ndim, dims)
                                                                    : pooled_array_new(dtype, ndim, dims, nullptr));
        if (!result) return -1;
        const ArrayView base(as_array(result.get()));
        ArrayView part;
        if (!recipe.apply(base, part, numbers.data()) || part.ndim != PyArray_NDIM(as_array(x)) ||
            !std::equal(part.dims, part.dims + part.ndim, PyArray_DIMS(as_array(x))))
            return 0;
        {
            const DetachScope detached(bytes >= kReleaseBytes);
            std::memset(base.data, 0, static_cast<size_t>(bytes));
            copy_into(part, PyArray_BYTES(as_array(x)), PyArray_STRIDES(as_array(x)));
        }
        results[0] = result.release();
        return 1;
    }
    std::string describe(size_t) const override { return "copies into zeros"; }

    size_t source = 0, like = 0;
    PyArray_Descr* dtype = nullptr;  // one of NumPy's own, which live for ever
    ViewRecipe recipe;
    const TreeCallObject::Layout* sizes = nullptr;  // symbolic ones of the key; may be null

  private:
    mutable ResultRecycler recycler_;  // the GIL guards it
};

}  // namespace

int make_put_step(const Rewrite& r, uint32_t i, std::unique_ptr<NativeStep>& step) {
    const PyNode& node = r.g.node_as<PyNode>(i);
    if (!is_plain_call(node) || node.n_outputs() != 1) return 0;
    const NodeCall call(node);
    std::vector<NodeArgument> given;
    if (call.fn() != up_calls.put) return 0;
    if (!call.bind({"ct", "like", "key"}, given)) return make_put_sum(r, i, step), 0;
    if (given[0].input < 0 || given[1].input < 0 || given[2].computed() || !given[2].value) return 0;
    auto made = std::make_unique<PutStep>(Fallback::of_node(r.g, i));
    made->source = static_cast<size_t>(given[0].input);
    made->like = static_cast<size_t>(given[1].input);
    made->dtype = builtin_dtype(r.g, node.inputs()[made->source]);
    made->sizes = call.layout();
    const int ndim = r.g.spec(node.inputs()[made->like]).ndim;
    if (made->dtype && ndim >= 0 && read_key(given[2].value, ndim, made->sizes, made->recipe)) step = std::move(made);
    return 0;
}

}  // namespace pyop
