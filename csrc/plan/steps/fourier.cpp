// plan/steps/fourier.cpp: compute np.fft's transforms by the ufuncs with core dimensions that NumPy calls.
//
// What lies in another order than C's, and sizes of zero, are left to the function; so is what raises.
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "array/memory/pool.h"
#include "plan/steps/call_arguments.h"
#include "plan/steps/steps.h"

namespace pyop {

namespace {

enum class FourierKind { Complex, ToReal, FromReal };
struct Transform {
    FourierKind kind;
    bool forward;
    int n_axes;  // 0: all
};
constexpr Named<Transform> kTransforms[] = {
    {"fft.fft", {FourierKind::Complex, true, 1}},    {"fft.ifft", {FourierKind::Complex, false, 1}},
    {"fft.rfft", {FourierKind::FromReal, true, 1}},  {"fft.irfft", {FourierKind::ToReal, false, 1}},
    {"fft.fft2", {FourierKind::Complex, true, 2}},   {"fft.ifft2", {FourierKind::Complex, false, 2}},
    {"fft.rfft2", {FourierKind::FromReal, true, 2}}, {"fft.fftn", {FourierKind::Complex, true, 0}},
    {"fft.ifftn", {FourierKind::Complex, false, 0}}, {"fft.rfftn", {FourierKind::FromReal, true, 0}},
};
constexpr std::string_view kOfOne[] = {"a", "n", "axis", "norm", "out"};
constexpr std::string_view kOfMany[] = {"a", "s", "axes", "norm", "out"};

enum class Norm { Backward, Ortho, Forward };

// The ufuncs of numpy.fft._pocketfft_umath, found once.
struct Ufuncs {
    PyObject *fft = nullptr, *ifft = nullptr, *even = nullptr, *odd = nullptr, *irfft = nullptr, *names = nullptr;
};
const Ufuncs* ufuncs() {
    static const Ufuncs* known = nullptr;
    if (known) return known;
    auto found = std::make_unique<Ufuncs>();
    const auto find = [](const char* name) { return find_below_numpy(std::string("fft._pocketfft_umath.") + name); };
    found->fft = find("fft");
    found->ifft = find("ifft");
    found->even = find("rfft_n_even");
    found->odd = find("rfft_n_odd");
    found->irfft = find("irfft");
    found->names = Py_BuildValue("(ss)", "axes", "out");
    if (!found->fft || !found->ifft || !found->even || !found->odd || !found->irfft || !found->names) {
        PyErr_Clear();
        return nullptr;
    }
    if (!known) known = found.release();
    return known;
}

class FourierStep final : public NativeStep {
  public:
    using NativeStep::NativeStep;

    int run(PyObject* const* inputs, PyObject** results, const StepContext&) const override {
        if (!is_exact_array(inputs[0]) || PyArray_DESCR(as_array(inputs[0])) != dtype) return 0;
        PyArrayObject* first = as_array(inputs[0]);
        if (PyArray_NDIM(first) != ndim || (ndim > 1 && !PyArray_IS_C_CONTIGUOUS(first))) return 0;
        Ref made = Ref::borrow(inputs[0]);
        FourierKind kind = transform.kind;
        for (size_t k = axes.size(); k-- > 0; kind = FourierKind::Complex) {
            made = along(as_array(made.get()), axes[k], kind);
            if (made) continue;
            if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)) return -1;
            PyErr_Clear();
            return 0;
        }
        results[0] = made.release();
        return 1;
    }
    std::string describe(size_t) const override { return text; }

    Transform transform{};
    PyArray_Descr* dtype = nullptr;  // NumPy's own, which lives for ever
    int ndim = 0;
    std::vector<int> axes;           // the last one first
    npy_intp size = 0;               // n=, 0 if it is not given
    Norm norm = Norm::Backward;
    std::string text;

  private:
    // Null with or without an error.
    Ref along(PyArrayObject* a, int axis, FourierKind kind) const {
        const Ufuncs* const f = ufuncs();
        npy_intp n = size > 0 ? size : PyArray_DIM(a, axis);
        if (kind == FourierKind::ToReal && size <= 0) n = (n - 1) * 2;
        if (!f || n < 1) return {};
        npy_intp dims[NPY_MAXDIMS];
        std::copy_n(PyArray_DIMS(a), ndim, dims);
        dims[axis] = kind == FourierKind::FromReal ? n / 2 + 1 : n;
        const bool single = PyArray_TYPE(a) == NPY_FLOAT || PyArray_TYPE(a) == NPY_CFLOAT;
        PyArray_Descr* made_of = PyArray_DescrFromType(
            kind == FourierKind::ToReal ? (single ? NPY_FLOAT : NPY_DOUBLE) : (single ? NPY_CFLOAT : NPY_CDOUBLE));
        Py_DECREF(made_of);  // lives for ever
        Ref out = Ref::steal(pooled_array_new(made_of, ndim, dims, nullptr)), factor = factor_new(n, single);
        Ref where = Ref::steal(Py_BuildValue("[(i),(),(i)]", axis, axis));
        if (!out || !factor || !where) return {};
        PyObject* ufunc = kind == FourierKind::ToReal     ? f->irfft
                          : kind == FourierKind::FromReal ? (n % 2 == 0 ? f->even : f->odd)
                          : transform.forward             ? f->fft
                                                          : f->ifft;
        PyObject* arguments[] = {as_object(a), factor.get(), where.get(), out.get()};
        Ref result = Ref::steal(PyObject_Vectorcall(ufunc, arguments, 2, f->names));
        return result && result.get() == out.get() ? std::move(out) : Ref();
    }

    // What NumPy multiplies by, in the precision in which it does.
    Ref factor_new(npy_intp n, bool single) const {
        const bool none = norm == (transform.forward ? Norm::Backward : Norm::Forward);
        if (none) return Ref::steal(PyLong_FromLong(1));
        double wide = norm == Norm::Ortho ? 1.0 / std::sqrt(static_cast<double>(n)) : 1.0 / static_cast<double>(n);
        float narrow = norm == Norm::Ortho ? 1.0F / std::sqrt(static_cast<float>(n)) : 1.0F / static_cast<float>(n);
        PyArray_Descr* descr = PyArray_DescrFromType(single ? NPY_FLOAT : NPY_DOUBLE);
        Ref made = Ref::steal(PyArray_Scalar(single ? static_cast<void*>(&narrow) : &wide, descr, nullptr));
        Py_DECREF(descr);
        return made;
    }
};

// An axis of `ndim` counted from the front; -1 if it is none.
int read_transform_axis(PyObject* given, int ndim) {
    if (!given || !PyLong_CheckExact(given)) return -1;
    int overflow;
    const long axis = PyLong_AsLongAndOverflow(given, &overflow);
    if (overflow || axis < -ndim || axis >= ndim) return -1;
    return static_cast<int>(axis < 0 ? axis + ndim : axis);
}

bool read_transform_axes(const CallArguments::Item& item, const Transform& transform, int ndim,
                         std::vector<int>& axes) {
    if (transform.n_axes == 1) {
        axes.push_back(item.given() ? read_transform_axis(item.fixed, ndim) : ndim - 1);
    } else if (!item.given() || item.fixed == Py_None) {
        const int n = transform.n_axes ? transform.n_axes : ndim;
        if (item.fixed == Py_None && transform.n_axes) return false;
        for (int k = ndim - n; k < ndim; ++k) axes.push_back(k);
    } else if (item.fixed && PyTuple_CheckExact(item.fixed)) {
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(item.fixed); ++k)
            axes.push_back(read_transform_axis(PyTuple_GET_ITEM(item.fixed, k), ndim));
    }
    for (const int axis : axes)
        if (axis < 0) return false;
    return !axes.empty();
}

bool read_norm(const CallArguments::Item& item, Norm& norm) {
    if (item.absent_or(Py_None)) return true;
    if (!item.fixed || !PyUnicode_CheckExact(item.fixed)) return false;
    const auto is = [&](const char* name) { return PyUnicode_CompareWithASCIIString(item.fixed, name) == 0; };
    norm = is("ortho") ? Norm::Ortho : is("forward") ? Norm::Forward : Norm::Backward;
    return norm != Norm::Backward || is("backward");
}

}  // namespace

int make_fourier_step(const Rewrite& r, uint32_t i, std::unique_ptr<NativeStep>& step) {
    const PyNode& node = r.g.node_as<PyNode>(i);
    const auto* found = function_table<kTransforms>().find(node.fn());
    if (!found || !is_plain_call(node) || node.n_outputs() != 1 || node.inputs().size() != 1) return 0;
    const Transform transform = found->entry;
    CallArguments given;
    if (!given.bind(node, transform.n_axes == 1 ? std::span<const std::string_view>(kOfOne) : kOfMany)) return 0;
    if (given[0].input < 0 || !given[4].absent_or(Py_None)) return 0;
    PyArray_Descr* dtype = builtin_dtype(r.g, node.inputs()[0]);
    const int ndim = r.g.spec(node.inputs()[0]).ndim;
    if (!dtype || ndim < std::max(transform.n_axes, 1)) return 0;
    const bool real = dtype->type_num == NPY_DOUBLE || dtype->type_num == NPY_FLOAT;
    const bool complex = dtype->type_num == NPY_CDOUBLE || dtype->type_num == NPY_CFLOAT;
    if (transform.kind == FourierKind::FromReal ? !real : !real && !complex) return 0;
    auto made = std::make_unique<FourierStep>(Fallback::of_node(r.g, i));
    made->transform = transform;
    made->dtype = dtype;
    made->ndim = ndim;
    if (!read_transform_axes(given[2], transform, ndim, made->axes) || !read_norm(given[3], made->norm)) return 0;
    // In which order the other axes come is another matter in other versions of NumPy.
    if (transform.kind == FourierKind::FromReal && made->axes.size() > 2) return 0;
    if (!given[1].absent_or(Py_None)) {
        if (transform.n_axes != 1 || !given[1].fixed || !PyLong_CheckExact(given[1].fixed)) return 0;
        made->size = PyLong_AsSsize_t(given[1].fixed);
        if (made->size <= 0) {
            PyErr_Clear();
            return 0;
        }
    }
    made->text = "NumPy's ufuncs of " + std::string(found->name);
    step = std::move(made);
    return 0;
}

}  // namespace pyop
