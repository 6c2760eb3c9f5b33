// plan/steps/reduce.cpp: run np.sum and its kin, and ufunc.reduce, as native steps.
#include "plan/steps/reduce.h"

#include "plan/steps/call_arguments.h"
#include "plan/steps/steps.h"
#include "plan/tape/tape_builder.h"

#define NO_IMPORT_UFUNC  // only the struct is used
#include <numpy/ufuncobject.h>

namespace pyop {

namespace {

// How a function of NumPy calls ufunc.reduce.
struct Wrapper {
    const char* ufunc;
    std::span<const std::string_view> parameters;
    bool to_bool = false;
};
constexpr std::string_view kSum[] = {"a", "axis", "dtype", "out", "keepdims", "initial", "where"};
constexpr std::string_view kExtreme[] = {"a", "axis", "out", "keepdims", "initial", "where"};
constexpr std::string_view kTruth[] = {"a", "axis", "out", "keepdims", "*", "where"};
constexpr std::string_view kReduce[] = {"array", "axis", "dtype", "out", "keepdims", "initial", "where"};

constexpr Named<Wrapper> kWrappers[] = {
    {"sum", {"add", kSum}},
    {"prod", {"multiply", kSum}},
    {"max", {"maximum", kExtreme}},
    {"amax", {"maximum", kExtreme}},
    {"min", {"minimum", kExtreme}},
    {"amin", {"minimum", kExtreme}},
    {"any", {"logical_or", kTruth, true}},
    {"all", {"logical_and", kTruth, true}},
};

class ReduceStep final : public NativeStep {
  public:
    using NativeStep::NativeStep;

    int run(PyObject* const* inputs, PyObject** results, const StepContext&) const override {
        PyObject* x = inputs[call.input];
        uint32_t axes;
        if (!is_exact_array(x) || !call.axis.bits(PyArray_NDIM(as_array(x)), axes)) return 0;
        PyObject* chosen = where < 0 ? nullptr : inputs[where];
        if (chosen && !is_exact_array(chosen)) return 0;
        return call.reduction.run(as_array(x), axes, results, chosen ? as_array(chosen) : nullptr);
    }
    bool record(TapeBuilder& tape, const TapeValue* inputs, TapeValue* results) const override {
        return where < 0 && record_reduction(tape, call, inputs[call.input], false, results[0]);
    }
    std::string describe(size_t) const override { return call.ufunc + " along axes, NumPy's loop"; }

    ReductionCall call;
    int32_t where = -1;  // the input that says which elements count
};

// The ufunc of a bound method ufunc.reduce; null if `fn` is something else. Borrowed.
PyObject* reduced_ufunc(PyObject* fn) {
    if (!PyCFunction_CheckExact(fn)) return nullptr;
    PyObject* self = PyCFunction_GET_SELF(fn);
    const auto* f = reinterpret_cast<PyCFunctionObject*>(fn);
    return self && is_elementwise_ufunc(self) && std::string_view(f->m_ml->ml_name) == "reduce" ? self : nullptr;
}

// A number given as initial=, in the dtype of the reduction. False where NumPy must look at it.
bool read_initial(PyObject* number, Reduction& r) {
    PyArray_Descr* dtype = r.loop->dtype();
    const bool fits = PyTypeNum_ISFLOAT(dtype->type_num) || PyTypeNum_ISCOMPLEX(dtype->type_num);
    if (!PyLong_CheckExact(number) && !PyBool_Check(number) && !(fits && PyFloat_CheckExact(number))) return false;
    Py_INCREF(dtype);
    Ref array = Ref::steal(PyArray_NewFromDescr(&PyArray_Type, dtype, 0, nullptr, nullptr, nullptr, 0, nullptr));
    if (!array || PyArray_SETITEM(as_array(array.get()), PyArray_BYTES(as_array(array.get())), number) < 0) {
        PyErr_Clear();
        return false;
    }
    memcpy(r.initial.data(), PyArray_BYTES(as_array(array.get())), static_cast<size_t>(r.loop->itemsize()));
    r.has_initial = true;
    return true;
}

}  // namespace

int read_reduction_call(const Rewrite& r, uint32_t i, ReductionCall& call, int32_t* where) {
    const PyNode& node = r.g.node_as<PyNode>(i);
    if (!is_plain_call(node) || node.n_outputs() != 1) return 0;
    Ref ufunc = Ref::borrow(reduced_ufunc(node.fn()));
    Wrapper how{nullptr, kReduce};
    if (!ufunc) {
        const auto* found = function_table<kWrappers>().find(node.fn());
        if (!found) return 0;
        how = found->entry;
        ufunc = Ref::steal(find_below_numpy(how.ufunc));
        if (!ufunc) return 0;
    }
    CallArguments given;
    if (!given.bind(node, how.parameters)) return 0;
    const auto argument = [&](std::string_view name) {
        for (size_t k = 0; k < how.parameters.size(); ++k)
            if (how.parameters[k] == name) return given[k];
        return CallArguments::Item{};
    };
    const CallArguments::Item axis = argument("axis"), initial = argument("initial");
    const int keepdims = flag_argument(argument("keepdims"), false);
    if (given[0].input < 0 || keepdims < 0 || !argument("out").absent_or(Py_None)) return 0;
    const CallArguments::Item chosen = argument("where");
    if (where && chosen.input >= 0)
        *where = chosen.input;
    else if (!chosen.absent_or(Py_True))
        return 0;
    PyArray_Descr* dtype = builtin_dtype(r.g, node.inputs()[static_cast<size_t>(given[0].input)]);
    PyArray_Descr* wanted;
    if (!dtype || !dtype_argument(argument("dtype"), wanted)) return 0;
    if (how.to_bool) {
        wanted = PyArray_DescrFromType(NPY_BOOL);
        Py_DECREF(wanted);  // lives for ever
    }
    call.input = static_cast<size_t>(given[0].input);
    Ref first = Ref::steal(PyLong_FromLong(0));
    PyObject* default_axis = how.ufunc ? Py_None : first.get();
    if (!first || axis.input >= 0 || !call.axis.read(axis.fixed ? axis.fixed : default_axis)) return 0;
    const int status = call.reduction.make(ufunc.get(), dtype, wanted);
    if (status <= 0) return status;
    if (initial.given() && (!initial.fixed || !read_initial(initial.fixed, call.reduction))) return 0;
    call.reduction.keepdims = keepdims;
    call.ufunc = reinterpret_cast<PyUFuncObject*>(ufunc.get())->name;
    for (const auto& each : kWrappers)
        if (call.ufunc == each.entry.ufunc)
            call.own_loop = Ref::steal(find_below_numpy(each.entry.ufunc)).get() == ufunc.get();
    if (PyErr_Occurred()) PyErr_Clear();
    call.found = true;
    return 0;
}

int make_reduce_step(const Rewrite& r, uint32_t i, std::unique_ptr<NativeStep>& step) {
    auto made = std::make_unique<ReduceStep>(Fallback::of_node(r.g, i));
    if (read_reduction_call(r, i, made->call, &made->where) < 0) return -1;
    if (made->call.found) step = std::move(made);
    return 0;
}

}  // namespace pyop
