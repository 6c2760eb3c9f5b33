// plan/steps/mean.cpp: compute np.mean, np.var and np.std as native steps.
//
// They follow what these functions do step by step, so that every rounding is the same: the sum as ufunc.reduce gives
// it, divided in float64 and rounded to the dtype of the sum; for the variance the squares of the differences in an
// array laid out as the input is, summed likewise. float16 and complex numbers are left to NumPy.
#include <cmath>
#include <cstring>

#include "array/loop/fp_flags.h"
#include "array/reduction/reduction_blocks.h"
#include "array/reduction/reduction_walk.h"
#include "plan/steps/call_arguments.h"
#include "plan/steps/reduce.h"
#include "plan/steps/steps.h"
#include "plan/tape/tape_builder.h"
#include "runtime/attach.h"
#include "runtime/release_gil.h"

namespace pyop {

namespace {

constexpr npy_intp kMeanBlock = 512;

constexpr Named<Moment> kMoments[] = {
    {"mean", Moment::Mean},
    {"average", Moment::Mean},
    {"var", Moment::Variance},
    {"std", Moment::Deviation},
};
constexpr std::string_view kMeanParameters[] = {"a", "axis", "dtype", "out", "keepdims", "*", "where"};
// Without weights it is the mean: only calls that leave what stands in the places of dtype and out as it is.
constexpr std::string_view kAverageParameters[] = {"a", "axis", "weights", "returned", "*", "keepdims"};
constexpr std::string_view kVarParameters[] = {"a", "axis", "dtype", "out", "ddof", "keepdims", "*", "where"};

template <typename T>
void divide(char* data, npy_intp n, npy_intp by) {
    T* values = reinterpret_cast<T*>(data);
    for (npy_intp i = 0; i < n; ++i)
        values[i] = static_cast<T>(static_cast<double>(values[i]) / static_cast<double>(by));
}

template <typename T>
void take_roots(char* data, npy_intp n) {
    T* values = reinterpret_cast<T*>(data);
    for (npy_intp i = 0; i < n; ++i) values[i] = std::sqrt(values[i]);
}

// to[i] = (to[i] - mean)², `mean` moving by `stride` bytes.
template <typename T>
void square_differences(char* to, const char* mean, npy_intp stride, npy_intp n) {
    T* values = reinterpret_cast<T*>(to);
    if (stride == 0) {
        const T m = *reinterpret_cast<const T*>(mean);
        for (npy_intp i = 0; i < n; ++i) {
            const T d = values[i] - m;
            values[i] = d * d;
        }
        return;
    }
    for (npy_intp i = 0; i < n; ++i, mean += stride) {
        const T d = values[i] - *reinterpret_cast<const T*>(mean);
        values[i] = d * d;
    }
}

class MomentStep final : public NativeStep {
  public:
    using NativeStep::NativeStep;

    int run(PyObject* const* inputs, PyObject** results, const StepContext&) const override {
        PyObject* x = inputs[call.sum.input];
        uint32_t axes;
        if (!is_exact_array(x) || !call.sum.axis.bits(PyArray_NDIM(as_array(x)), axes)) return 0;
        PyArrayObject* a = as_array(x);
        npy_intp n = 1;
        for (int d = 0; d < PyArray_NDIM(a); ++d)
            if (axes >> d & 1) n *= PyArray_DIM(a, d);
        if (n <= call.ddof || PyArray_SIZE(a) == 0) return 0;  // with a warning, or an error
        PyObject* made = nullptr;
        int status = sum().run(a, axes, &made);
        if (status <= 0) return status;
        Ref result = Ref::steal(made);
        divide_all(result.get(), n);
        if (call.moment != Moment::Mean) {
            status = variance(a, axes, n, result);
            if (status <= 0) return status;
        }
        if (all_fp_errors()) {  // NumPy will say which
            clear_all_fp_errors();
            return 0;
        }
        results[0] = result.release();
        return 1;
    }
    bool record(TapeBuilder& tape, const TapeValue* inputs, TapeValue* results) const override {
        const TapeValue& x = inputs[call.sum.input];
        if (call.moment == Moment::Mean) return record_reduction(tape, call.sum, x, true, results[0]);
        return record_variance(tape, x, results[0]);
    }
    std::string describe(size_t) const override { return text; }

    MomentCall call;
    Reduction squares;  // of the same dtype as the sums
    std::string text;

  private:
    const Reduction& sum() const { return call.sum.reduction; }
    bool wide() const { return sum().loop->dtype()->type_num == NPY_DOUBLE; }
    Convert to_sum() const { return sum().convert ? sum().convert : same_; }

    void divide_all(PyObject* array, npy_intp by) const {
        PyArrayObject* a = as_array(array);
        divide_sums(PyArray_BYTES(a), PyArray_SIZE(a), by, wide());
    }

    // From means to variances, or deviations. 1, 0 or -1.
    int variance(PyArrayObject* a, uint32_t axes, npy_intp n, Ref& result) const {
        ReductionWalk walk;
        if (!walk.plan(a, axes, sum().keepdims, sum().loop->itemsize()) || walk.size == 0) return 0;
        const char* means = PyArray_BYTES(as_array(result.get()));
        const bool line = walk.ndim == 1 && walk.out_strides[0] == 0;
        const int by_blocks = line ? BlockReduction::available(*sum().loop) : 0;
        if (by_blocks < 0) return -1;
        if (by_blocks) {
            alignas(16) char total[sizeof(double)];
            int status;
            {
                const DetachScope detached(walk.size >= kReleaseElements);
                status = sum_line(PyArray_BYTES(a), walk.size, walk.in_strides[0], means, total);
            }
            if (status < 0) return 0;
            std::memcpy(PyArray_BYTES(as_array(result.get())), total, static_cast<size_t>(sum().loop->itemsize()));
        } else {
            PyObject* made = nullptr;
            const int status = sum_array(a, walk, axes, means, &made);
            if (status <= 0) return status;
            result = Ref::steal(made);
        }
        divide_all(result.get(), n - call.ddof);
        PyArrayObject* r = as_array(result.get());
        if (call.moment == Moment::Deviation)
            (wide() ? take_roots<double> : take_roots<float>)(PyArray_BYTES(r), PyArray_SIZE(r));
        return 1;
    }

    // One line of elements, without an array of their differences. Any thread.
    int sum_line(const char* from, npy_intp n, npy_intp stride, const char* mean, char* total) const {
        alignas(64) char block[kMeanBlock * sizeof(double)];
        BlockReduction sums(*sum().loop, nullptr, n);
        for (npy_intp start = 0; start < n; start += kMeanBlock) {
            const npy_intp count = std::min(kMeanBlock, n - start);
            to_sum()(block, from + start * stride, stride, count);
            (wide() ? square_differences<double> : square_differences<float>)(block, mean, 0, count);
            if (sums.add(block, count) < 0) return -1;
        }
        sums.finish(total);
        return 0;
    }

    // Of all elements of one line: the mean, and then in its place the variance or the deviation.
    bool record_variance(TapeBuilder& tape, const TapeValue& x, TapeValue& result) const {
        if (x.kind != TapeValue::Block || x.ndim != 1 || !x.contiguous() || x.dims[0] <= call.ddof) return false;
        const int by_blocks = BlockReduction::available(*sum().loop);
        if (by_blocks < 0) PyErr_Clear();
        TapeValue mean;
        if (by_blocks <= 0 || !record_reduction(tape, call.sum, x, true, mean) || mean.kind == TapeValue::None)
            return false;
        result = tape.like_new(mean);
        TapeCall deviate;
        deviate.block = deviate_line;
        deviate.self = this;
        deviate.n = x.dims[0];
        deviate.places = {TapeBuilder::place_of(x), TapeBuilder::place_of(mean), TapeBuilder::place_of(result)};
        return tape.call_block(std::move(deviate));
    }

    static bool deviate_line(const TapeCall& made, TapeCell* r, TapeJournal&) {
        const auto& step = *static_cast<const MomentStep*>(made.self);
        char* const out = made.operands[2].find(r);
        const int before = all_fp_errors();
        if (PYOP_UNLIKELY(before != 0)) clear_all_fp_errors();
        const bool done = step.sum_line(made.operands[0].find(r), made.n, PyDataType_ELSIZE(step.sum().in),
                                        made.operands[1].find(r), out) == 0;
        divide_sums(out, 1, made.n - step.call.ddof, step.wide());
        if (step.call.moment == Moment::Deviation) (step.wide() ? take_roots<double> : take_roots<float>)(out, 1);
        if (PYOP_UNLIKELY(all_fp_errors() != 0)) {  // NumPy will say which
            clear_all_fp_errors();
            return false;
        }
        if (PYOP_UNLIKELY(before != 0)) std::feraiseexcept(before);
        return done;
    }

    // The squares of the differences in an array as NumPy lays it out, then its sums.
    int sum_array(PyArrayObject* a, const ReductionWalk& walk, uint32_t axes, const char* means,
                  PyObject** made) const {
        if (!PyArray_IS_C_CONTIGUOUS(a) && !PyArray_IS_F_CONTIGUOUS(a) && PyArray_NDIM(a) > 1) return 0;
        Ref differences = Ref::steal(PyArray_NewLikeArray(
            a, NPY_KEEPORDER, reinterpret_cast<PyArray_Descr*>(Py_NewRef(sum().loop->dtype())), 0));
        if (!differences) return -1;
        {
            const DetachScope detached(walk.size >= kReleaseElements);
            fill_differences(a, walk, means, PyArray_BYTES(as_array(differences.get())));
        }
        if (all_fp_errors()) {
            clear_all_fp_errors();
            return 0;
        }
        return squares.run(as_array(differences.get()), axes, made);
    }

    void fill_differences(PyArrayObject* a, const ReductionWalk& walk, const char* means, char* to) const {
        npy_intp at[ReductionWalk::kMaxDims] = {};
        const char* from = PyArray_BYTES(a);
        const npy_intp line = walk.dims[0] * sum().loop->itemsize();
        // The dimensions of a contiguous array, innermost first, follow each other in memory, and so do the lines.
        for (;;) {
            to_sum()(to, from, walk.in_strides[0], walk.dims[0]);
            (wide() ? square_differences<double> : square_differences<float>)(to, means, walk.out_strides[0],
                                                                              walk.dims[0]);
            to += line;
            int d = 1;
            for (; d < walk.ndim; ++d) {
                from += walk.in_strides[d];
                means += walk.out_strides[d];
                if (++at[d] < walk.dims[d]) break;
                from -= walk.in_strides[d] * walk.dims[d];
                means -= walk.out_strides[d] * walk.dims[d];
                at[d] = 0;
            }
            if (d == walk.ndim) return;
        }
    }

  public:
    Convert same_ = nullptr;
};

}  // namespace

void divide_sums(char* data, npy_intp n, npy_intp by, bool wide) {
    (wide ? divide<double> : divide<float>)(data, n, by);
}

int read_moment_call(const Rewrite& r, uint32_t i, MomentCall& call) {
    const PyNode& node = r.g.node_as<PyNode>(i);
    const auto* found = function_table<kMoments>().find(node.fn());
    if (!found || !is_plain_call(node) || node.n_outputs() != 1) return 0;
    const bool is_mean = found->entry == Moment::Mean, is_average = found->name == "average";
    std::span<const std::string_view> parameters = kVarParameters;
    if (is_mean) parameters = kMeanParameters;
    if (is_average) parameters = kAverageParameters;
    CallArguments given;
    if (!given.bind(node, parameters) || (is_average && !given[2].absent_or(Py_None))) return 0;
    const size_t at_keepdims = is_mean && !is_average ? 4 : 5;
    const int keepdims = flag_argument(given[at_keepdims], false);
    if (given[0].input < 0 || given[1].input >= 0 || keepdims < 0 || !given[3].absent_or(Py_None) ||
        !given[at_keepdims + 2].absent_or(Py_True))
        return 0;
    PyArray_Descr* dtype = builtin_dtype(r.g, node.inputs()[static_cast<size_t>(given[0].input)]);
    if (!dtype || !dtype_argument(given[2], call.wanted)) return 0;
    if (!call.wanted && (PyTypeNum_ISINTEGER(dtype->type_num) || dtype->type_num == NPY_BOOL)) {
        call.wanted = PyArray_DescrFromType(NPY_DOUBLE);
        Py_DECREF(call.wanted);  // lives for ever
    }
    call.sum.input = static_cast<size_t>(given[0].input);
    call.moment = found->entry;
    call.name = found->name;
    if (!call.sum.axis.read(given[1].fixed ? given[1].fixed : Py_None)) return 0;
    if (!is_mean && given[4].given()) {
        if (!given[4].fixed || !PyLong_CheckExact(given[4].fixed)) return 0;
        int overflow;
        const long ddof = PyLong_AsLongAndOverflow(given[4].fixed, &overflow);
        if (overflow || ddof < 0 || ddof > 1'000'000) return 0;
        call.ddof = ddof;
    }
    Ref add = Ref::steal(find_below_numpy("add"));
    if (!add) return 0;
    const int status = call.sum.reduction.make(add.get(), dtype, call.wanted);
    if (status <= 0) return status;
    const int total = call.sum.reduction.loop->dtype()->type_num;
    if (total != NPY_DOUBLE && total != NPY_FLOAT) return 0;
    call.sum.reduction.keepdims = keepdims;
    call.sum.ufunc = "add";
    call.sum.own_loop = true;
    call.sum.found = true;
    return 0;
}

int make_mean_step(const Rewrite& r, uint32_t i, std::unique_ptr<NativeStep>& step) {
    auto made = std::make_unique<MomentStep>(Fallback::of_node(r.g, i));
    if (read_moment_call(r, i, made->call) < 0) return -1;
    const MomentCall& call = made->call;
    if (!call.sum.found) return 0;
    Ref add = Ref::steal(find_below_numpy("add"));
    PyArray_Descr* total = call.sum.reduction.loop->dtype();
    const int status = made->squares.make(add.get(), total, call.wanted ? total : nullptr);
    if (status <= 0) return status;
    made->squares.keepdims = call.sum.reduction.keepdims;
    made->same_ = find_convert(total->type_num, total->type_num);
    made->text = std::string(call.name) + " along axes, NumPy's loop of add";
    step = std::move(made);
    return 0;
}

}  // namespace pyop
