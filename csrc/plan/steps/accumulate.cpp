// plan/steps/accumulate.cpp: compute np.cumsum, np.cumprod, ufunc.accumulate and ufunc.outer as native steps.
//
// NumPy accumulates by its loop with the result, one element back, as the first operand: every element is one step,
// so it does not matter how many of them a call of the loop gets.
#include <cstring>
#include <memory>

#include "array/loop/fp_flags.h"
#include "array/reduction/reduction.h"
#include "plan/steps/call_arguments.h"
#include "plan/steps/steps.h"
#include "runtime/attach.h"
#include "runtime/release_gil.h"

#define NO_IMPORT_UFUNC  // only the struct is used
#include <numpy/ufuncobject.h>

namespace pyop {

namespace {

constexpr npy_intp kBlock = 512;

constexpr Named<const char*> kRunning[] = {{"cumsum", "add"}, {"cumprod", "multiply"}};
constexpr std::string_view kRunningParameters[] = {"a", "axis", "dtype", "out"};
constexpr std::string_view kAccumulate[] = {"array", "axis", "dtype", "out"};
constexpr std::string_view kOuter[] = {"A", "B"};

// The ufunc whose bound method of this name `fn` is; null if it is something else. Borrowed.
PyObject* ufunc_of_method(PyObject* fn, std::string_view method) {
    if (!PyCFunction_CheckExact(fn)) return nullptr;
    PyObject* self = PyCFunction_GET_SELF(fn);
    const auto* f = reinterpret_cast<PyCFunctionObject*>(fn);
    return self && is_elementwise_ufunc(self) && f->m_ml->ml_name == method ? self : nullptr;
}

// After loops of NumPy: whether their results stand.
bool went_well(int status, const StridedLoop& loop) {
    if (all_fp_errors()) {
        clear_all_fp_errors();
        if (!loop.ignores_flags()) status = -1;
    }
    return status == 0;
}

int finish(bool well, Ref& made, PyObject** results) {
    // Loops of the older kind return nothing: an error set is all that tells of their failure.
    if (!well || PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    results[0] = made.release();
    return 1;
}

class AccumulateStep final : public NativeStep {
  public:
    using NativeStep::NativeStep;

    int run(PyObject* const* inputs, PyObject** results, const StepContext&) const override {
        if (!is_exact_array(inputs[input])) return 0;
        PyArrayObject* a = as_array(inputs[input]);
        const int ndim = PyArray_NDIM(a);
        if (PyArray_DESCR(a) != kind.in || !PyArray_ISALIGNED(a) || ndim < 1 || PyArray_SIZE(a) == 0) return 0;
        const bool contiguous = PyArray_IS_C_CONTIGUOUS(a);
        // Other orders are passed on to the result.
        if (ndim > 1 && !contiguous) return 0;
        int along = axis.all ? 0 : axis.axis[0] + (axis.axis[0] < 0 ? ndim : 0);
        if (along < 0 || along >= ndim) return 0;
        npy_intp size = PyArray_SIZE(a);
        const bool flat = axis.all;
        Ref made = Ref::steal(PyArray_NewFromDescr(
            &PyArray_Type, reinterpret_cast<PyArray_Descr*>(Py_NewRef(reinterpret_cast<PyObject*>(kind.loop->dtype()))),
            flat ? 1 : ndim, flat ? &size : PyArray_DIMS(a), nullptr, nullptr, 0, nullptr));
        if (!made) return -1;
        npy_intp n = size, inner = 1, outer = 1;
        if (!flat) {
            n = PyArray_DIM(a, along);
            for (int d = 0; d < along; ++d) outer *= PyArray_DIM(a, d);
            for (int d = along + 1; d < ndim; ++d) inner *= PyArray_DIM(a, d);
        }
        const npy_intp stride = ndim == 1 ? PyArray_STRIDE(a, 0) : inner * PyDataType_ELSIZE(kind.in);
        bool well;
        {
            const DetachScope detached(size >= kReleaseElements);
            if (all_fp_errors()) clear_all_fp_errors();
            const int status = lines(PyArray_BYTES(a), stride, PyArray_BYTES(as_array(made.get())), outer, n, inner);
            well = went_well(status, kind.loop->loop());
        }
        return finish(well, made, results);
    }
    std::string describe(size_t) const override { return text; }

    size_t input = 0;
    AxisSet axis;
    Reduction kind;
    std::string text;

  private:
    int lines(const char* in, npy_intp stride, char* out, npy_intp outer, npy_intp n, npy_intp inner) const {
        const npy_intp in_size = PyDataType_ELSIZE(kind.in), out_size = kind.loop->itemsize();
        for (npy_intp o = 0; o < outer; ++o)
            for (npy_intp i = 0; i < inner; ++i)
                if (line(in + (o * n * inner + i) * in_size, stride, out + (o * n * inner + i) * out_size,
                         inner * out_size, n) < 0)
                    return -1;
        return 0;
    }

    int line(const char* in, npy_intp stride, char* out, npy_intp step, npy_intp n) const {
        const StridedLoop& loop = kind.loop->loop();
        const npy_intp itemsize = kind.loop->itemsize();
        alignas(16) char block[kBlock * ReductionLoop::kMaxItemsize];
        if (kind.convert)
            kind.convert(out, in, 0, 1);
        else
            std::memcpy(out, in, static_cast<size_t>(itemsize));
        const npy_intp most = kind.convert ? kBlock : n;
        for (npy_intp at = 1; at < n; at += most) {
            const npy_intp count = std::min(most, n - at);
            const char* from = in + at * stride;
            if (kind.convert) {
                kind.convert(block, from, stride, count);
                from = block;
            }
            char* const data[] = {out + (at - 1) * step, const_cast<char*>(from), out + at * step};
            const npy_intp strides[] = {step, kind.convert ? itemsize : stride, step};
            if (loop(data, count, strides) < 0) return -1;
        }
        return 0;
    }
};

class OuterStep final : public NativeStep {
  public:
    using NativeStep::NativeStep;

    int run(PyObject* const* inputs, PyObject** results, const StepContext&) const override {
        PyObject *x = inputs[first], *y = inputs[second];
        if (!fits(x, 0) || !fits(y, 1)) return 0;
        PyArrayObject *a = as_array(x), *b = as_array(y);
        npy_intp dims[2 * kMaxNdim];
        std::copy_n(PyArray_DIMS(a), PyArray_NDIM(a), dims);
        std::copy_n(PyArray_DIMS(b), PyArray_NDIM(b), dims + PyArray_NDIM(a));
        npy_intp n = PyArray_SIZE(a), m = PyArray_SIZE(b);
        // NumPy's loop then moves along the first, and sees a number in the second.
        if (m == 1 && !flatten) return 0;
        if (flatten) dims[0] = n, dims[1] = m;
        PyObject* dtype = Py_NewRef(reinterpret_cast<PyObject*>(loop.dtype(2)));
        Ref made = Ref::steal(PyArray_NewFromDescr(&PyArray_Type, reinterpret_cast<PyArray_Descr*>(dtype),
                                                   flatten ? 2 : PyArray_NDIM(a) + PyArray_NDIM(b), dims, nullptr,
                                                   nullptr, 0, nullptr));
        if (!made) return -1;
        bool well;
        {
            const DetachScope detached(n * m >= kReleaseElements);
            if (all_fp_errors()) clear_all_fp_errors();
            int status = 0;
            char* data[] = {PyArray_BYTES(a), PyArray_BYTES(b), PyArray_BYTES(as_array(made.get()))};
            const npy_intp strides[] = {0, loop.itemsize(1), loop.itemsize(2)};
            for (npy_intp i = 0; m > 0 && i < n && status == 0; ++i) {
                status = loop(data, m, strides);
                data[0] += loop.itemsize(0);
                data[2] += m * loop.itemsize(2);
            }
            well = went_well(status, loop);
        }
        return finish(well, made, results);
    }
    std::string describe(size_t) const override { return text; }

    static constexpr int kMaxNdim = 8;
    size_t first = 0, second = 0;
    bool flatten = false;  // np.outer
    StridedLoop loop;
    std::string text;

  private:
    bool fits(PyObject* o, int k) const {
        return is_exact_array(o) && PyArray_DESCR(as_array(o)) == loop.dtype(k) && PyArray_ISCARRAY_RO(as_array(o)) &&
               PyArray_NDIM(as_array(o)) <= kMaxNdim;
    }
};

}  // namespace

int make_accumulate_step(const Rewrite& r, uint32_t i, std::unique_ptr<NativeStep>& step) {
    const PyNode& node = r.g.node_as<PyNode>(i);
    if (!is_plain_call(node) || node.n_outputs() != 1) return 0;
    Ref ufunc = Ref::borrow(ufunc_of_method(node.fn(), "accumulate"));
    const bool is_method = static_cast<bool>(ufunc);
    if (!is_method) {
        const auto* found = function_table<kRunning>().find(node.fn());
        if (!found) return 0;
        ufunc = Ref::steal(find_below_numpy(found->entry));
    }
    CallArguments given;
    if (!ufunc || !given.bind(node, is_method ? kAccumulate : kRunningParameters)) return 0;
    if (given[0].input < 0 || given[1].input >= 0 || !given[3].absent_or(Py_None)) return 0;
    PyArray_Descr* dtype = builtin_dtype(r.g, node.inputs()[static_cast<size_t>(given[0].input)]);
    PyArray_Descr* wanted;
    if (!dtype || !dtype_argument(given[2], wanted)) return 0;
    auto made = std::make_unique<AccumulateStep>(Fallback::of_node(r.g, i));
    made->input = static_cast<size_t>(given[0].input);
    Ref zero = Ref::steal(PyLong_FromLong(0));
    PyObject* default_axis = is_method ? zero.get() : Py_None;
    if (!zero || !made->axis.read(given[1].fixed ? given[1].fixed : default_axis)) return 0;
    if (made->axis.all ? is_method : made->axis.n != 1) return 0;
    const int status = made->kind.make(ufunc.get(), dtype, wanted);
    if (status <= 0) return status;
    made->text = std::string("running ") + reinterpret_cast<PyUFuncObject*>(ufunc.get())->name + ", NumPy's loop";
    step = std::move(made);
    return 0;
}

int make_outer_step(const Rewrite& r, uint32_t i, std::unique_ptr<NativeStep>& step) {
    static constexpr Named<const char*> kOuters[] = {{"outer", "multiply"}};
    const PyNode& node = r.g.node_as<PyNode>(i);
    if (!is_plain_call(node) || node.n_outputs() != 1) return 0;
    auto made = std::make_unique<OuterStep>(Fallback::of_node(r.g, i));
    Ref ufunc = Ref::borrow(ufunc_of_method(node.fn(), "outer"));
    if (!ufunc) {
        const auto* found = function_table<kOuters>().find(node.fn());
        if (!found) return 0;
        made->flatten = true;
        ufunc = Ref::steal(find_below_numpy(found->entry));
    }
    constexpr std::string_view kFlat[] = {"a", "b"};
    CallArguments given;
    if (!ufunc || !given.bind(node, made->flatten ? kFlat : kOuter) || given[0].input < 0 || given[1].input < 0)
        return 0;
    if (!made->flatten && node.form() && node.form()->n_keywords()) return 0;
    made->first = static_cast<size_t>(given[0].input);
    made->second = static_cast<size_t>(given[1].input);
    PyObject* kinds[] = {reinterpret_cast<PyObject*>(builtin_dtype(r.g, node.inputs()[made->first])),
                         reinterpret_cast<PyObject*>(builtin_dtype(r.g, node.inputs()[made->second]))};
    if (!kinds[0] || !kinds[1]) return 0;
    const int status = made->loop.resolve(ufunc.get(), kinds, 2);
    if (status <= 0) return status;
    for (int k = 0; k < 2; ++k)
        if (reinterpret_cast<PyObject*>(made->loop.dtype(k)) != kinds[k]) return 0;
    if (made->loop.n_outputs() != 1) return 0;
    made->text = std::string("outer ") + reinterpret_cast<PyUFuncObject*>(ufunc.get())->name + ", NumPy's loop";
    step = std::move(made);
    return 0;
}

}  // namespace pyop
