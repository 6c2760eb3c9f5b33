// plan/steps/complex_step.cpp: products and absolute values of NumPy's complex scalars, which are not the loops of
// their ufuncs: the four products of the schoolbook, and libm's hypot. Whatever is not finite, or would warn, is left
// to NumPy.
#include <array>
#include <cmath>
#include <cstring>
#include <string_view>

#include "array/loop/fp_flags.h"
#include "array/memory/recycle.h"
#include "graph/argument.h"
#include "graph/passes/rewrite.h"
#include "plan/steps/steps.h"
#include "plan/tape/tape_builder.h"

#define NO_IMPORT_UFUNC  // only the struct is used
#include <numpy/ufuncobject.h>

namespace pyop {

namespace {

struct Number {
    double real, imaginary;
};

PyArray_Descr* dtype_of_type(int type_num) {
    PyArray_Descr* dtype = PyArray_DescrFromType(type_num);  // lives for ever
    Py_DECREF(dtype);
    return dtype;
}

bool multiply(Number x, Number y, Number& result) {
    result.real = x.real * y.real - x.imaginary * y.imaginary;
    result.imaginary = x.real * y.imaginary + x.imaginary * y.real;
    return std::isfinite(result.real) && std::isfinite(result.imaginary);
}

bool absolute(Number x, double& result) {
    if (!std::isfinite(x.real) || !std::isfinite(x.imaginary)) return false;
    result = std::hypot(x.real, x.imaginary);
    return std::isfinite(result);
}

class ComplexStep final : public NativeStep {
  public:
    ComplexStep(const Graph& g, uint32_t node, bool multiplies, std::array<uint32_t, 2> inputs)
        : NativeStep(Fallback::of_node(g, node)), multiplies_(multiplies), inputs_(inputs) {}

    int run(PyObject* const* inputs, PyObject** results, const StepContext&) const override {
        Number x[2];
        for (size_t k = 0; k < (multiplies_ ? 2u : 1u); ++k) {
            PyObject* given = inputs[inputs_[k]];
            if (!is_exact_array(given) || PyArray_NDIM(as_array(given)) != 0 ||
                PyArray_TYPE(as_array(given)) != NPY_CDOUBLE || !PyArray_ISBEHAVED_RO(as_array(given)))
                return 0;
            std::memcpy(&x[k], PyArray_DATA(as_array(given)), sizeof(Number));
        }
        if (all_fp_errors()) clear_all_fp_errors();
        Number product;
        double size;
        const bool done = multiplies_ ? multiply(x[0], x[1], product) : absolute(x[0], size);
        if (!done || all_fp_errors()) {
            clear_all_fp_errors();
            return 0;
        }
        results[0] = recycler_.take(dtype_of_type(multiplies_ ? NPY_CDOUBLE : NPY_DOUBLE), 0, nullptr);
        if (!results[0]) return -1;
        void* const to = PyArray_DATA(as_array(results[0]));
        if (multiplies_)
            std::memcpy(to, &product, sizeof(product));
        else
            std::memcpy(to, &size, sizeof(size));
        return 1;
    }

    bool record(TapeBuilder& tape, const TapeValue* inputs, TapeValue* results) const override {
        const TapeValue &x = inputs[inputs_[0]], &y = inputs[inputs_[1]];
        PyArray_Descr* const dtype = dtype_of_type(NPY_CDOUBLE);
        if (!x.is_number(dtype) || !y.is_number(dtype)) return false;
        results[0] = tape.number_new(dtype_of_type(multiplies_ ? NPY_CDOUBLE : NPY_DOUBLE));
        const auto product = [](const void*, const TapeCell* a, const TapeCell* b, TapeCell* to) {
            Number p, q, made;
            std::memcpy(&p, a, sizeof(p));
            std::memcpy(&q, b, sizeof(q));
            if (!multiply(p, q, made)) return false;
            std::memcpy(to, &made, sizeof(made));
            return true;
        };
        const auto size = [](const void*, const TapeCell* a, const TapeCell*, TapeCell* to) {
            Number p;
            std::memcpy(&p, a, sizeof(p));
            return absolute(p, to->F64);
        };
        return tape.compute(multiplies_ ? static_cast<TapeCall::Function*>(product) : size, this, results[0], x, y);
    }

    std::string describe(size_t) const override {
        return std::string(multiplies_ ? "multiply" : "absolute") + " of NumPy's scalars";
    }

  private:
    bool multiplies_;
    std::array<uint32_t, 2> inputs_;  // of an absolute value: twice the same
    mutable ResultRecycler recycler_;  // the GIL guards it
};

}  // namespace

int make_complex_step(const Rewrite& r, uint32_t i, std::unique_ptr<NativeStep>& step) {
#if defined(__x86_64__)  // elsewhere compilers contract products and sums of NumPy's
    const PyNode& node = r.g.node_as<PyNode>(i);
    const size_t n = n_arguments(node);
    if (!node.of_scalars() || node.n_outputs() != 1 || n < 1 || n > 2) return 0;
    const char* text = reinterpret_cast<PyUFuncObject*>(node.fn())->name;
    const std::string_view name = text ? text : "";
    if (name != (n == 2 ? "multiply" : "absolute")) return 0;
    std::array<uint32_t, 2> inputs{};
    for (size_t k = 0; k < n; ++k) {
        const Argument argument = argument_of(node, k);
        if (argument.constant) return 0;
        inputs[k] = static_cast<uint32_t>(argument.input);
        const ValueSpec& spec = r.g.spec(node.inputs()[inputs[k]]);
        if (spec.ndim != 0 || !spec.descr() || spec.descr()->type_num != NPY_CDOUBLE) return 0;
    }
    if (n == 1) inputs[1] = inputs[0];
    step = std::make_unique<ComplexStep>(r.g, i, n == 2, inputs);
#else
    (void)r, (void)i, (void)step;
#endif
    return 0;
}

}  // namespace pyop
