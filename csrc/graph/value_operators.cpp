// graph/value_operators.cpp: define Value's operators as NumPy's ufuncs.
#include <array>
#include <cmath>

#include "array/protocol/containers.h"
#include "array/protocol/operators.h"
#include "graph/build.h"
#include "runtime/errors.h"
#include "runtime/lazy.h"
#include "runtime/refusal.h"
#include "runtime/up_calls.h"

namespace pyop {

namespace {

// The ufuncs beside those of operators.h that operators become.
enum More { Power, Less, LessEqual, Equal, NotEqual, Greater, GreaterEqual, kMore };
constexpr std::array<const char*, kMore> more_names = {"power",     "less",    "less_equal",   "equal",
                                                       "not_equal", "greater", "greater_equal"};

// For the life of the process.
std::array<PyObject*, kOperators> ufuncs;
std::array<PyObject*, kMore> more_ufuncs;

// What an operator takes beside a Value.
bool is_value_operand(PyObject* o) {
    return is_value(o) || is_array_operand(o) || PyUnicode_Check(o) || PyBytes_Check(o) || is_dim(o);
}

// An array meets any object element by element, by methods of that object (a Fraction, a range, a class of the user).
// Were it left to Python, a method would be called once, with the Value, and == would say that they are two objects.
PyObject* refuse_operand(PyObject* other) {
    if (check_no_rules(other, "beside a Value") < 0) return nullptr;
    if (has_its_say(other) || has_no_arithmetic(other)) Py_RETURN_NOTIMPLEMENTED;
    return refuse(PyExc_TypeError,
                  "a Value and an object of type '%s': NumPy makes an array of that and works on each element, by "
                  "methods of the object; make a number or an array of it before: float(y), np.asarray(y)",
                  Py_TYPE(other)->tp_name);
}

PyObject* call_two(PyObject* ufunc, PyObject* a, PyObject* b) {
    if (!is_value_operand(a) || !is_value_operand(b)) return refuse_operand(is_value_operand(a) ? b : a);
    PyObject* inputs[] = {a, b};
    return guarded([&] { return operator_call_new(ufunc, inputs, 2); }, static_cast<PyObject*>(nullptr));
}

// Python's complex number on the left of a float64 scalar, which is a float to it, computes itself. The rules of pyop
// compute with arrays.
bool computes_itself(PyObject* a, PyObject* b) {
    if (!PyComplex_CheckExact(a) || !is_value(b) || !stands_for_scalar(b)) return false;
    const PyArray_Descr* descr = graph_of(as_value(b)->graph).spec(as_value(b)->edge).descr();
    return descr && descr->type_num == NPY_DOUBLE && !in_own_code();
}

PyObject* call_complex(PyObject* ufunc, PyObject* a, PyObject* b) {
    return PyObject_CallFunctionObjArgs(up_calls.complex_with_scalar, ufunc, a, b, nullptr);
}

PyObject* call_one(PyObject* ufunc, PyObject* a) {
    return guarded([&] { return operator_call_new(ufunc, &a, 1); }, static_cast<PyObject*>(nullptr));
}

// NumPy's scalars leave the product with a list, a tuple or a text to Python, which repeats it, where their arrays
// multiply element by element.
bool repeats(PyObject* a, PyObject* b) {
    const auto sequence = [](PyObject* o) {
        return PyList_Check(o) || PyTuple_Check(o) || PyUnicode_Check(o) || PyBytes_Check(o) || PyByteArray_Check(o);
    };
    return (is_value(a) && sequence(b) && stands_for_scalar(a)) || (is_value(b) && sequence(a) && stands_for_scalar(b));
}

PyObject* refuse_repetition(PyObject* a, PyObject* b) {
    PyObject* sequence = is_value(a) ? b : a;
    return refuse(
        PyExc_TypeError,
        "a scalar * a %s: Python repeats it, if the scalar is an integer, as often as is known only when the graph "
        "runs; write np.multiply(x, y) for the products of the elements",
        Py_TYPE(sequence)->tp_name);
}

struct ValueSlots {
    template <Operator which>
    static PyObject* binary(PyObject* a, PyObject* b) {
        if constexpr (which == Operator::Multiply)
            if (repeats(a, b)) return refuse_repetition(a, b);
        if constexpr (which == Operator::Add || which == Operator::Subtract || which == Operator::Multiply ||
                      which == Operator::TrueDivide)
            if (computes_itself(a, b)) return call_complex(ufuncs[static_cast<size_t>(which)], a, b);
        return call_two(ufuncs[static_cast<size_t>(which)], a, b);
    }
    template <Operator which>
    static PyObject* unary(PyObject* a) {
        return call_one(ufuncs[static_cast<size_t>(which)], a);
    }
};

// `operator.pow` as a node, with the specs of np.power.
PyObject* operator_power(PyObject* a, PyObject* number) {
    static constinit Lazy function;
    PyObject* pow_function = function.attribute("operator", "pow");
    if (!pow_function) return nullptr;
    PyObject* inputs[] = {a, number};
    return guarded([&] { return ufunc_call_new(more_ufuncs[Power], inputs, 2, pow_function); },
                   static_cast<PyObject*>(nullptr));
}

// The ufunc that NumPy's ** is for an array of this dtype and this number (python/pyop/graph/powers.py), or None.
Ref power_of(PyArray_Descr* descr, PyObject* number) {
    return Ref::steal(
        PyObject_CallFunctionObjArgs(up_calls.power_of, reinterpret_cast<PyObject*>(descr), number, nullptr));
}

// NumPy's ** is not np.power for some exponents: a float array squared is np.square, and so on. Which exponents
// depends on NumPy's release; where in doubt, the operator itself runs on the array. Scalars have no such exponents.
PyObject* number_power(PyObject* a, PyObject* number) {
    if (stands_for_scalar(a)) return call_two(more_ufuncs[Power], a, number);
    PyArray_Descr* descr = graph_of(as_value(a)->graph).spec(as_value(a)->edge).descr();
    const Py_complex exponent = PyComplex_AsCComplex(number);
    if (exponent.real == -1.0 && PyErr_Occurred()) {  // too large to be one of them
        PyErr_Clear();
        return call_two(more_ufuncs[Power], a, number);
    }
    const double e = exponent.imag == 0.0 ? exponent.real : std::nan("");
    if (e != 0.0 && e != 1.0 && e != 2.0 && e != -1.0 && e != 0.5) return call_two(more_ufuncs[Power], a, number);
    if (!descr) return operator_power(a, number);
    Ref ufunc = power_of(descr, number);
    if (!ufunc) return nullptr;
    if (ufunc.get() == more_ufuncs[Power]) return call_two(ufunc.get(), a, number);
    if (ufunc.get() != Py_None) return call_one(ufunc.get(), a);
    // Powers of integers are what they are, by whatever loop.
    if (PyTypeNum_ISINTEGER(descr->type_num) && PyLong_CheckExact(number))
        return call_two(more_ufuncs[Power], a, number);
    return operator_power(a, number);
}

bool is_exponent(PyObject* o) {
    return PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyComplex_CheckExact(o) || PyArray_IsScalar(o, Number);
}

PyObject* value_power(PyObject* a, PyObject* b, PyObject* modulus) {
    if (modulus != Py_None) {
        PyErr_SetString(PyExc_TypeError, "pow() of a Value takes no modulus");
        return nullptr;
    }
    if (computes_itself(a, b)) return call_complex(more_ufuncs[Power], a, b);
    return is_value(a) && is_exponent(b) ? number_power(a, b) : call_two(more_ufuncs[Power], a, b);
}

PyObject* value_compare(PyObject* a, PyObject* b, int op) {
    if (b == Py_None && (op == Py_EQ || op == Py_NE))
        return refuse(
            PyExc_TypeError,
            "a Value compared with None by == or !=: NumPy compares element by element, which gives an array; "
            "write `x is None` to ask whether there is an array");
    if (!is_value_operand(b)) return refuse_operand(b);
    // Py_LT, Py_LE, Py_EQ, Py_NE, Py_GT, Py_GE are 0 to 5.
    return call_two(more_ufuncs[static_cast<size_t>(Less + op)], a, b);
}

}  // namespace

int value_operator_slots(std::vector<PyType_Slot>& slots) {
    Ref numpy = Ref::steal(PyImport_ImportModule("numpy"));
    const auto find = [&](PyObject*& ufunc, const char* name) {
        ufunc = numpy ? PyObject_GetAttrString(numpy.get(), name) : nullptr;
        return ufunc != nullptr;
    };
    for (size_t i = 0; i < kOperators; ++i)
        if (!find(ufuncs[i], kOperatorRows[i].ufunc)) return -1;
    for (size_t i = 0; i < kMore; ++i)
        if (!find(more_ufuncs[i], more_names[i])) return -1;
    add_operator_slots<ValueSlots>(slots);
    slots.push_back(type_slot(Py_nb_power, value_power));
    slots.push_back(type_slot(Py_tp_richcompare, value_compare));
    return 0;
}

}  // namespace pyop
