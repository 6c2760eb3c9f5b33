// plan/steps/fill.cpp: run np.zeros_like, ones_like and full_like of a number as native steps, for arrays in C order.

#include "array/memory/pool.h"
#include "array/memory/recycle.h"
#include "plan/steps/call_arguments.h"
#include "plan/steps/fill_items.h"
#include "plan/steps/steps.h"
#include "plan/tape/tape_builder.h"
#include "runtime/attach.h"

namespace pyop {

namespace {

class FillStep final : public NativeStep {
  public:
    FillStep(Fallback fallback, Ref item) : NativeStep(std::move(fallback)), item_(std::move(item)) {}

    int run(PyObject* const* inputs, PyObject** results, const StepContext&) const override {
        if (!is_exact_array(inputs[0]) || !PyArray_IS_C_CONTIGUOUS(as_array(inputs[0]))) return 0;
        PyArrayObject *like = as_array(inputs[0]), *item = as_array(item_.get());
        PyArray_Descr* dtype = PyArray_DESCR(item);
        const int ndim = PyArray_NDIM(like);
        const npy_intp itemsize = PyArray_ITEMSIZE(item), bytes = PyArray_SIZE(like) * itemsize;
        PyObject* result = bytes <= ResultRecycler::kMostBytes
                               ? recycler_.take(dtype, ndim, PyArray_DIMS(like))
                               : pooled_array_new(dtype, ndim, PyArray_DIMS(like), nullptr);
        if (!result) return -1;
        const DetachScope detached(bytes >= kDetachedFill);
        fill_items(PyArray_BYTES(as_array(result)), bytes, PyArray_BYTES(item), itemsize);
        results[0] = result;
        return 1;
    }
    bool record(TapeBuilder& tape, const TapeValue* inputs, TapeValue* results) const override {
        const TapeValue& like = inputs[0];
        const TapeValue item = tape.known(item_.get());
        if (like.kind == TapeValue::Number && item.kind == TapeValue::Number) {
            results[0] = item;
            return true;
        }
        if (like.kind != TapeValue::Block || !like.contiguous() || item.kind != TapeValue::Number) return false;
        results[0] = tape.block_new(item.dtype, like.ndim, like.dims.data());
        return results[0].kind == TapeValue::Block && tape.copy(results[0], item);
    }
    std::string describe(size_t) const override { return "filled with a number"; }

  private:
    Ref item_;  // of rank 0, of one of NumPy's own dtypes
    mutable ResultRecycler recycler_;  // the GIL guards it
};

enum class Fill { Zeros, Ones, Full };
constexpr Named<Fill> kFills[] = {{"zeros_like", Fill::Zeros}, {"ones_like", Fill::Ones}, {"full_like", Fill::Full}};

// Whether the dtype holds numbers of this kind, but for the last bits.
bool holds_kind_of(PyArray_Descr* dtype, PyObject* value) {
    if (PyLong_Check(value)) return true;
    if (PyFloat_Check(value)) return PyTypeNum_ISFLOAT(dtype->type_num) || PyTypeNum_ISCOMPLEX(dtype->type_num);
    return PyComplex_Check(value) && PyTypeNum_ISCOMPLEX(dtype->type_num);
}

}  // namespace

int make_fill_step(const Rewrite& r, uint32_t i, std::unique_ptr<NativeStep>& step) {
    static constexpr std::string_view kLike[] = {"a", "dtype", "order", "subok", "shape", "*", "device"};
    static constexpr std::string_view kFull[] = {"a", "fill_value", "dtype", "order", "subok", "shape", "*", "device"};
    const PyNode& node = r.g.node_as<PyNode>(i);
    const Named<Fill>* found = function_table<kFills>().find(node.fn());
    if (!found || !is_plain_call(node)) return 0;
    const bool full = found->entry == Fill::Full;
    CallArguments call;
    if (!call.bind(node, full ? std::span<const std::string_view>(kFull) : kLike) || call[0].input < 0) return 0;
    // Order, subok, shape and device: as they are by default. The dtype is that of the node's spec.
    const size_t order = full ? 3 : 2;
    PyArray_Descr* dtype = builtin_dtype(r.g, {i, 0});
    if (!dtype || call[order - 1].input >= 0 || call[order].given() || call[order + 1].given() ||
        !call[order + 2].absent_or(Py_None) || !call[order + 4].absent_or(Py_None))
        return 0;
    Ref number = Ref::steal(PyLong_FromLong(found->entry == Fill::Ones));
    if (full) {
        PyObject* value = call[1].fixed;
        if (!value || !holds_kind_of(dtype, value)) return 0;
        number = Ref::borrow(value);
    }
    Py_INCREF(dtype);
    Ref item =
        Ref::steal(PyArray_FromAny(number.get(), dtype, 0, 0, NPY_ARRAY_CARRAY_RO | NPY_ARRAY_FORCECAST, nullptr));
    if (item)
        step = std::make_unique<FillStep>(Fallback::of_node(r.g, i), std::move(item));
    else
        PyErr_Clear();  // a number that the dtype does not hold: the function will say so
    return 0;
}

}  // namespace pyop
