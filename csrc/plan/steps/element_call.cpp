// plan/steps/element_call.cpp: read the calls of nodes, and find in which dtype NumPy computes them.
#include "plan/steps/element_call.h"

#include <algorithm>
#include <cstring>

#include "array/loop/fp_flags.h"
#include "array/protocol/scalar_operator.h"
#include "plan/group/ufunc_loops.h"
#include "plan/native_call.h"
#include "plan/steps/call_arguments.h"
#include "plan/tape/element_cast.h"
#include "plan/tape/tape_builder.h"
#include "runtime/up_calls.h"

#define NO_IMPORT_UFUNC  // only the struct is used
#include <numpy/ufuncobject.h>

namespace pyop {

namespace {

PyArray_Descr* dtype_of_type(int type_num) {
    PyArray_Descr* dtype = PyArray_DescrFromType(type_num);  // lives for ever
    Py_DECREF(dtype);
    return dtype;
}

// The ufuncs of Python's operators, by their names in the module `operator`.
struct OperatorName {
    const char *name, *ufunc;
};
constexpr OperatorName kOperatorNames[] = {
    {"add", "add"},           {"sub", "subtract"},       {"mul", "multiply"},          {"truediv", "divide"},
    {"mod", "remainder"},     {"pow", "power"},          {"floordiv", "floor_divide"}, {"lt", "less"},
    {"le", "less_equal"},     {"eq", "equal"},           {"ne", "not_equal"},          {"gt", "greater"},
    {"ge", "greater_equal"},  {"and_", "bitwise_and"},   {"or_", "bitwise_or"},        {"xor", "bitwise_xor"},
    {"lshift", "left_shift"}, {"rshift", "right_shift"},
};

// Borrowed, for the life of the process; null, without an error, if it is another function.
PyObject* ufunc_of_operator(PyObject* function) {
    struct Entry {
        PyObject *function, *ufunc;
    };
    static std::array<Entry, std::size(kOperatorNames)> known{};
    if (!known.back().ufunc) {
        Ref module = Ref::steal(PyImport_ImportModule("operator"));
        for (size_t k = 0; module && k < known.size(); ++k) {
            Ref one = Ref::steal(PyObject_GetAttrString(module.get(), kOperatorNames[k].name));
            Ref ufunc = Ref::steal(find_below_numpy(kOperatorNames[k].ufunc));
            if (!one || !ufunc) break;
            known[k] = {one.release(), ufunc.release()};
        }
        PyErr_Clear();
    }
    for (const Entry& entry : known)
        if (entry.function == function) return entry.ufunc;
    return nullptr;
}

class ElementReader {
  public:
    ElementReader(const Rewrite& r, uint32_t i) : r_(r), i_(i), node_(r.g.node_as<PyNode>(i)) {}

    // 1: `call` is it; 0: it is none; -1: error set.
    int run() {
        if (node_.contract() || node_.stateful() || (node_.form() && node_.form()->n_keywords())) return 0;
        const size_t n = n_arguments(node_);
        if (n < 1 || node_.n_outputs() < 1 || node_.n_outputs() > 2) return 0;
        for (uint32_t k = 0; k < node_.n_outputs(); ++k) {
            PyArray_Descr* dtype = number_dtype({i_, k});
            if (!dtype) return 0;
            call.results.push_back(dtype);
        }
        if (node_.fn() == ndarray_astype()) return read_astype();
        if (n > StridedLoop::kMaxOperands - node_.n_outputs()) return 0;
        PyObject* function = node_.fn();
        Ref owned, numbers;
        if (reinterpret_cast<PyObject*>(Py_TYPE(function)) == up_calls.number_call) {
            owned = Ref::steal(PyObject_GetAttr(function, up_attributes.fn));
            numbers = Ref::steal(PyObject_GetAttr(function, up_attributes.numbers));
            if (!owned || !numbers) return -1;
            if (!PyTuple_Check(numbers.get()) || static_cast<size_t>(PyTuple_GET_SIZE(numbers.get())) != n) return 0;
            function = owned.get();
        }
        for (size_t k = 0; k < n; ++k)
            if (!read_operand(k, numbers.get())) return 0;
        if (function == numpy_where()) return read_where();
        if (n == 1 && is_numpy_round(function)) return read_round();
        if (is_elementwise_ufunc(function)) return node_.of_scalars() ? read_operator(function) : read_ufunc(function);
        PyObject* const ufunc = numbers && any_scalar_ ? ufunc_of_operator(function) : nullptr;
        return ufunc ? read_operator(ufunc) : 0;
    }

    ElementCall call;

  private:
    struct Given {
        PyObject* kind = nullptr;  // as NumPy's promotion sees it: a dtype, or a type of Python's numbers
        bool weak = false;  // a Python number; a bool is none to it, but has no type of NumPy's either
        bool truth = false;
        PyObject* constant = nullptr;
    };

    // The dtype of what is a number; null if it is none.
    PyArray_Descr* number_dtype(Edge e) const {
        const ValueSpec& spec = r_.g.spec(e);
        return spec.ndim == 0 && spec.descr() && TapeBuilder::fits(spec.descr()) ? spec.descr() : nullptr;
    }

    // `numbers`: which inputs Python's numbers, or NumPy's scalars, are made of first; may be null.
    bool read_operand(size_t k, PyObject* numbers) {
        const Argument argument = argument_of(node_, k);
        ElementOperand operand;
        Given given;
        PyArray_Descr* dtype = nullptr;
        if (PyObject* constant = argument.constant) {
            given.constant = constant;
            given.truth = PyBool_Check(constant);
            given.weak = is_python_number(constant);
            dtype = given.truth                    ? dtype_of_type(NPY_BOOL)
                    : PyFloat_CheckExact(constant) ? dtype_of_type(NPY_DOUBLE)
                    : PyLong_CheckExact(constant)  ? dtype_of_type(NPY_INT64)
                    : given.weak                   ? dtype_of_type(NPY_CDOUBLE)
                                                   : scalar_dtype(constant);
            if (!dtype || !TapeBuilder::fits(dtype)) return false;
            if (PyLong_CheckExact(constant)) {
                int overflow;
                operand.constant[0].I64 = PyLong_AsLongLongAndOverflow(constant, &overflow);
                if (overflow) return false;
            } else if (PyFloat_CheckExact(constant)) {
                operand.constant[0].F64 = PyFloat_AS_DOUBLE(constant);
            } else if (given.truth) {
                operand.constant[0].Bool = constant == Py_True;
            } else if (given.weak) {
                operand.constant[0].F64 = PyComplex_RealAsDouble(constant);
                operand.constant[1].F64 = PyComplex_ImagAsDouble(constant);
            } else {
                PyArray_ScalarAsCtype(constant, operand.constant);
            }
        } else {
            operand.input = argument.input;
            dtype = number_dtype(node_.inputs()[static_cast<size_t>(argument.input)]);
            if (!dtype) return false;
            if (numbers) {
                PyObject* const how = PyTuple_GET_ITEM(numbers, static_cast<Py_ssize_t>(k));
                const bool number = how == Py_True;
                given.truth = number && dtype->type_num == NPY_BOOL;
                given.weak = number && !given.truth;
                if (given.weak && dtype->type_num != NPY_DOUBLE && dtype->type_num != NPY_INT64 &&
                    dtype->type_num != NPY_CDOUBLE)
                    return false;
                any_scalar_ |= PyLong_CheckExact(how) && PyLong_AsLong(how) == 2;
                any_array_ |= how == Py_False;
            }
        }
        operand.have = dtype;
        given.kind = !given.weak                     ? reinterpret_cast<PyObject*>(dtype)
                     : dtype->type_num == NPY_DOUBLE ? reinterpret_cast<PyObject*>(&PyFloat_Type)
                     : dtype->type_num == NPY_INT64  ? reinterpret_cast<PyObject*>(&PyLong_Type)
                                                     : reinterpret_cast<PyObject*>(&PyComplex_Type);
        any_scalar_ |= !numbers && !given.weak && !given.truth;
        call.operands.push_back(operand);
        given_.push_back(given);
        return true;
    }

    // Each operand as what is computed in. False if NumPy must convert it.
    bool convert(size_t k, PyArray_Descr* want) {
        ElementOperand& operand = call.operands[k];
        // Two names of one type.
        if (want->type_num == NPY_LONGLONG) want = dtype_of_type(NPY_INT64);
        if (want->type_num == NPY_ULONGLONG) want = dtype_of_type(NPY_UINT64);
        operand.want = want;
        if (operand.have == want) return true;
        const int from = operand.have->type_num, to = want->type_num;
        operand.as_array = !given_[k].weak || from != NPY_INT64 || to == NPY_DOUBLE;
        operand.cast = given_[k].weak ? find_number_cast(from, to) : find_element_cast(from, to);
        if (!operand.cast) return false;
        if (operand.input >= 0) return true;
        if (all_fp_errors()) clear_all_fp_errors();
        TapeCell made[2] = {};
        const bool done = operand.cast(nullptr, operand.constant, nullptr, made) && !all_fp_errors();
        clear_all_fp_errors();
        std::copy_n(made, 2, operand.constant);
        operand.cast = nullptr;
        return done;
    }

    int read_astype() {
        const Argument array = argument_of(node_, 0), order = argument_of(node_, 2);
        if (node_.inputs().size() != 1 || call.results.size() != 1 || n_arguments(node_) < 3 || array.constant ||
            !order.constant || !PyUnicode_Check(order.constant) ||
            PyUnicode_CompareWithASCIIString(order.constant, "K") != 0 || !read_operand(0, nullptr))
            return 0;
        call.how = ElementCall::Cast;
        call.name = "cast";
        return convert(0, call.results[0]);
    }

    // Of an integer, which it is.
    int read_round() {
        if (!PyTypeNum_ISINTEGER(call.results[0]->type_num) || call.operands[0].have != call.results[0] ||
            call.results.size() != 1 || given_[0].constant)
            return 0;
        call.how = ElementCall::Cast;
        call.name = "round";
        return convert(0, call.results[0]);
    }

    int read_where() {
        if (call.operands.size() != 3 || call.results.size() != 1 || given_[0].constant) return 0;
        call.how = ElementCall::Where;
        call.name = "where";
        return convert(0, dtype_of_type(NPY_BOOL)) && convert(1, call.results[0]) && convert(2, call.results[0]);
    }

    // The loop of a ufunc for operands of these kinds. 1, 0 or -1 with an error set.
    int find(PyObject* ufunc, PyObject* const* kinds) {
        LoopKey key{ufunc, {}};
        std::copy_n(kinds, call.operands.size(), key.kinds.begin());
        const KnownLoop* known = find_loop(key, call.operands.size());
        if (!known) return -1;
        if (!known->call.loop || known->call.loop->may_raise() || known->call.loop->is_foreign()) return 0;
        const ElementwiseCall& found = known->call;
        if (found.dtypes.size() != call.operands.size() + call.results.size()) return 0;
        for (size_t k = 0; k < call.results.size(); ++k)
            if (found.dtypes[call.operands.size() + k] != call.results[k]) return 0;
        call.how = ElementCall::Loop;
        call.loop = found.loop;
        call.operation = found.operation;
        call.element = found.element;
        call.may_fail = !found.safe;
        call.of_scalar = call.operands.size() == 1 && !given_[0].constant &&
                         r_.g.spec(node_.inputs()[static_cast<size_t>(call.operands[0].input)]).form == Form::Scalar;
        call.name = found.name;
        own_ = known->own;
        for (size_t k = 0; k < call.operands.size(); ++k)
            if (!convert(k, found.dtypes[k])) return 0;
        return 1;
    }

    // Integers are computed without the loop, where they would have it raise.
    void watch_integers() {
        PyArray_Descr* const dtype = call.operands[0].want;
        if (!PyTypeNum_ISINTEGER(dtype->type_num) || !own_) return;
        for (const ElementOperand& operand : call.operands)
            if (operand.want != dtype) return;
        if (call.name == "divmod") {
            call.arithmetic = find_integer_arithmetic("floor_divide", dtype->type_num);
            call.rest = find_integer_arithmetic("remainder", dtype->type_num);
            if (call.rest.found()) call.how = ElementCall::Quotient;
        } else if (call.results.size() == 1 && call.results[0] == dtype) {
            call.arithmetic = find_integer_arithmetic(call.name, dtype->type_num);
            if (call.arithmetic.found()) call.how = ElementCall::Arithmetic;
        }
    }

    int read_ufunc(PyObject* ufunc) {
        PyObject* kinds[StridedLoop::kMaxOperands] = {};
        for (size_t k = 0; k < given_.size(); ++k) kinds[k] = given_[k].kind;
        const int found = find(ufunc, kinds);
        if (found == 1) watch_integers();
        return found;
    }

    // The type whose arithmetic NumPy's scalars take; null: the ufunc computes it.
    PyArray_Descr* arithmetic_type() const {
        PyArray_Descr* type = nullptr;
        for (size_t k = 0; k < given_.size(); ++k) {
            if (given_[k].weak || given_[k].truth) continue;
            PyArray_Descr* const other = call.operands[k].have;
            if (!type || type == other || PyArray_CanCastTo(type, other))
                type = type && type != other && PyArray_CanCastTo(other, type) ? type : other;
            else if (!PyArray_CanCastTo(other, type))
                return nullptr;
        }
        if (!type || type->type_num == NPY_BOOL) return nullptr;
        for (size_t k = 0; k < given_.size(); ++k) {
            // The slots of np.bool call the ufunc.
            if (k == 0 && !given_[0].weak && !given_[0].truth && call.operands[0].have->type_num == NPY_BOOL)
                return nullptr;
            if (!given_[k].weak) continue;
            const int number = call.operands[k].have->type_num;
            if (number == NPY_DOUBLE && !PyTypeNum_ISFLOAT(type->type_num) && !PyTypeNum_ISCOMPLEX(type->type_num))
                return nullptr;
            if (number == NPY_CDOUBLE && !PyTypeNum_ISCOMPLEX(type->type_num)) return nullptr;
        }
        return type;
    }

    int read_operator(PyObject* ufunc) {
        if (any_array_) return 0;
        // A float64 is a Python float to a Python complex, which computes with it.
        if (given_[0].kind == reinterpret_cast<PyObject*>(&PyComplex_Type) && given_.size() > 1 &&
            call.operands[1].have->type_num == NPY_DOUBLE)
            return 0;
        PyArray_Descr* type = arithmetic_type();
        // Of scalars that do not meet: the ufunc, whose operands are arrays to it.
        if (!type) return read_ufunc(ufunc);
        const char* const text = reinterpret_cast<PyUFuncObject*>(ufunc)->name;
        const std::string name = text ? text : "";
        // Comparisons with a Python int are exact, whether it fits or not.
        if (call.results[0]->type_num == NPY_BOOL && PyTypeNum_ISINTEGER(type->type_num) &&
            type->type_num != NPY_UINT64 &&
            std::any_of(given_.begin(), given_.end(), [](const Given& g) { return g.weak; }))
            type = dtype_of_type(NPY_INT64);
        PyObject* kinds[StridedLoop::kMaxOperands] = {};
        std::fill_n(kinds, given_.size(), reinterpret_cast<PyObject*>(type));
        call.arithmetic = find_scalar_arithmetic(name, type->type_num);
        if (!call.arithmetic.found() && name != "divmod" && !same_for_scalars(name, type)) return 0;
        if (name == "divmod" && !PyTypeNum_ISINTEGER(type->type_num) && !same_for_scalars("floor_divide", type))
            return 0;
        const int found = find(ufunc, kinds);
        if (found != 1) return found;
        for (size_t k = 0; k < given_.size(); ++k)
            if (!fit_first(k, type)) return 0;
        if (call.arithmetic.found())
            call.how = ElementCall::Arithmetic;
        else
            watch_integers();
        call.name = kScalarPrefix + call.name;
        return 1;
    }

    // A Python int becomes one of the scalars' type before it becomes one of what is computed in.
    bool fit_first(size_t k, PyArray_Descr* type) {
        ElementOperand& operand = call.operands[k];
        const int have = operand.have->type_num;
        if (!given_[k].weak || have != NPY_INT64 || operand.want == type || type->type_num == NPY_INT64) return true;
        if (operand.input < 0) return fits(given_[k].constant, type);
        operand.fit = find_number_cast(have, type->type_num);
        operand.first = type;
        operand.cast = find_element_cast(type->type_num, operand.want->type_num);
        operand.as_array = true;
        return operand.fit && operand.cast;
    }

    static bool fits(PyObject* number, PyArray_Descr* type) {
        TapeCell x, made[2];
        x.I64 = PyLong_AsLongLong(number);
        TapeCall::Function* const cast = find_number_cast(NPY_INT64, type->type_num);
        return cast && cast(nullptr, &x, nullptr, made);
    }

    const Rewrite& r_;
    const uint32_t i_;
    const PyNode& node_;
    FixedVector<Given, StridedLoop::kMaxOperands> given_;
    bool any_scalar_ = false, any_array_ = false, own_ = false;
};

}  // namespace

std::optional<ElementCall> read_element_call(const Rewrite& r, uint32_t node, bool& failed) {
    ElementReader reader(r, node);
    const int found = reader.run();
    failed = found < 0;
    if (found != 1) return {};
    return std::move(reader.call);
}

}  // namespace pyop
