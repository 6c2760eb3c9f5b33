// plan/steps/scalar_step.cpp: operators between NumPy's scalars that are not the loops of their ufuncs
// (array/protocol/scalar_operator.h): powers by libm's pow, as NumPy's scalar arithmetic has them, and integers that
// are watched for overflow. Whatever would warn is left to NumPy.
#include <array>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

#include "array/loop/fp_flags.h"
#include "array/loop/number_types.h"
#include "array/memory/recycle.h"
#include "graph/argument.h"
#include "graph/passes/rewrite.h"
#include "plan/steps/steps.h"
#include "plan/tape/tape_builder.h"

#define NO_IMPORT_UFUNC  // only the struct is used
#include <numpy/ufuncobject.h>

namespace pyop {

namespace {

enum class Scalar { Add, Subtract, Multiply, FloorDivide, Remainder, Power, Negative, Absolute, None };
constexpr std::array<const char*, 8> kScalarUfuncs = {"add",       "subtract", "multiply", "floor_divide",
                                                      "remainder", "power",    "negative", "absolute"};

// false: NumPy must do it, and warn.
template <typename T>
bool compute(Scalar does, T x, T y, T& result) {
    if constexpr (std::is_floating_point_v<T>) {
        if (does != Scalar::Power) return false;
        std::feclearexcept(FE_ALL_EXCEPT);
        if constexpr (std::is_same_v<T, float>)
            result = powf(x, y);
        else
            result = pow(x, y);
        return !std::fetestexcept(FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW | FE_INVALID);
    } else {
        switch (does) {
            case Scalar::Add:
                return !__builtin_add_overflow(x, y, &result);
            case Scalar::Subtract:
                return !__builtin_sub_overflow(x, y, &result);
            case Scalar::Multiply:
                return !__builtin_mul_overflow(x, y, &result);
            case Scalar::FloorDivide:
            case Scalar::Remainder: {
                if (y == T{0}) return false;
                if constexpr (std::is_signed_v<T>)
                    if (y == static_cast<T>(-1) && x == std::numeric_limits<T>::min()) return false;
                T quotient = static_cast<T>(x / y), rest = static_cast<T>(x % y);
                if constexpr (std::is_signed_v<T>)
                    if (rest != 0 && (rest < 0) != (y < 0)) {
                        --quotient;
                        rest = static_cast<T>(rest + y);
                    }
                result = does == Scalar::Remainder ? rest : quotient;
                return true;
            }
            case Scalar::Negative:
                return !__builtin_sub_overflow(T{0}, x, &result);
            case Scalar::Absolute:
                result = x;
                return !(x < T{0}) || !__builtin_sub_overflow(T{0}, x, &result);
            default:
                return false;
        }
    }
}

struct ScalarOperand {
    int32_t input = -1;  // -1: a number known now
    double real = 0;
    int64_t whole = 0;
};

template <typename T>
class ScalarStep final : public NativeStep {
  public:
    ScalarStep(const Graph& g, uint32_t node, int type_num, Scalar does, std::array<ScalarOperand, 2> operands)
        : NativeStep(Fallback::of_node(g, node)), type_num_(type_num), does_(does), operands_(operands) {}

    int run(PyObject* const* inputs, PyObject** results, const StepContext&) const override {
        T x[2], result;
        for (size_t k = 0; k < 2; ++k) {
            const ScalarOperand& o = operands_[k];
            if (o.input < 0) {
                x[k] = std::is_floating_point_v<T> ? static_cast<T>(o.real) : static_cast<T>(o.whole);
                continue;
            }
            PyObject* input = inputs[o.input];
            if (!is_exact_array(input) || PyArray_NDIM(as_array(input)) != 0 ||
                PyArray_TYPE(as_array(input)) != type_num_ || !PyArray_ISBEHAVED_RO(as_array(input)))
                return 0;
            x[k] = *static_cast<const T*>(PyArray_DATA(as_array(input)));
        }
        if (!compute<T>(does_, x[0], x[1], result)) return 0;
        PyArray_Descr* dtype = PyArray_DescrFromType(type_num_);  // lives for ever
        results[0] = recycler_.take(dtype, 0, nullptr);
        Py_DECREF(dtype);
        if (!results[0]) return -1;
        *static_cast<T*>(PyArray_DATA(as_array(results[0]))) = result;
        return 1;
    }

    bool record(TapeBuilder& tape, const TapeValue* inputs, TapeValue* results) const override {
        PyArray_Descr* dtype = PyArray_DescrFromType(type_num_);  // lives for ever
        Py_DECREF(dtype);
        TapeValue x[2];
        for (size_t k = 0; k < 2; ++k) {
            const ScalarOperand& o = operands_[k];
            const T known = std::is_floating_point_v<T> ? static_cast<T>(o.real) : static_cast<T>(o.whole);
            x[k] = o.input < 0 ? tape.constant(&known, dtype) : inputs[o.input];
            if (!x[k].is_number(dtype)) return false;
        }
        results[0] = tape.number_new(dtype);
        if constexpr (std::is_same_v<T, int64_t>) {
            if (does_ == Scalar::Add) return tape.operation(TapeOp::AddCheckedI64, results[0], x[0], x[1]);
            if (does_ == Scalar::Subtract) return tape.operation(TapeOp::SubtractCheckedI64, results[0], x[0], x[1]);
            if (does_ == Scalar::Multiply) return tape.operation(TapeOp::MultiplyCheckedI64, results[0], x[0], x[1]);
            if (does_ == Scalar::FloorDivide) return tape.operation(TapeOp::FloorDivideI64, results[0], x[0], x[1]);
            if (does_ == Scalar::Remainder) return tape.operation(TapeOp::RemainderI64, results[0], x[0], x[1]);
        }
        const auto step = [](const void* self, const TapeCell* a, const TapeCell* b, TapeCell* result) {
            const int raised = all_fp_errors();
            T given[2], made;
            std::memcpy(&given[0], a, sizeof(T));
            std::memcpy(&given[1], b, sizeof(T));
            if (!compute<T>(static_cast<const ScalarStep*>(self)->does_, given[0], given[1], made)) return false;
            if (PYOP_UNLIKELY(raised != 0)) std::feraiseexcept(raised);
            std::memcpy(result, &made, sizeof(T));
            return true;
        };
        return tape.compute(step, this, results[0], x[0], x[1]);
    }

    std::string describe(size_t) const override {
        return std::string(kScalarUfuncs[static_cast<size_t>(does_)]) + " of NumPy's scalars";
    }

  private:
    int type_num_;
    Scalar does_;
    std::array<ScalarOperand, 2> operands_;
    mutable ResultRecycler recycler_;  // the GIL guards it
};

Scalar operation_of(PyObject* ufunc) {
    const char* name = reinterpret_cast<PyUFuncObject*>(ufunc)->name;
    for (size_t i = 0; name && i < kScalarUfuncs.size(); ++i)
        if (std::string_view(name) == kScalarUfuncs[i]) return static_cast<Scalar>(i);
    return Scalar::None;
}

// A number that is not known now, or one that the type holds as NumPy converts it.
bool read_operand(const Rewrite& r, const PyNode& node, size_t position, int type_num, ScalarOperand& operand) {
    const Argument argument = argument_of(node, position);
    const bool real = PyTypeNum_ISFLOAT(type_num);
    if (!argument.constant) {
        operand.input = argument.input;
        const ValueSpec& spec = r.g.spec(node.inputs()[static_cast<size_t>(argument.input)]);
        return spec.ndim == 0 && spec.descr() && spec.descr()->type_num == type_num;
    }
    if (PyFloat_CheckExact(argument.constant)) {
        operand.real = PyFloat_AS_DOUBLE(argument.constant);
        return real &&
               (type_num == NPY_DOUBLE || static_cast<double>(static_cast<float>(operand.real)) == operand.real);
    }
    if (!PyLong_CheckExact(argument.constant)) return false;
    int overflow;
    operand.whole = PyLong_AsLongLongAndOverflow(argument.constant, &overflow);
    operand.real = static_cast<double>(operand.whole);
    if (overflow) return false;
    if (type_num == NPY_INT64) return true;
    return operand.whole >= -128 && operand.whole <= 127 &&
           (operand.whole >= 0 || !PyTypeNum_ISUNSIGNED(type_num));  // every type has these
}

template <typename T>
std::unique_ptr<NativeStep> make(const Rewrite& r, uint32_t i, int type_num, Scalar does,
                                 const std::array<ScalarOperand, 2>& operands) {
    const bool known = std::is_floating_point_v<T> == (does == Scalar::Power);
    return known ? std::make_unique<ScalarStep<T>>(r.g, i, type_num, does, operands) : nullptr;
}

}  // namespace

int make_scalar_step(const Rewrite& r, uint32_t i, std::unique_ptr<NativeStep>& step) {
    const PyNode& node = r.g.node_as<PyNode>(i);
    const size_t n = n_arguments(node);
    if (!node.of_scalars() || node.n_outputs() != 1 || n < 1 || n > 2) return 0;
    const ValueSpec& result = r.g.spec({i, 0});
    const Scalar does = operation_of(node.fn());
    if (does == Scalar::None || !result.descr() || n != (does < Scalar::Negative ? 2 : 1)) return 0;
    const int type_num = result.descr()->type_num;
    std::array<ScalarOperand, 2> operands;
    for (size_t k = 0; k < n; ++k)
        if (!read_operand(r, node, k, type_num, operands[k])) return 0;
    with_number_type(type_num, [&]<typename T>(T) { step = make<T>(r, i, type_num, does, operands); });
    return 0;
}

}  // namespace pyop
