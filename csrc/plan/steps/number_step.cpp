// plan/steps/number_step.cpp: compute the arithmetic of Python floats, as pyop.compile traces it
// (python/pyop/graph/symbolic_number.py).
//
// NumPy's loops would not do: Python's floats overflow without a warning, and division by zero is an error.
#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <vector>

#include "array/memory/recycle.h"
#include "graph/argument.h"
#include "graph/passes/rewrite.h"
#include "plan/steps/steps.h"
#include "plan/tape/tape_builder.h"
#include "runtime/up_calls.h"

namespace pyop {

namespace {

enum class Arithmetic { Add, Subtract, Multiply, Divide, FloorDivide, Remainder, Power, Negative, Positive, Absolute };
constexpr std::array<const char*, 10> kNumberOperators = {"add", "sub", "mul", "truediv", "floordiv",
                                                          "mod", "pow", "neg", "pos",     "abs"};

// Borrowed functions of the module `operator`; null with the error set.
const std::array<PyObject*, kNumberOperators.size()>* operators() {
    static std::array<PyObject*, kNumberOperators.size()> found{};
    if (found.back()) return &found;
    Ref module = Ref::steal(PyImport_ImportModule("operator"));
    for (size_t i = 0; module && i < kNumberOperators.size(); ++i) {
        Ref function = Ref::steal(PyObject_GetAttrString(module.get(), kNumberOperators[i]));
        if (!function) return nullptr;
        found[i] = function.release();
    }
    return module ? &found : nullptr;
}

struct NumberOperand {
    int32_t input = -1;  // -1: a number known now
    double number = 0;
    bool whole = false;  // an int, that is divided by another
};

// Ints that are floats without rounding: their quotient is that of the floats.
constexpr int64_t kMostWhole = int64_t{1} << 53;
bool float_of_whole(const void*, const TapeCell* x, const TapeCell*, TapeCell* result) {
    const int64_t whole = x->I64;
    result->F64 = static_cast<double>(whole);
    return whole >= -kMostWhole && whole <= kMostWhole;
}

bool is_number(PyObject* o, int type_num) {
    if (!is_exact_array(o)) return false;
    PyArrayObject* a = as_array(o);
    return PyArray_NDIM(a) == 0 && PyArray_TYPE(a) == type_num && PyArray_ISBEHAVED_RO(a);
}

class NumberStep final : public NativeStep {
  public:
    NumberStep(const Graph& g, uint32_t node, Arithmetic does, std::array<NumberOperand, 2> operands)
        : NativeStep(Fallback::of_node(g, node)), does_(does), operands_(operands) {}

    int run(PyObject* const* inputs, PyObject** results, const StepContext&) const override {
        double x[2];
        for (size_t k = 0; k < 2; ++k) {
            const NumberOperand& o = operands_[k];
            x[k] = o.number;
            if (o.input < 0) continue;
            if (!is_number(inputs[o.input], o.whole ? NPY_INT64 : NPY_DOUBLE)) return 0;
            TapeCell cell;
            std::memcpy(&cell, PyArray_DATA(as_array(inputs[o.input])), sizeof(cell));
            if (o.whole && !float_of_whole(nullptr, &cell, nullptr, &cell)) return 0;
            x[k] = cell.F64;
        }
        double result;
        if (!compute(x[0], x[1], result)) return 0;
        PyArray_Descr* dtype = PyArray_DescrFromType(NPY_DOUBLE);  // lives for ever
        results[0] = recycler_.take(dtype, 0, nullptr);
        Py_DECREF(dtype);
        if (!results[0]) return -1;
        *static_cast<double*>(PyArray_DATA(as_array(results[0]))) = result;
        return 1;
    }

    bool record(TapeBuilder& tape, const TapeValue* inputs, TapeValue* results) const override {
        PyArray_Descr* dtype = PyArray_DescrFromType(NPY_DOUBLE);  // lives for ever
        Py_DECREF(dtype);
        TapeValue x[2];
        for (size_t k = 0; k < 2; ++k) {
            x[k] = operands_[k].input < 0 ? tape.constant(&operands_[k].number, dtype) : inputs[operands_[k].input];
            if (operands_[k].whole && operands_[k].input >= 0) {
                const TapeValue whole = x[k];
                if (whole.kind != TapeValue::Number || whole.dtype->type_num != NPY_INT64) return false;
                x[k] = tape.number_new(dtype);
                if (!tape.compute(float_of_whole, nullptr, x[k], whole, whole)) return false;
            }
            if (!x[k].is_number(dtype)) return false;
        }
        results[0] = tape.number_new(dtype);
        switch (does_) {
            case Arithmetic::Add:
                return tape.operation(TapeOp::AddF64, results[0], x[0], x[1]);
            case Arithmetic::Subtract:
                return tape.operation(TapeOp::SubtractF64, results[0], x[0], x[1]);
            case Arithmetic::Multiply:
                return tape.operation(TapeOp::MultiplyF64, results[0], x[0], x[1]);
            case Arithmetic::Divide:
                return tape.operation(TapeOp::DivideCheckedF64, results[0], x[0], x[1]);
            case Arithmetic::Negative:
                return tape.operation(TapeOp::NegativeF64, results[0], x[0], x[1]);
            case Arithmetic::Absolute:
                return tape.operation(TapeOp::AbsoluteF64, results[0], x[0], x[1]);
            case Arithmetic::Positive:
                return tape.move(results[0], x[0]);
            default:
                break;
        }
        const auto step = [](const void* self, const TapeCell* a, const TapeCell* b, TapeCell* result) {
            return static_cast<const NumberStep*>(self)->compute(a->F64, b->F64, result->F64);
        };
        return tape.compute(step, this, results[0], x[0], x[1]);
    }

    std::string describe(size_t) const override {
        return std::string(kNumberOperators[static_cast<size_t>(does_)]) + " of Python floats";
    }

  private:
    // false: Python must do it, and raise perhaps.
    bool compute(double x, double y, double& result) const {
        switch (does_) {
            case Arithmetic::Add:
                result = x + y;
                return true;
            case Arithmetic::Subtract:
                result = x - y;
                return true;
            case Arithmetic::Multiply:
                result = x * y;
                return true;
            case Arithmetic::Divide:
                result = x / y;
                return y != 0.0;
            case Arithmetic::FloorDivide:
                return y != 0.0 && floor_divide(x, y, result);
            case Arithmetic::Remainder:
                return y != 0.0 && remainder(x, y, result);
            case Arithmetic::Power:
                return power(x, y, result);
            case Arithmetic::Negative:
                result = -x;
                return true;
            case Arithmetic::Positive:
                result = x;
                return true;
            case Arithmetic::Absolute:
                result = std::fabs(x);
                return true;
        }
        return false;
    }

    // These three as in CPython's Objects/floatobject.c.
    static bool remainder(double x, double y, double& result) {
        double mod = std::fmod(x, y);
        if (mod != 0.0)
            mod += (y < 0) != (mod < 0) ? y : 0.0;
        else
            mod = std::copysign(0.0, y);
        result = mod;
        return true;
    }
    static bool floor_divide(double x, double y, double& result) {
        const double mod = std::fmod(x, y);
        double div = (x - mod) / y;
        if (mod != 0.0 && (y < 0) != (mod < 0)) div -= 1.0;
        if (div != 0.0) {
            result = std::floor(div);
            if (div - result > 0.5) result += 1.0;
        } else {
            result = std::copysign(0.0, x / y);
        }
        return true;
    }
    // The usual cases: of finite numbers, with a result that is neither too large nor too small to be a normal one.
    static bool power(double x, double y, double& result) {
        if (!std::isfinite(x) || !std::isfinite(y) || x == 0.0 || y == 0.0) return false;
        if (x < 0 && y != std::floor(y)) return false;
        result = std::pow(std::fabs(x), y);
        if (x < 0 && std::fmod(std::fabs(y), 2.0) == 1.0) result = -result;
        return std::isnormal(result);
    }

    Arithmetic does_;
    std::array<NumberOperand, 2> operands_;
    mutable ResultRecycler recycler_;  // the GIL guards it
};

std::optional<Arithmetic> arithmetic_of(PyObject* function) {
    const auto* known = operators();
    for (size_t i = 0; known && i < known->size(); ++i)
        if ((*known)[i] == function) return static_cast<Arithmetic>(i);
    return {};
}

// False if the argument is neither a float computed by the graph, nor an int to be divided, nor a number that a double
// holds as Python converts it.
bool read_operand(const Rewrite& r, const PyNode& node, size_t position, bool divided, NumberOperand& operand) {
    const Argument argument = argument_of(node, position);
    if (argument.constant) {
        operand.whole = PyLong_CheckExact(argument.constant);
        if (!PyFloat_CheckExact(argument.constant) && !PyLong_CheckExact(argument.constant)) return false;
        operand.number = PyFloat_AsDouble(argument.constant);
        if (operand.number == -1.0 && PyErr_Occurred()) {
            PyErr_Clear();
            return false;
        }
        return true;
    }
    operand.input = argument.input;
    const ValueSpec& spec = r.g.spec(node.inputs()[static_cast<size_t>(argument.input)]);
    if (spec.ndim != 0 || !spec.descr()) return false;
    operand.whole = spec.descr()->type_num == NPY_INT64;
    return spec.descr()->type_num == NPY_DOUBLE || (operand.whole && divided);
}

}  // namespace

int make_number_step(const Rewrite& r, uint32_t i, std::unique_ptr<NativeStep>& step) {
    const PyNode& node = r.g.node_as<PyNode>(i);
    if (reinterpret_cast<PyObject*>(Py_TYPE(node.fn())) != up_calls.number_call || node.n_outputs() != 1) return 0;
    Ref function = Ref::steal(PyObject_GetAttr(node.fn(), up_attributes.fn));
    if (!function) return -1;
    const std::optional<Arithmetic> does = arithmetic_of(function.get());
    if (!does) return PyErr_Occurred() ? -1 : 0;
    const ValueSpec& result = r.g.spec({i, 0});
    if (result.ndim != 0 || !result.descr()) return 0;
    if (result.descr()->type_num != NPY_DOUBLE) return 0;
    const size_t n = *does < Arithmetic::Negative ? 2 : 1;
    if (n_arguments(node) != n || (node.form() && node.form()->n_keywords())) return 0;
    Ref numbers = Ref::steal(PyObject_GetAttr(node.fn(), up_attributes.numbers));
    if (!numbers) return -1;
    if (!PyTuple_Check(numbers.get()) || PyTuple_GET_SIZE(numbers.get()) != static_cast<Py_ssize_t>(n)) return 0;
    std::array<NumberOperand, 2> operands;
    for (size_t k = 0; k < n; ++k) {
        if (!read_operand(r, node, k, *does == Arithmetic::Divide, operands[k])) return 0;
        // What is a scalar of NumPy has NumPy's arithmetic.
        if (operands[k].input >= 0 && PyTuple_GET_ITEM(numbers.get(), static_cast<Py_ssize_t>(k)) != Py_True) return 0;
    }
    // Python rounds the quotient of two ints once; an int beside a float is one before.
    if (operands[0].whole && operands[1].whole)
        for (const NumberOperand& operand : operands)
            if (operand.input < 0 && std::fabs(operand.number) > static_cast<double>(kMostWhole)) return 0;
    if (operands[0].whole != operands[1].whole)
        for (const NumberOperand& operand : operands)
            if (operand.whole && operand.input >= 0) return 0;
    step = std::make_unique<NumberStep>(r.g, i, *does, operands);
    return 0;
}

}  // namespace pyop
