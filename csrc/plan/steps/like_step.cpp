// plan/steps/like_step.cpp: run what gradient rules do where a size is not known before the run: an array laid out as
// another one is, reshaped as another one is, and the number of elements along axes.
#include <algorithm>
#include <array>
#include <vector>

#include "array/memory/recycle.h"
#include "plan/steps/call_arguments.h"
#include "plan/steps/steps.h"
#include "runtime/stack_array.h"
#include "runtime/up_calls.h"

namespace pyop {

namespace {

PyObject* view_new(PyArrayObject* x, int ndim, const npy_intp* dims, const npy_intp* strides, int flags) {
    Py_INCREF(PyArray_DESCR(x));
    PyObject* made = PyArray_NewFromDescr(&PyArray_Type, PyArray_DESCR(x), ndim, const_cast<npy_intp*>(dims),
                                          const_cast<npy_intp*>(strides), PyArray_DATA(x), flags, nullptr);
    if (made && PyArray_SetBaseObject(as_array(made), Py_NewRef(reinterpret_cast<PyObject*>(x))) < 0) Py_CLEAR(made);
    return made;
}

class BroadcastStep final : public NativeStep {
  public:
    explicit BroadcastStep(Fallback fallback) : NativeStep(std::move(fallback)) {}

    int run(PyObject* const* inputs, PyObject** results, const StepContext&) const override {
        if (!is_exact_array(inputs[0]) || !is_exact_array(inputs[1])) return 0;
        PyArrayObject *x = as_array(inputs[0]), *like = as_array(inputs[1]);
        const int ndim = PyArray_NDIM(like), lead = ndim - PyArray_NDIM(x);
        if (lead < 0) return 0;
        StackArray<npy_intp, 8> strides(static_cast<size_t>(ndim));
        for (int k = 0; k < ndim; ++k) {
            const npy_intp n = k < lead ? 1 : PyArray_DIM(x, k - lead);
            if (n != 1 && n != PyArray_DIM(like, k)) return 0;  // NumPy has the words for it
            strides.data()[k] = n == 1 ? 0 : PyArray_STRIDE(x, k - lead);
        }
        results[0] = view_new(x, ndim, PyArray_DIMS(like), strides.data(), 0);
        return results[0] ? 1 : -1;
    }
    std::string describe(size_t) const override { return "view, broadcast"; }
};

class ReshapeStep final : public NativeStep {
  public:
    explicit ReshapeStep(Fallback fallback) : NativeStep(std::move(fallback)) {}

    int run(PyObject* const* inputs, PyObject** results, const StepContext&) const override {
        if (!is_exact_array(inputs[0]) || !is_exact_array(inputs[1])) return 0;
        PyArrayObject *x = as_array(inputs[0]), *like = as_array(inputs[1]);
        const bool same = PyArray_SAMESHAPE(x, like);
        if (!same && (!PyArray_IS_C_CONTIGUOUS(x) || PyArray_SIZE(x) != PyArray_SIZE(like))) return 0;
        results[0] = view_new(x, PyArray_NDIM(like), PyArray_DIMS(like), same ? PyArray_STRIDES(x) : nullptr,
                              PyArray_FLAGS(x) & (NPY_ARRAY_WRITEABLE | NPY_ARRAY_ALIGNED));
        return results[0] ? 1 : -1;
    }
    std::string describe(size_t) const override { return "view, reshaped"; }
};

class CountStep final : public NativeStep {
  public:
    CountStep(Fallback fallback, PyArray_Descr* dtype, std::vector<int> axes, bool all)
        : NativeStep(std::move(fallback)), dtype_(dtype), axes_(std::move(axes)), all_(all) {}

    int run(PyObject* const* inputs, PyObject** results, const StepContext&) const override {
        if (!is_exact_array(inputs[0])) return 0;
        PyArrayObject* a = as_array(inputs[0]);
        npy_intp n = all_ ? PyArray_SIZE(a) : 1;
        for (int axis : axes_) {
            if (axis < 0) axis += PyArray_NDIM(a);
            if (axis < 0 || axis >= PyArray_NDIM(a)) return 0;
            n *= PyArray_DIM(a, axis);
        }
        results[0] = recycler_.take(dtype_, 0, nullptr);
        if (!results[0]) return -1;
        void* data = PyArray_DATA(as_array(results[0]));
        if (dtype_->type_num == NPY_DOUBLE)
            *static_cast<double*>(data) = static_cast<double>(n);
        else
            *static_cast<float*>(data) = static_cast<float>(n);
        return 1;
    }
    std::string describe(size_t) const override { return "number of elements"; }

  private:
    PyArray_Descr* dtype_;  // NumPy's own, which lives for ever
    std::vector<int> axes_;
    bool all_;
    mutable ResultRecycler recycler_;  // the GIL guards it
};

// False if these are not integers.
bool read_axes(PyObject* axis, std::vector<int>& axes) {
    if (PyTuple_CheckExact(axis)) {
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(axis); ++k)
            if (PyTuple_CheckExact(PyTuple_GET_ITEM(axis, k)) || !read_axes(PyTuple_GET_ITEM(axis, k), axes))
                return false;
        return true;
    }
    if (!PyLong_CheckExact(axis)) return false;
    int overflow = 0;
    const long number = PyLong_AsLongAndOverflow(axis, &overflow);
    if (overflow || std::abs(number) > NPY_MAXDIMS) return false;
    axes.push_back(static_cast<int>(number));
    return true;
}

int make_count(const Rewrite& r, uint32_t i, const PyNode& node, std::unique_ptr<NativeStep>& step) {
    static constexpr std::array<std::string_view, 2> kParameters = {"a", "axis"};
    CallArguments call;
    if (!call.bind(node, kParameters) || call[0].input != 0 || call[1].input >= 0) return 0;
    const PyArray_Descr* dtype = r.g.spec({i, 0}).descr();
    if (!dtype || (dtype->type_num != NPY_DOUBLE && dtype->type_num != NPY_FLOAT)) return 0;
    std::vector<int> axes;
    const bool all = call[1].absent_or(Py_None);
    if (!all && !read_axes(call[1].fixed, axes)) return 0;
    Ref own = Ref::steal(reinterpret_cast<PyObject*>(PyArray_DescrFromType(dtype->type_num)));
    step = std::make_unique<CountStep>(Fallback::of_node(r.g, i), reinterpret_cast<PyArray_Descr*>(own.get()),
                                       std::move(axes), all);
    return 0;
}

}  // namespace

int make_like_step(const Rewrite& r, uint32_t i, std::unique_ptr<NativeStep>& step) {
    const PyNode& node = r.g.node_as<PyNode>(i);
    if (node.fn() == up_calls.count_along) return make_count(r, i, node, step);
    if (node.form() || node.inputs().size() != 2 || node.n_outputs() != 1) return 0;
    if (node.fn() == up_calls.broadcast_like)
        step = std::make_unique<BroadcastStep>(Fallback::of_node(r.g, i));
    else if (node.fn() == up_calls.reshape_like)
        step = std::make_unique<ReshapeStep>(Fallback::of_node(r.g, i));
    return 0;
}

}  // namespace pyop
