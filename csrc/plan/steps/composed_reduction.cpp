// plan/steps/composed_reduction.cpp: compute functions of NumPy that are a reduction and little else: np.ptp,
// np.trace, the nan-functions, np.linalg.norm along an axis.
//
// They follow what NumPy does step by step, on arrays laid out as its own are, so that every rounding is the same.
#include <cmath>
#include <limits>

#include "array/loop/fp_flags.h"
#include "plan/steps/call_arguments.h"
#include "plan/steps/reduce.h"
#include "plan/steps/steps.h"

namespace pyop {

namespace {

enum class ComposedKind { NanSum, NanMean, NanExtreme, Range, Trace, NormOfSquares, NormOfSizes, LargestSize };

struct Composed {
    ComposedKind kind;
    const char *ufunc, *second;
    std::span<const std::string_view> parameters;
};
constexpr std::string_view kNanSum[] = {"a", "axis", "dtype", "out", "keepdims", "initial", "where"};
constexpr std::string_view kNanExtreme[] = {"a", "axis", "out", "keepdims", "initial", "where"};
constexpr std::string_view kNanMean[] = {"a", "axis", "dtype", "out", "keepdims", "*", "where"};
constexpr std::string_view kRange[] = {"a", "axis", "out", "keepdims"};
constexpr std::string_view kTrace[] = {"a", "offset", "axis1", "axis2", "dtype", "out"};
constexpr std::string_view kComposedNorm[] = {"x", "ord", "axis", "keepdims"};

constexpr Named<Composed> kComposed[] = {
    {"nansum", {ComposedKind::NanSum, "add", nullptr, kNanSum}},
    {"nanprod", {ComposedKind::NanSum, "multiply", nullptr, kNanSum}},
    {"nanmax", {ComposedKind::NanExtreme, "fmax", nullptr, kNanExtreme}},
    {"nanmin", {ComposedKind::NanExtreme, "fmin", nullptr, kNanExtreme}},
    {"nanmean", {ComposedKind::NanMean, "add", "add", kNanMean}},
    {"ptp", {ComposedKind::Range, "maximum", "minimum", kRange}},
    {"trace", {ComposedKind::Trace, "add", nullptr, kTrace}},
    {"linalg.norm", {ComposedKind::NormOfSquares, "add", nullptr, kComposedNorm}},
};

PyArray_Descr* builtin(int type) {
    PyArray_Descr* d = PyArray_DescrFromType(type);
    Py_DECREF(d);  // lives for ever
    return d;
}

bool is_contiguous(PyArrayObject* a) { return PyArray_IS_C_CONTIGUOUS(a) || PyArray_IS_F_CONTIGUOUS(a); }

// What is done to arrays of float or double, whose elements lie side by side.
template <typename T>
struct Elements {
    static T* of(const Ref& array) { return reinterpret_cast<T*>(PyArray_BYTES(as_array(array.get()))); }

    static bool any_nan(const T* x, npy_intp n) {
        bool found = false;
        for (npy_intp i = 0; i < n; ++i) found |= std::isnan(x[i]);
        return found;
    }
    static void replace_nans(T* x, npy_intp n, T by) {
        for (npy_intp i = 0; i < n; ++i) x[i] = std::isnan(x[i]) ? by : x[i];
    }
    static void square(T* to, const T* x, npy_intp n) {
        for (npy_intp i = 0; i < n; ++i) to[i] = x[i] * x[i];
    }
    static void size(T* to, const T* x, npy_intp n) {
        for (npy_intp i = 0; i < n; ++i) to[i] = std::fabs(x[i]);
    }
    static void root(T* x, npy_intp n) {
        for (npy_intp i = 0; i < n; ++i) x[i] = std::sqrt(x[i]);
    }
    // False if one is divided by zero.
    static bool divide(T* x, const npy_intp* by, npy_intp n) {
        bool all = true;
        for (npy_intp i = 0; i < n; ++i) {
            all &= by[i] != 0;
            x[i] = static_cast<T>(static_cast<double>(x[i]) / static_cast<double>(by[i]));
        }
        return all;
    }
};

class ComposedReduction final : public NativeStep {
  public:
    using NativeStep::NativeStep;

    int run(PyObject* const* inputs, PyObject** results, const StepContext&) const override {
        PyObject* x = inputs[input];
        if (!is_exact_array(x) || PyArray_DESCR(as_array(x)) != first.in) return 0;
        const int status = type == NPY_DOUBLE  ? of_floats<double>(as_array(x), results)
                           : type == NPY_FLOAT ? of_floats<float>(as_array(x), results)
                                               : of_others(as_array(x), results);
        if (status > 0 && all_fp_errors()) {  // NumPy will say which
            clear_all_fp_errors();
            Py_CLEAR(results[0]);
            return 0;
        }
        return status;
    }
    std::string describe(size_t) const override { return text; }

    ComposedKind kind = ComposedKind::NanSum;
    int type = NPY_NOTYPE;
    size_t input = 0;
    AxisSet axis;
    int offset = 0, axis1 = 0, axis2 = 1;  // of a diagonal
    double nan_becomes = 0;
    Reduction first, second;
    StridedLoop subtract;
    std::string text;

  private:
    // 1 with the result of `r` over the axes, else 0 or -1.
    int reduce(const Reduction& r, PyArrayObject* a, Ref& result) const {
        uint32_t axes;
        if (!axis.bits(PyArray_NDIM(a), axes)) return 0;
        PyObject* made = nullptr;
        const int status = r.run(a, axes, &made);
        if (status > 0) result = Ref::steal(made);
        return status;
    }

    int of_others(PyArrayObject* a, PyObject** results) const {
        Ref result;
        int status = 0;
        if (kind == ComposedKind::NanSum || kind == ComposedKind::NanExtreme)
            status = reduce(first, a, result);
        else if (kind == ComposedKind::Range)
            status = range(a, result);
        else if (kind == ComposedKind::Trace)
            status = trace(a, result);
        if (status > 0) results[0] = result.release();
        return status;
    }

    template <typename T>
    int of_floats(PyArrayObject* a, PyObject** results) const {
        Ref result;
        int status = 0;
        switch (kind) {
            case ComposedKind::NanSum:
                status = nan_sum<T>(a, result);
                break;
            case ComposedKind::NanMean:
                status = nan_mean<T>(a, result);
                break;
            case ComposedKind::NanExtreme:
                status = reduce(first, a, result);
                if (status > 0 && Elements<T>::any_nan(Elements<T>::of(result), PyArray_SIZE(as_array(result.get()))))
                    return 0;  // with a warning
                break;
            case ComposedKind::Range:
                status = range(a, result);
                break;
            case ComposedKind::Trace:
                status = trace(a, result);
                break;
            default:
                status = norm<T>(a, result);
        }
        if (status > 0) results[0] = result.release();
        return status;
    }

    // NumPy sums a copy in the order of memory with numbers for the NaNs. If nothing of that would show, `a` itself.
    template <typename T>
    Ref without_nans(PyArrayObject* a) const {
        const npy_intp n = PyArray_SIZE(a);
        const bool as_it_is = is_contiguous(a) && PyArray_ISALIGNED(a);
        if (as_it_is && !Elements<T>::any_nan(reinterpret_cast<const T*>(PyArray_BYTES(a)), n))
            return Ref::borrow(as_object(a));
        Ref copy = Ref::steal(PyArray_NewCopy(a, NPY_KEEPORDER));
        if (copy) Elements<T>::replace_nans(Elements<T>::of(copy), n, static_cast<T>(nan_becomes));
        return copy;
    }

    template <typename T>
    int nan_sum(PyArrayObject* a, Ref& result) const {
        Ref numbers = without_nans<T>(a);
        return numbers ? reduce(first, as_array(numbers.get()), result) : -1;
    }

    template <typename T>
    int nan_mean(PyArrayObject* a, Ref& result) const {
        if (!is_contiguous(a) || !PyArray_ISALIGNED(a)) return 0;
        Ref counted = Ref::steal(PyArray_NewLikeArray(a, NPY_KEEPORDER, PyArray_DescrFromType(NPY_BOOL), 0));
        if (!counted) return -1;
        const T* x = reinterpret_cast<const T*>(PyArray_BYTES(a));
        char* counts = PyArray_BYTES(as_array(counted.get()));
        for (npy_intp i = 0; i < PyArray_SIZE(a); ++i) counts[i] = !std::isnan(x[i]);
        int status = nan_sum<T>(a, result);
        Ref numbers;
        if (status > 0) status = reduce(second, as_array(counted.get()), numbers);
        if (status <= 0) return status;
        PyArrayObject *totals = as_array(result.get()), *n = as_array(numbers.get());
        if (all_fp_errors()) clear_all_fp_errors();
        return Elements<T>::divide(Elements<T>::of(result), static_cast<const npy_intp*>(PyArray_DATA(n)),
                                   PyArray_SIZE(totals));
    }

    int range(PyArrayObject* a, Ref& result) const {
        Ref least;
        int status = reduce(first, a, result);
        if (status > 0) status = reduce(second, a, least);
        if (status <= 0) return status;
        // Both came out of the same walk, so they lie alike.
        char* const data[] = {PyArray_BYTES(as_array(result.get())), PyArray_BYTES(as_array(least.get())),
                              PyArray_BYTES(as_array(result.get()))};
        const npy_intp strides[] = {subtract.itemsize(0), subtract.itemsize(1), subtract.itemsize(2)};
        const npy_intp n = PyArray_SIZE(as_array(result.get()));
        if (all_fp_errors()) clear_all_fp_errors();
        if (n > 0 && subtract(data, n, strides) < 0) return 0;
        if (subtract.ignores_flags() && all_fp_errors()) clear_all_fp_errors();
        return 1;
    }

    int trace(PyArrayObject* a, Ref& result) const {
        if (PyArray_NDIM(a) < 2) return 0;
        Ref diagonal = Ref::steal(PyArray_Diagonal(a, offset, axis1, axis2));
        if (!diagonal || !is_exact_array(diagonal.get())) {
            PyErr_Clear();
            return 0;
        }
        return reduce(first, as_array(diagonal.get()), result);
    }

    template <typename T>
    int norm(PyArrayObject* a, Ref& result) const {
        if (!is_contiguous(a) || !PyArray_ISALIGNED(a) || PyArray_SIZE(a) == 0) return 0;
        Ref sizes = Ref::steal(PyArray_NewLikeArray(a, NPY_KEEPORDER, nullptr, 0));
        if (!sizes) return -1;
        if (all_fp_errors()) clear_all_fp_errors();
        const T* x = reinterpret_cast<const T*>(PyArray_BYTES(a));
        (kind == ComposedKind::NormOfSquares ? Elements<T>::square : Elements<T>::size)(Elements<T>::of(sizes), x,
                                                                                        PyArray_SIZE(a));
        if (all_fp_errors()) return 0;
        const int status = reduce(first, as_array(sizes.get()), result);
        if (status > 0 && kind == ComposedKind::NormOfSquares)
            Elements<T>::root(Elements<T>::of(result), PyArray_SIZE(as_array(result.get())));
        return status;
    }
};

bool read_int_argument(const CallArguments::Item& item, int& value) {
    if (!item.given()) return true;
    if (!item.fixed || !PyLong_CheckExact(item.fixed)) return false;
    int overflow;
    const long number = PyLong_AsLongAndOverflow(item.fixed, &overflow);
    value = static_cast<int>(number);
    return !overflow && std::abs(number) < 1'000'000;
}

// Which norm ord= asks for, along one axis.
bool read_order(const CallArguments::Item& order, ComposedKind& kind) {
    if (order.absent_or(Py_None)) return true;
    if (!order.fixed || !(PyLong_CheckExact(order.fixed) || PyFloat_CheckExact(order.fixed))) return false;
    const double value = PyFloat_AsDouble(order.fixed);
    kind = value == 1          ? ComposedKind::NormOfSizes
           : std::isinf(value) ? ComposedKind::LargestSize
                               : ComposedKind::NormOfSquares;
    return value == 1 || value == 2 || value == std::numeric_limits<double>::infinity();
}

}  // namespace

int make_composed_reduction(const Rewrite& r, uint32_t i, std::unique_ptr<NativeStep>& step) {
    const PyNode& node = r.g.node_as<PyNode>(i);
    const auto* found = function_table<kComposed>().find(node.fn());
    if (!found || !is_plain_call(node) || node.n_outputs() != 1) return 0;
    const Composed& function = found->entry;
    CallArguments given;
    if (!given.bind(node, function.parameters)) return 0;
    const auto argument = [&](std::string_view name) {
        for (size_t k = 0; k < function.parameters.size(); ++k)
            if (function.parameters[k] == name) return given[k];
        return CallArguments::Item{};
    };
    const CallArguments::Item axis = argument("axis");
    const int keepdims = flag_argument(argument("keepdims"), false);
    if (given[0].input < 0 || axis.input >= 0 || keepdims < 0 || !argument("out").absent_or(Py_None) ||
        !argument("where").absent_or(Py_True) || argument("initial").given())
        return 0;
    PyArray_Descr* dtype = builtin_dtype(r.g, node.inputs()[static_cast<size_t>(given[0].input)]);
    PyArray_Descr* wanted;
    if (!dtype || !dtype_argument(argument("dtype"), wanted)) return 0;

    auto made = std::make_unique<ComposedReduction>(Fallback::of_node(r.g, i));
    made->kind = function.kind;
    made->type = dtype->type_num;
    made->input = static_cast<size_t>(given[0].input);
    const bool real = made->type == NPY_DOUBLE || made->type == NPY_FLOAT;
    const bool whole = PyTypeNum_ISINTEGER(made->type) || made->type == NPY_BOOL;
    std::string_view ufunc = function.ufunc;
    if (!made->axis.read(axis.fixed ? axis.fixed : Py_None)) return 0;
    switch (made->kind) {
        case ComposedKind::NanSum:
            made->nan_becomes = ufunc == "add" ? 0 : 1;
            if (!real && !whole) return 0;
            break;
        case ComposedKind::NanMean:
            if (!real || wanted) return 0;
            break;
        case ComposedKind::NanExtreme:
        case ComposedKind::Range:
            if (!real && !whole) return 0;
            break;
        case ComposedKind::Trace: {
            if (!read_int_argument(argument("offset"), made->offset) ||
                !read_int_argument(argument("axis1"), made->axis1) ||
                !read_int_argument(argument("axis2"), made->axis2))
                return 0;
            made->axis.all = false;
            made->axis.n = 1;
            made->axis.axis[0] = -1;
            break;
        }
        default:
            if (!real || made->axis.all || made->axis.n != 1 || !read_order(argument("ord"), made->kind)) return 0;
            if (made->kind == ComposedKind::LargestSize) ufunc = "maximum";
    }
    Ref reducing = Ref::steal(find_below_numpy(ufunc));
    if (!reducing) return 0;
    int status = made->first.make(reducing.get(), dtype, wanted);
    if (status > 0 && function.second) {
        Ref second = Ref::steal(find_below_numpy(function.second));
        const bool counts = made->kind == ComposedKind::NanMean;
        status = second ? made->second.make(second.get(), counts ? builtin(NPY_BOOL) : dtype,
                                            counts ? builtin(NPY_INTP) : nullptr)
                        : 0;
    }
    if (status > 0 && made->kind == ComposedKind::Range) {
        Ref subtract = Ref::steal(find_below_numpy("subtract"));
        PyObject* const kinds[] = {reinterpret_cast<PyObject*>(dtype), reinterpret_cast<PyObject*>(dtype)};
        status = subtract ? made->subtract.resolve(subtract.get(), kinds, 2) : 0;
        // Over what the reductions return.
        if (status > 0 && (made->first.loop->dtype() != dtype || made->subtract.dtype(2) != dtype)) status = 0;
    }
    if (status <= 0) return status;
    // What follows the reduction is done in its dtype.
    const bool more = made->kind != ComposedKind::NanSum && made->kind != ComposedKind::Trace;
    if (more && real && made->first.loop->dtype() != dtype) return 0;
    made->first.keepdims = made->second.keepdims = keepdims;
    made->text = std::string(found->name) + " along axes, NumPy's loop of " + std::string(ufunc);
    step = std::move(made);
    return 0;
}

}  // namespace pyop
