// array/protocol/operators.h: define Python's operators that are NumPy's ufuncs, for types that stand for arrays.
#pragma once

#include <vector>

#include "array/numpy.h"

namespace pyop {

enum class Operator {
    Add,
    Subtract,
    Multiply,
    Remainder,
    Divmod,
    LeftShift,
    RightShift,
    And,
    Xor,
    Or,
    FloorDivide,
    TrueDivide,
    Matmul,
    Negative,  // the first of one operand
    Positive,
    Absolute,
    Invert,
};
inline constexpr size_t kOperators = 17;

struct OperatorRow {
    const char* ufunc;
    // On any objects: one of the first two, and for all but divmod the third.
    PyObject* (*binary)(PyObject*, PyObject*);
    PyObject* (*unary)(PyObject*);
    PyObject* (*in_place)(PyObject*, PyObject*);
};

inline constexpr OperatorRow kOperatorRows[kOperators] = {
    {"add", PyNumber_Add, nullptr, PyNumber_InPlaceAdd},
    {"subtract", PyNumber_Subtract, nullptr, PyNumber_InPlaceSubtract},
    {"multiply", PyNumber_Multiply, nullptr, PyNumber_InPlaceMultiply},
    {"remainder", PyNumber_Remainder, nullptr, PyNumber_InPlaceRemainder},
    {"divmod", PyNumber_Divmod, nullptr, nullptr},
    {"left_shift", PyNumber_Lshift, nullptr, PyNumber_InPlaceLshift},
    {"right_shift", PyNumber_Rshift, nullptr, PyNumber_InPlaceRshift},
    {"bitwise_and", PyNumber_And, nullptr, PyNumber_InPlaceAnd},
    {"bitwise_xor", PyNumber_Xor, nullptr, PyNumber_InPlaceXor},
    {"bitwise_or", PyNumber_Or, nullptr, PyNumber_InPlaceOr},
    {"floor_divide", PyNumber_FloorDivide, nullptr, PyNumber_InPlaceFloorDivide},
    {"true_divide", PyNumber_TrueDivide, nullptr, PyNumber_InPlaceTrueDivide},
    {"matmul", PyNumber_MatrixMultiply, nullptr, PyNumber_InPlaceMatrixMultiply},
    {"negative", nullptr, PyNumber_Negative, nullptr},
    {"positive", nullptr, PyNumber_Positive, nullptr},
    {"absolute", nullptr, PyNumber_Absolute, nullptr},
    {"invert", nullptr, PyNumber_Invert, nullptr},
};

constexpr const OperatorRow& row_of(Operator which) { return kOperatorRows[static_cast<size_t>(which)]; }

// What NumPy's operators take beside an array as array-like, but for text.
inline bool is_array_operand(PyObject* o) {
    return PyArray_Check(o) || PyArray_CheckScalar(o) || PyFloat_Check(o) || PyLong_Check(o) || PyComplex_Check(o) ||
           PyList_Check(o) || PyTuple_Check(o);
}

template <typename Function>
PyType_Slot type_slot(int id, Function* function) {
    return {id, reinterpret_cast<void*>(function)};
}

// The slots of a type whose operators are Slots::binary<which> and Slots::unary<which>.
template <class Slots>
void add_operator_slots(std::vector<PyType_Slot>& slots) {
    const PyType_Slot own[] = {
        type_slot(Py_nb_add, Slots::template binary<Operator::Add>),
        type_slot(Py_nb_subtract, Slots::template binary<Operator::Subtract>),
        type_slot(Py_nb_multiply, Slots::template binary<Operator::Multiply>),
        type_slot(Py_nb_remainder, Slots::template binary<Operator::Remainder>),
        type_slot(Py_nb_divmod, Slots::template binary<Operator::Divmod>),
        type_slot(Py_nb_lshift, Slots::template binary<Operator::LeftShift>),
        type_slot(Py_nb_rshift, Slots::template binary<Operator::RightShift>),
        type_slot(Py_nb_and, Slots::template binary<Operator::And>),
        type_slot(Py_nb_xor, Slots::template binary<Operator::Xor>),
        type_slot(Py_nb_or, Slots::template binary<Operator::Or>),
        type_slot(Py_nb_floor_divide, Slots::template binary<Operator::FloorDivide>),
        type_slot(Py_nb_true_divide, Slots::template binary<Operator::TrueDivide>),
        type_slot(Py_nb_matrix_multiply, Slots::template binary<Operator::Matmul>),
        type_slot(Py_nb_negative, Slots::template unary<Operator::Negative>),
        type_slot(Py_nb_positive, Slots::template unary<Operator::Positive>),
        type_slot(Py_nb_absolute, Slots::template unary<Operator::Absolute>),
        type_slot(Py_nb_invert, Slots::template unary<Operator::Invert>),
    };
    slots.insert(slots.end(), std::begin(own), std::end(own));
}

}  // namespace pyop
