// plan/steps/gufunc.cpp: run ufuncs with core dimensions, and the functions of linalg that wrap one, as native steps.
#include <cfenv>

#include "array/contract/match.h"
#include "array/loop/core_loop.h"
#include "array/loop/fp_flags.h"
#include "array/loop/small_product.h"
#include "array/native/native_kernel.h"
#include "plan/steps/call_arguments.h"
#include "plan/steps/steps.h"
#include "plan/tape/tape_builder.h"

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
    {"linalg.svd", {"svd_f", nullptr, 1, CoreLoop::Errors::Invalid}},
    {"linalg.svdvals", {"svd", nullptr, 1, CoreLoop::Errors::Invalid}},
};
constexpr std::string_view kSvd[] = {"a", "full_matrices", "compute_uv", "hermitian"};

// Which ufunc np.linalg.svd calls; null for another function, or where more is asked for.
const char* ufunc_of_svd(const PyNode& node, const Wrapped& wrapped, bool& is_svd) {
    is_svd = std::string_view(wrapped.ufunc).starts_with("svd");
    CallArguments given;
    if (!is_svd || !given.bind(node, kSvd) || !given[3].absent_or(Py_False)) return nullptr;
    const int full = flag_argument(given[1], true), with_vectors = flag_argument(given[2], true);
    if (full < 0 || with_vectors < 0) return nullptr;
    if (std::string_view(wrapped.ufunc) == "svd") return given[1].given() || given[2].given() ? nullptr : "svd";
    return !with_vectors ? "svd" : full ? "svd_f" : "svd_s";
}

// Ufuncs whose loops add to the flags, clear none, and set no Python error; to read the flags takes as long as half a
// product of small matrices. True: of matrices.
constexpr Named<bool> kAddFlags[] = {{"matmul", true}, {"vecdot", false}};

// As CoreLoop::run, in memory that is there. Flags stay raised for whoever runs the tape, but those of a loop that
// says by "invalid" that it failed: NumPy looks at no others.
enum class Flags : uint8_t { Add, Keep, Invalid };
template <Flags flags>
bool call_core(const TapeCall& call, TapeCell* r, TapeJournal&) {
    char* data[StridedLoop::kMaxOperands];
    for (size_t k = 0; k < call.operands.size(); ++k) data[k] = call.operands[k].find(r);
    if (flags == Flags::Add) return call.loop->call_with_core(data, call.sizes.data(), call.strides.data()) >= 0;
    const int before = all_fp_errors();
    if (PYOP_UNLIKELY(before != 0)) clear_all_fp_errors();
    const int status = call.loop->call_with_core(data, call.sizes.data(), call.strides.data());
    bool failed = status < 0;
    if (const int raised = flags == Flags::Invalid || call.loop->ignores_flags() ? all_fp_errors() : 0;
        PYOP_UNLIKELY(raised != 0)) {
        clear_all_fp_errors();
        failed |= (raised & FE_INVALID) && !call.loop->ignores_flags();
    }
    if (PYOP_UNLIKELY(before != 0)) std::feraiseexcept(before);
    if (PYOP_LIKELY(!failed && !PyErr_Occurred())) return true;
    PyErr_Clear();
    return false;
}

// A product of two small matrices.
bool call_small_product(const TapeCall& call, TapeCell* r, TapeJournal& journal) {
    char* data[3];
    for (size_t k = 0; k < 3; ++k) data[k] = call.operands[k].find(r);
    if (PYOP_LIKELY(multiply_small(call.product, call.sizes.data() + 1, call.strides.data() + 3, data))) return true;
    return call_core<Flags::Add>(call, r, journal);
}

class GufuncStep final : public NativeStep {
  public:
    using NativeStep::NativeStep;

    int run(PyObject* const* inputs, PyObject** results, const StepContext&) const override {
        PyObject* arguments[StridedLoop::kMaxOperands];
        if (native && !fit(inputs)) return 0;
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
    bool record(TapeBuilder& tape, const TapeValue* inputs, TapeValue* results) const override {
        if (!tape.with_blocks()) return false;
        TapeCall call;
        Ref arguments[StridedLoop::kMaxOperands];
        PyObject* given[StridedLoop::kMaxOperands];
        const auto n_in = static_cast<size_t>(loop.n_inputs());
        for (size_t i = 0; i < n_in; ++i) {
            const TapeValue& x = inputs[places[i]];
            if (x.kind != TapeValue::Block || !tape.readable(x) || x.ndim < least_ndim) return false;
            arguments[i] = TapeBuilder::stand_in(x);
            if (!arguments[i]) {
                PyErr_Clear();
                return false;
            }
            given[i] = arguments[i].get();
            call.places.push_back(TapeBuilder::place_of(x));
        }
        if (native && (loop.loop().may_raise() || !fit(given))) return false;
        const bool vector = has_vector && PyArray_NDIM(as_array(given[n_in - 1])) == 1;
        const CoreLoop& used = vector ? vector_loop : loop;
        CoreLoop::Ready ready;
        if (!used.make_ready(given, ready)) return false;
        for (size_t k = 0; k < ready.shapes.size(); ++k) {
            PyArray_Descr* dtype = used.loop().dtype(static_cast<int>(n_in + k));
            const std::vector<npy_intp>& shape = ready.shapes[k];
            results[k] = tape.block_new(dtype, static_cast<int>(shape.size()), shape.data());
            if (results[k].kind == TapeValue::None) return false;
            call.places.push_back(TapeBuilder::place_of(results[k]));
        }
        call.loop = &used.loop();
        call.sizes = std::move(ready.sizes);
        call.strides = std::move(ready.strides);
        const bool adds = adds_flags && !call.loop->ignores_flags();
        call.block = adds                                  ? call_core<Flags::Add>
                     : errors == CoreLoop::Errors::Invalid ? call_core<Flags::Invalid>
                                                           : call_core<Flags::Keep>;
        // The others may set a Python error.
        if (tape.anywhere() && !adds) return false;
        tape.calls_blas();
        call.product = ready.product;
        if (call.product) call.block = call_small_product;
        return tape.call_block(std::move(call));
    }
    std::string describe(size_t) const override { return text; }

    // Whether the inputs are what an op declares whose code this is. Of its results that is so then too.
    bool fit(PyObject* const* inputs) const {
        const Contract& c = *declared;
        if (c.gufunc) return true;  // the layout is all there is to it
        Bindings b(c);
        for (size_t k = 0; k < c.inputs->size(); ++k)
            if (!is_exact_array(inputs[k]) || !match((*c.inputs)[k], as_array(inputs[k]), b)) return false;
        return true;
    }

    const Contract* declared = nullptr;  // the node's
    bool native = false;                 // the node's op is compiled code
    CoreLoop loop, vector_loop;
    bool has_vector = false, adds_flags = false;
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

namespace {

// An op that is compiled code with core dimensions.
int make_native(const Rewrite& r, uint32_t i, std::unique_ptr<NativeStep>& step) {
    const PyNode& node = r.g.node_as<PyNode>(i);
    const NativeKernel& kernel = as_native_kernel(node.fn());
    if (!kernel.ready->has_core_loop || node.stateful() || node.form() || !node.contract() ||
        !node.contract()->inputs_declared || static_cast<int>(node.inputs().size()) != kernel.code->n_in)
        return 0;
    auto made = std::make_unique<GufuncStep>(Fallback::of_node(r.g, i));
    made->native = true;
    made->declared = node.contract();
    made->loop.assign(kernel.ufunc, kernel.ready->loop);
    for (size_t k = 0; k < made->places.size(); ++k) made->places[k] = k;
    made->text = "native code " + *kernel.code->name;
    step = std::move(made);
    return 0;
}

}  // namespace

int make_gufunc_step(const Rewrite& r, uint32_t i, std::unique_ptr<NativeStep>& step) {
    const PyNode& node = r.g.node_as<PyNode>(i);
    if (is_native_kernel(node.fn())) return make_native(r, i, step);
    if (!is_plain_call(node)) return 0;
    auto made = std::make_unique<GufuncStep>(Fallback::of_node(r.g, i));
    const bool direct = is_ufunc(node.fn()) && reinterpret_cast<PyUFuncObject*>(node.fn())->core_enabled;
    const auto* found = direct ? nullptr : function_table<kWrapped>().find(node.fn());
    if (!direct && !found) return 0;
    constexpr std::string_view kPositions[] = {"a", "b", "c"};
    const int n = direct ? reinterpret_cast<PyUFuncObject*>(node.fn())->nin : found->entry.n_inputs;
    CallArguments given;
    bool is_svd = false;
    const char* const of_svd = direct ? nullptr : ufunc_of_svd(node, found->entry, is_svd);
    if (is_svd ? !of_svd || !given.bind(node, kSvd) : n > 3 || !given.bind(node, {kPositions, static_cast<size_t>(n)}))
        return 0;
    if (is_svd) made->loop.set_smallest();
    if (direct && node.form() && node.form()->n_keywords()) return 0;
    PyObject* dtypes[3];
    for (int k = 0; k < n; ++k) {
        const auto& item = given[static_cast<size_t>(k)];
        if (item.input < 0) return 0;
        made->places[static_cast<size_t>(k)] = static_cast<size_t>(item.input);
        dtypes[k] = reinterpret_cast<PyObject*>(builtin_dtype(r.g, node.inputs()[static_cast<size_t>(item.input)]));
        if (!dtypes[k]) return 0;
    }
    Ref ufunc = direct ? Ref::borrow(node.fn()) : inner_ufunc(is_svd ? of_svd : found->entry.ufunc);
    if (!ufunc) return 0;
    const auto* adds_flags = direct ? function_table<kAddFlags>().find(node.fn()) : nullptr;
    made->adds_flags = adds_flags;
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
    if (adds_flags && adds_flags->entry) made->loop.set_matmul();
    if (static_cast<uint32_t>(made->loop.n_outputs()) != node.n_outputs()) return 0;
    made->text = std::string("NumPy's loop of ") + reinterpret_cast<PyUFuncObject*>(ufunc.get())->name;
    step = std::move(made);
    return 0;
}

}  // namespace pyop
