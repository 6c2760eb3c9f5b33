// plan/steps/guard_step.cpp: check a guard as a native step: compare one number. Where it is another, or of a type
// that is not looked at here, the guard's own function is called, which raises PathLeft.
#include "plan/steps/guard_step.h"

#include <cmath>

#include "array/numpy.h"
#include "plan/steps/steps.h"
#include "plan/tape/tape_builder.h"
#include "runtime/tally.h"

namespace pyop {

namespace {

// Runs that compute again, and silently, what another path has computed: their guards end the silence.
constinit Tally quiet_runs;

enum class Asked : char { Truth = 't', Integer = 'i', Size = 's' };

// The element of an array of one, or a scalar of NumPy, as far as its type is common: 1, or 0.
int number_of(PyObject* given, double& number) {
    int type_num;
    const void* data;
    npy_bool truth;
    double real;
    if (is_exact_array(given)) {
        PyArrayObject* a = as_array(given);
        if (PyArray_SIZE(a) != 1 || !PyArray_ISALIGNED(a) || PyArray_ISBYTESWAPPED(a)) return 0;
        type_num = PyArray_TYPE(a);
        data = PyArray_DATA(a);
    } else if (PyArray_IsScalar(given, Bool)) {
        PyArray_ScalarAsCtype(given, &truth);
        type_num = NPY_BOOL;
        data = &truth;
    } else if (PyArray_IsScalar(given, Double)) {
        PyArray_ScalarAsCtype(given, &real);
        type_num = NPY_DOUBLE;
        data = &real;
    } else {
        return 0;
    }
    switch (type_num) {
        case NPY_BOOL:
            number = *static_cast<const npy_bool*>(data) != 0;
            return 1;
        case NPY_DOUBLE:
            number = *static_cast<const double*>(data);
            return 1;
        case NPY_FLOAT:
            number = static_cast<double>(*static_cast<const float*>(data));
            return 1;
        case NPY_INT32:
            number = *static_cast<const int32_t*>(data);
            return 1;
        case NPY_UINT32:
            number = *static_cast<const uint32_t*>(data);
            return 1;
        case NPY_INT16:
            number = *static_cast<const int16_t*>(data);
            return 1;
        case NPY_UINT16:
            number = *static_cast<const uint16_t*>(data);
            return 1;
        case NPY_INT8:
            number = *static_cast<const int8_t*>(data);
            return 1;
        case NPY_UINT8:
            number = *static_cast<const uint8_t*>(data);
            return 1;
        case NPY_INT64: {
            const int64_t integer = *static_cast<const int64_t*>(data);
            number = static_cast<double>(integer);
            return integer > -(int64_t{1} << 53) && integer < int64_t{1} << 53;
        }
        default:
            return 0;
    }
}

class GuardStep final : public NativeStep {
  public:
    GuardStep(const Graph& g, uint32_t node, Asked asked, int axis, int64_t expected)
        : NativeStep(Fallback::of_node(g, node)), asked_(asked), axis_(axis), expected_(expected) {}

    int run(PyObject* const* inputs, PyObject** results, const StepContext&) const override {
        if (PYOP_UNLIKELY(quiet_runs) || !holds(inputs[0])) return 0;
        results[0] = Py_NewRef(Py_True);
        return 1;
    }
    bool record(TapeBuilder& tape, const TapeValue* inputs, TapeValue*) const override {
        if (asked_ == Asked::Size || inputs[0].kind != TapeValue::Number) return false;
        const bool truth = asked_ == Asked::Truth;
        if (truth && inputs[0].dtype->type_num == NPY_BOOL) return tape.leave_unless(inputs[0], expected_ != 0);
        PyArray_Descr* flag = PyArray_DescrFromType(NPY_BOOL);  // lives for ever
        Py_DECREF(flag);
        const TapeValue answer = tape.number_new(flag);
        const int64_t wanted = truth ? 0 : expected_;
        const auto compare = [&](TapeOp unequal, TapeOp equal, auto number) {
            if (static_cast<int64_t>(number) != wanted) return false;
            const TapeValue known = tape.constant(&number, inputs[0].dtype);
            return tape.operation(truth ? unequal : equal, answer, inputs[0], known) &&
                   tape.leave_unless(answer, !truth || expected_ != 0);
        };
        switch (inputs[0].dtype->type_num) {
            case NPY_DOUBLE:  // NaN is true
                return truth && compare(TapeOp::NotEqualF64, TapeOp::EqualF64, 0.0);
            case NPY_FLOAT:
                return truth && compare(TapeOp::NotEqualF32, TapeOp::EqualF32, 0.0f);
            case NPY_INT64:
                return compare(TapeOp::NotEqualI64, TapeOp::EqualI64, wanted);
            case NPY_INT32:
                return compare(TapeOp::NotEqualI32, TapeOp::EqualI32, static_cast<int32_t>(wanted));
            case NPY_INT16:
                return compare(TapeOp::NotEqualI16, TapeOp::EqualI16, static_cast<int16_t>(wanted));
            case NPY_UINT16:
                return compare(TapeOp::NotEqualU16, TapeOp::EqualU16, static_cast<uint16_t>(wanted));
            case NPY_UINT32:
                return compare(TapeOp::NotEqualU32, TapeOp::EqualU32, static_cast<uint32_t>(wanted));
            case NPY_UINT8:
                return compare(TapeOp::NotEqualU8, TapeOp::EqualU8, static_cast<uint8_t>(wanted));
            case NPY_INT8:
                return compare(TapeOp::NotEqualI8, TapeOp::EqualI8, static_cast<int8_t>(wanted));
            default:
                return false;
        }
    }
    std::string describe(size_t) const override {
        if (asked_ == Asked::Truth) return expected_ ? "leaves unless it is true" : "leaves unless it is false";
        return (asked_ == Asked::Size ? "leaves unless the size is " : "leaves unless it is ") +
               std::to_string(expected_);
    }

  private:
    bool holds(PyObject* given) const {
        if (asked_ == Asked::Size) {
            if (!is_exact_array(given) || PyArray_NDIM(as_array(given)) <= axis_) return false;
            return PyArray_DIM(as_array(given), axis_) == expected_;
        }
        double number;
        if (!number_of(given, number)) return false;
        if (asked_ == Asked::Truth) return (number != 0) == (expected_ != 0);  // NaN is true
        return std::trunc(number) == static_cast<double>(expected_);
    }

    const Asked asked_;
    const int axis_;
    const int64_t expected_;
};

}  // namespace

bool runs_quietly() { return quiet_runs != 0; }

namespace {

PyObject* count_quiet(PyObject*, PyObject* change) {
    const long by = PyLong_AsLong(change);
    if (by == -1 && PyErr_Occurred()) return nullptr;
    quiet_runs += by;
    Py_RETURN_NONE;
}

PyMethodDef guard_functions[] = {
    {"count_quiet", count_quiet, METH_O, "count_quiet(change): runs that compute again what was computed, silently."},
    {},
};

}  // namespace

int make_guard_step(const Rewrite& r, uint32_t i, std::unique_ptr<NativeStep>& step) {
    const PyNode& node = r.g.node_as<PyNode>(i);
    if (!is_guard(node) || node.inputs().size() != 1 || node.form()) return 0;
    Ref asked = Ref::steal(PyObject_GetAttr(node.fn(), up_attributes.asked));
    Ref expected = asked ? Ref::steal(PyObject_GetAttr(node.fn(), up_attributes.outcome)) : Ref();
    const char* text = expected ? PyUnicode_AsUTF8(asked.get()) : nullptr;
    if (!text) return -1;
    const long long value = PyLong_AsLongLong(expected.get());
    if (value == -1 && PyErr_Occurred()) return -1;
    if (value <= -(int64_t{1} << 53) || value >= int64_t{1} << 53) return 0;
    const auto kind = static_cast<Asked>(text[0]);
    const int axis = kind == Asked::Size ? text[1] - '0' : 0;
    if (kind == Asked::Truth || kind == Asked::Integer || kind == Asked::Size)
        step = std::make_unique<GuardStep>(r.g, i, kind, axis, value);
    return 0;
}

int guard_step_init(PyObject* module) { return PyModule_AddFunctions(module, guard_functions); }

}  // namespace pyop
