// plan/steps/element_step.cpp: run an operation on single numbers, as a native step and on a tape.
#include <cfenv>
#include <cstring>

#include "array/loop/flag_trial.h"
#include "array/loop/fp_flags.h"
#include "array/loop/one_element.h"
#include "array/memory/recycle.h"
#include "plan/steps/element_call.h"
#include "plan/steps/steps.h"
#include "plan/tape/tape_builder.h"

namespace pyop {

namespace {

class ElementStep final : public NativeStep {
  public:
    ElementStep(const Graph& g, uint32_t node, ElementCall call)
        : NativeStep(Fallback::of_node(g, node)), call_(std::move(call)) {
        if (call_.loop) strides_of_one(*call_.loop, call_.of_scalar, strides_);
    }

    int run(PyObject* const* inputs, PyObject** results, const StepContext&) const override {
        TapeCell x[StridedLoop::kMaxOperands][2], made[2][2];
        if (all_fp_errors()) clear_all_fp_errors();
        for (size_t k = 0; k < call_.operands.size(); ++k) {
            const ElementOperand& operand = call_.operands[k];
            if (operand.input < 0) {
                std::memcpy(x[k], operand.constant, sizeof(x[k]));
                continue;
            }
            PyObject* const given = inputs[operand.input];
            if (!is_exact_array(given)) return 0;
            PyArrayObject* const a = as_array(given);
            if (PyArray_NDIM(a) != 0 || PyArray_DESCR(a) != operand.have || !PyArray_ISALIGNED(a)) return 0;
            std::memcpy(x[k], PyArray_DATA(a), static_cast<size_t>(PyDataType_ELSIZE(operand.have)));
            if (operand.fit && !operand.fit(nullptr, x[k], nullptr, x[k])) return 0;
            if (operand.cast && !operand.cast(nullptr, x[k], nullptr, x[k])) return 0;
        }
        const bool done = compute(x, made);
        if (PYOP_UNLIKELY(all_fp_errors() != 0)) {
            clear_all_fp_errors();
            if (!call_.loop || !call_.loop->ignores_flags()) return 0;
        }
        if (!done) return 0;
        for (size_t k = 0; k < call_.results.size(); ++k) {
            results[k] = recyclers_[k].take(call_.results[k], 0, nullptr);
            if (!results[k]) {
                while (k > 0) Py_CLEAR(results[--k]);
                return -1;
            }
            std::memcpy(PyArray_DATA(as_array(results[k])), made[k],
                        static_cast<size_t>(PyDataType_ELSIZE(call_.results[k])));
        }
        return 1;
    }

    int call(const Graph& g, PyObject* const* inputs, PyObject** results) const override {
        if (!call_.of_scalar || !is_exact_array(inputs[0]) || PyArray_NDIM(as_array(inputs[0])) != 0)
            return NativeStep::call(g, inputs, results);
        PyArrayObject* const a = as_array(inputs[0]);
        Ref scalar = Ref::steal(PyArray_Scalar(PyArray_DATA(a), PyArray_DESCR(a), inputs[0]));
        PyObject* const given[] = {scalar.get()};
        return scalar ? NativeStep::call(g, given, results) : -1;
    }

    bool record(TapeBuilder& tape, const TapeValue* inputs, TapeValue* results) const override {
        TapeValue x[StridedLoop::kMaxOperands];
        const size_t n = call_.operands.size();
        for (size_t k = 0; k < n; ++k) {
            const ElementOperand& operand = call_.operands[k];
            x[k] = operand.input < 0 ? tape.constant(operand.constant, operand.want) : inputs[operand.input];
            if (!x[k].is_number(operand.input < 0 ? operand.want : operand.have)) return false;
            if (operand.fit) {
                const TapeValue given = x[k];
                x[k] = tape.number_new(operand.first);
                if (!tape.compute(operand.fit, nullptr, x[k], given, given)) return false;
            }
            if (!operand.cast) continue;
            const TapeValue given = x[k];
            x[k] = tape.number_new(operand.want);
            if (operand.as_array ? !tape.cast(x[k], given) : !tape.compute(operand.cast, nullptr, x[k], given, given))
                return false;
        }
        if (call_.how == ElementCall::Cast) {
            results[0] = x[0];
            return true;
        }
        for (size_t k = 0; k < call_.results.size(); ++k) results[k] = tape.number_new(call_.results[k]);
        const TapeValue& y = n > 1 ? x[1] : x[0];
        switch (call_.how) {
            case ElementCall::Where:
                return tape.select(results[0], x[0], x[1], x[2]);
            case ElementCall::Quotient:
                return record_arithmetic(tape, call_.arithmetic, results[0], x[0], y) &&
                       record_arithmetic(tape, call_.rest, results[1], x[0], y);
            case ElementCall::Arithmetic:
                return record_arithmetic(tape, call_.arithmetic, results[0], x[0], y);
            default:
                return record_loop(tape, x, results);
        }
    }

    std::string describe(size_t) const override {
        return call_.how == ElementCall::Loop ? "NumPy's loop of " + call_.name + " for one element"
                                              : call_.name + " of one element";
    }

  private:
    // False: NumPy must do it.
    bool compute(const TapeCell (*x)[2], TapeCell (*made)[2]) const {
        const auto& arithmetic = call_.arithmetic;
        const TapeCell* const y = x[call_.operands.size() > 1];
        switch (call_.how) {
            case ElementCall::Cast:
                std::memcpy(made[0], x[0], sizeof(made[0]));
                return true;
            case ElementCall::Where:
                std::memcpy(made[0], x[0][0].Bool ? x[1] : x[2], sizeof(made[0]));
                return true;
            case ElementCall::Quotient:
                return arithmetic.function(nullptr, x[0], y, made[0]) && call_.rest.function(nullptr, x[0], y, made[1]);
            case ElementCall::Arithmetic:
                return arithmetic.function(nullptr, x[0], y, made[0]);
            default:
                break;
        }
        char* data[StridedLoop::kMaxOperands];
        const size_t n = call_.operands.size();
        for (size_t k = 0; k < n; ++k) data[k] = const_cast<char*>(reinterpret_cast<const char*>(x[k]));
        for (size_t k = 0; k < call_.results.size(); ++k) data[n + k] = reinterpret_cast<char*>(made[k]);
        const bool done = (*call_.loop)(data, 1, strides_) == 0;
        if (!call_.may_fail || !PyErr_Occurred()) return done;
        PyErr_Clear();
        return false;
    }

    static bool record_arithmetic(TapeBuilder& tape, const ElementArithmetic& arithmetic, const TapeValue& result,
                                  const TapeValue& x, const TapeValue& y) {
        return arithmetic.op == TapeOp::Move ? tape.compute(arithmetic.function, nullptr, result, x, y)
                                             : tape.operation(arithmetic.op, result, x, y);
    }

    bool record_loop(TapeBuilder& tape, const TapeValue* x, TapeValue* results) const {
        const size_t n = call_.operands.size(), n_results = call_.results.size();
        TapeValue all[StridedLoop::kMaxOperands];
        std::copy_n(x, n, all);
        std::copy_n(results, n_results, all + n);
        if (call_.operation != pyop::Operation::None && tape.operation(call_.operation, call_.element, all, n + 1))
            return true;
        if (call_.may_fail && tape.anywhere()) return false;
        TapeCall call;
        call.loop = call_.loop.get();
        call.may_fail = call_.may_fail;
        call.quiet = !call.may_fail && keeps_flags(*call.loop);
        for (size_t k = 0; k < n + n_results; ++k) call.cells.push_back(all[k].cell);
        call.strides.assign(strides_, strides_ + n + n_results);
        return tape.call(std::move(call));
    }

    const ElementCall call_;
    npy_intp strides_[StridedLoop::kMaxOperands] = {};  // of a loop
    mutable ResultRecycler recyclers_[2];  // by result; the GIL guards them
};

}  // namespace

int make_element_step(const Rewrite& r, uint32_t i, std::unique_ptr<NativeStep>& step) {
    bool failed;
    if (std::optional<ElementCall> call = read_element_call(r, i, failed))
        step = std::make_unique<ElementStep>(r.g, i, std::move(*call));
    return failed ? -1 : 0;
}

}  // namespace pyop
