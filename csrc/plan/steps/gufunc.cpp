// plan/steps/gufunc.cpp: ufuncs with core dimensions, and the functions of linalg that wrap one, as native steps.
#include "array/loop/core_loop.h"
#include "plan/steps/call_arguments.h"
#include "plan/steps/steps.h"

#define NO_IMPORT_UFUNC  // only the struct is used
#include <numpy/ufuncobject.h>

namespace pyop {

namespace {

// A function of linalg: the ufunc it calls for float64 and complex128, after checks that the ufunc's own core
// dimensions make too. Failure is the processor's "invalid", which NumPy turns into LinAlgError.
struct Wrapped {
    const char* ufunc;
    const char* for_vector;  // if the last argument has one dimension
    int n_inputs;
    CoreLoop::Errors errors;
};
constexpr Named<Wrapped> kWrapped[] = {
    {"linalg.solve", {"solve", "solve1", 2, CoreLoop::Errors::Invalid}},
    {"linalg.inv", {"inv", nullptr, 1, CoreLoop::Errors::Invalid}},
    {"linalg.det", {"det", nullptr, 1, CoreLoop::Errors::All}},
    {"linalg.cholesky", {"cholesky_lo", nullptr, 1, CoreLoop::Errors::Invalid}},
    {"linalg.eigvalsh", {"eigvalsh_lo", nullptr, 1, CoreLoop::Errors::Invalid}},
    {"linalg.eigh", {"eigh_lo", nullptr, 1, CoreLoop::Errors::Invalid}},
    {"linalg.slogdet", {"slogdet", nullptr, 1, CoreLoop::Errors::All}},
};

class GufuncStep final : public NativeStep {
  public:
    using NativeStep::NativeStep;

    int run(PyObject* const* inputs, PyObject** results, const StepContext&) const override {
        PyObject* arguments[StridedLoop::kMaxOperands];
        for (int i = 0; i < loop.n_inputs(); ++i) {
            arguments[i] = inputs[places[static_cast<size_t>(i)]];
            if (least_ndim && (!is_exact_array(arguments[i]) || PyArray_NDIM(as_array(arguments[i])) < least_ndim))
                return 0;
        }
        if (has_vector) {
            PyObject* last = arguments[loop.n_inputs() - 1];
            if (is_exact_array(last) && PyArray_NDIM(as_array(last)) == 1)
                return vector_loop.run(arguments, results, errors);
        }
        return loop.run(arguments, results, errors);
    }
    std::string describe(size_t) const override { return text; }

    CoreLoop loop, vector_loop;
    bool has_vector = false;
    int least_ndim = 0;
    CoreLoop::Errors errors = CoreLoop::Errors::All;
    std::array<size_t, StridedLoop::kMaxOperands> places{};
    std::string text;
};

Ref inner_ufunc(const char* name) {
    Ref module = Ref::steal(PyImport_ImportModule("numpy.linalg._umath_linalg"));
    Ref found = module ? Ref::steal(PyObject_GetAttrString(module.get(), name)) : Ref();
    if (!found) PyErr_Clear();
    return found;
}

}  // namespace

int make_gufunc_step(const Rewrite& r, uint32_t i, std::unique_ptr<NativeStep>& step) {
    const PyNode& node = r.g.node_as<PyNode>(i);
    if (!is_plain_call(node)) return 0;
    auto made = std::make_unique<GufuncStep>(Fallback::of_node(r.g, i));
    const bool direct = is_ufunc(node.fn()) && reinterpret_cast<PyUFuncObject*>(node.fn())->core_enabled;
    const auto* found = direct ? nullptr : function_table<kWrapped>().find(node.fn());
    if (!direct && !found) return 0;
    constexpr std::string_view kPositions[] = {"a", "b", "c"};
    const int n = direct ? reinterpret_cast<PyUFuncObject*>(node.fn())->nin : found->entry.n_inputs;
    CallArguments given;
    if (n > 3 || !given.bind(node, {kPositions, static_cast<size_t>(n)})) return 0;
    if (direct && node.form() && node.form()->n_keywords()) return 0;
    PyObject* dtypes[3];
    for (int k = 0; k < n; ++k) {
        const auto& item = given[static_cast<size_t>(k)];
        if (item.input < 0) return 0;
        made->places[static_cast<size_t>(k)] = static_cast<size_t>(item.input);
        dtypes[k] = reinterpret_cast<PyObject*>(builtin_dtype(r.g, node.inputs()[static_cast<size_t>(item.input)]));
        if (!dtypes[k]) return 0;
    }
    Ref ufunc = direct ? Ref::borrow(node.fn()) : inner_ufunc(found->entry.ufunc);
    if (!ufunc) return 0;
    if (!direct) {
        // float32 and integers are computed in float64 and cast.
        for (int k = 0; k < n; ++k) {
            const int type = reinterpret_cast<PyArray_Descr*>(dtypes[k])->type_num;
            if ((type != NPY_DOUBLE && type != NPY_CDOUBLE) || dtypes[k] != dtypes[0]) return 0;
        }
        made->errors = found->entry.errors;
        made->least_ndim = 1;
        if (found->entry.for_vector) {
            Ref vector = inner_ufunc(found->entry.for_vector);
            const int status = vector ? made->vector_loop.resolve(vector.get(), dtypes, n) : 0;
            if (status <= 0) return status;
            made->has_vector = true;
        }
    }
    const int status = made->loop.resolve(ufunc.get(), dtypes, n);
    if (status <= 0) return status;
    if (static_cast<uint32_t>(made->loop.n_outputs()) != node.n_outputs()) return 0;
    made->text = std::string("NumPy's loop of ") + reinterpret_cast<PyUFuncObject*>(ufunc.get())->name;
    step = std::move(made);
    return 0;
}

}  // namespace pyop
