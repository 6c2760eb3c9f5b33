// graph/value_in_place.cpp: assign to Values in place. `y += 1` writes into NumPy's array, so that all names of it see
// that; here the handle moves on to the node that computes the new numbers. A scalar is not written but bound anew.
#include <array>

#include "array/protocol/operators.h"
#include "graph/build.h"
#include "graph/storage.h"
#include "runtime/errors.h"
#include "runtime/refusal.h"
#include "runtime/up_calls.h"

namespace pyop {

namespace {

// For the life of the process.
std::array<PyObject*, kOperators> in_place_ufuncs;

constexpr const char* kSymbols[kOperators] = {
    "+=", "-=", "*=", "%=", nullptr, "<<=", ">>=", "&=", "^=", "|=", "//=", "/=", "@="};
constexpr const char* kMethods[kOperators] = {"iadd", "isub", "imul", "imod",      nullptr,    "ilshift", "irshift",
                                              "iand", "ixor", "ior",  "ifloordiv", "itruediv", "imatmul"};

PYOP_COLD PyObject* unknown_form(PyObject* value, const char* operation) {
    Ref text = Ref::steal(text_of_value(value));
    if (!text) return nullptr;
    return refuse(
        PyExc_TypeError,
        "`%s` of %U: it is not known whether NumPy has an array here, which is written, or a scalar, which is "
        "not: write `x = x + ...` (with the operator in place of the +), which makes a new one of either",
        operation, text.get());
}

// What `made` is has been written over what the handle shows; new reference to the handle.
PyObject* moved(PyObject* value, PyObject* made) {
    if (!is_value(made) || as_value(made)->graph != as_value(value)->graph) {
        PyErr_SetString(PyExc_SystemError, "an augmented assignment must give a Value of the same graph");
        return nullptr;
    }
    return write_whole(as_value(value), as_value(made)->edge) < 0 ? nullptr : Py_NewRef(value);
}

PyObject* by_rules(PyObject* value, PyObject* other, const char* method, const char* symbol) {
    Ref made = Ref::steal(PyObject_CallFunction(up_calls.value_in_place, "ssOO", method, symbol, value, other));
    if (!made || made.get() == Py_NotImplemented || made.get() == value) return made.release();
    return moved(value, made.get());
}

int ndim_of(PyObject* o) {
    if (is_value(o)) return graph_of(as_value(o)->graph).spec(as_value(o)->edge).ndim;
    return is_exact_array(o) ? PyArray_NDIM(as_array(o)) : 0;
}

// Whether NumPy could lay out a new array otherwise than the target: it looks at all operands then. What lies otherwise
// is summed in another order later.
bool may_lie_otherwise(const ValueSpec& target, PyObject* other) { return target.ndim > 1 && ndim_of(other) > 1; }

template <Operator which>
PyObject* value_inplace(PyObject* value, PyObject* other) {
    constexpr auto at = static_cast<size_t>(which);
    const ValueSpec& spec = graph_of(as_value(value)->graph).spec(as_value(value)->edge);
    if (spec.form == Form::Scalar) return row_of(which).binary(value, other);
    if (spec.form == Form::Unknown) return unknown_form(value, kSymbols[at]);
    PyObject* inputs[] = {value, other};
    // Of no dimension a ufunc returns a scalar, and the array stays one.
    if (spec.ndim <= 0 || may_lie_otherwise(spec, other) || !ufunc_keeps_spec(in_place_ufuncs[at], inputs, 2))
        return by_rules(value, other, kMethods[at], kSymbols[at]);
    if (check_writable(value, kSymbols[at]) < 0) return nullptr;
    Ref made = guarded([&] { return Ref::steal(ufunc_call_new(in_place_ufuncs[at], inputs, 2)); }, Ref());
    return made ? moved(value, made.get()) : nullptr;
}

PyObject* value_inplace_power(PyObject* value, PyObject* other, PyObject* modulus) {
    const ValueSpec& spec = graph_of(as_value(value)->graph).spec(as_value(value)->edge);
    if (spec.form == Form::Scalar || modulus != Py_None) return PyNumber_Power(value, other, modulus);
    if (spec.form == Form::Unknown) return unknown_form(value, "**=");
    return by_rules(value, other, "ipow", "**=");
}

}  // namespace

int value_in_place_slots(std::vector<PyType_Slot>& slots) {
    Ref numpy = Ref::steal(PyImport_ImportModule("numpy"));
    for (size_t i = 0; i < kOperators; ++i) {
        in_place_ufuncs[i] = numpy ? PyObject_GetAttrString(numpy.get(), kOperatorRows[i].ufunc) : nullptr;
        if (!in_place_ufuncs[i]) return -1;
    }
    const PyType_Slot own[] = {
        type_slot(Py_nb_inplace_add, value_inplace<Operator::Add>),
        type_slot(Py_nb_inplace_subtract, value_inplace<Operator::Subtract>),
        type_slot(Py_nb_inplace_multiply, value_inplace<Operator::Multiply>),
        type_slot(Py_nb_inplace_remainder, value_inplace<Operator::Remainder>),
        type_slot(Py_nb_inplace_lshift, value_inplace<Operator::LeftShift>),
        type_slot(Py_nb_inplace_rshift, value_inplace<Operator::RightShift>),
        type_slot(Py_nb_inplace_and, value_inplace<Operator::And>),
        type_slot(Py_nb_inplace_xor, value_inplace<Operator::Xor>),
        type_slot(Py_nb_inplace_or, value_inplace<Operator::Or>),
        type_slot(Py_nb_inplace_floor_divide, value_inplace<Operator::FloorDivide>),
        type_slot(Py_nb_inplace_true_divide, value_inplace<Operator::TrueDivide>),
        type_slot(Py_nb_inplace_matrix_multiply, value_inplace<Operator::Matmul>),
        type_slot(Py_nb_inplace_power, value_inplace_power),
    };
    slots.insert(slots.end(), std::begin(own), std::end(own));
    return 0;
}

}  // namespace pyop
