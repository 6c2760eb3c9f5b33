// autograd/tensor_operators.cpp: operators of Tensors, and NumPy's protocols on them.
//
// An operator whose operands need no gradient is the operator of their arrays. Anything else is recorded by
// pyop/autograd/recording.py.
#include "autograd/engine.h"
#include "autograd/state.h"
#include "autograd/tensor_parts.h"
#include "runtime/errors.h"

namespace pyop {

namespace {

enum Operator {
    Add,
    Subtract,
    Multiply,
    Remainder,
    Divmod,
    FloorDivide,
    TrueDivide,
    Matmul,
    And,
    Or,
    Xor,
    LeftShift,
    RightShift,
    Negative,
    Positive,
    Absolute,
    Invert,
    kOperators
};
constexpr const char* names[kOperators] = {"add",          "subtract",    "multiply",    "remainder",   "divmod",
                                           "floor_divide", "true_divide", "matmul",      "bitwise_and", "bitwise_or",
                                           "bitwise_xor",  "left_shift",  "right_shift", "negative",    "positive",
                                           "absolute",     "invert"};

// What the operator is on arrays.
PyObject* on_arrays(Operator which, PyObject* a, PyObject* b) {
    switch (which) {
        case Add:
            return PyNumber_Add(a, b);
        case Subtract:
            return PyNumber_Subtract(a, b);
        case Multiply:
            return PyNumber_Multiply(a, b);
        case Remainder:
            return PyNumber_Remainder(a, b);
        case Divmod:
            return PyNumber_Divmod(a, b);
        case FloorDivide:
            return PyNumber_FloorDivide(a, b);
        case TrueDivide:
            return PyNumber_TrueDivide(a, b);
        case Matmul:
            return PyNumber_MatrixMultiply(a, b);
        case And:
            return PyNumber_And(a, b);
        case Or:
            return PyNumber_Or(a, b);
        case Xor:
            return PyNumber_Xor(a, b);
        case LeftShift:
            return PyNumber_Lshift(a, b);
        case RightShift:
            return PyNumber_Rshift(a, b);
        case Negative:
            return PyNumber_Negative(a);
        case Positive:
            return PyNumber_Positive(a);
        case Absolute:
            return PyNumber_Absolute(a);
        default:
            return PyNumber_Invert(a);
    }
}

bool is_operand(PyObject* o) {
    return is_tensor(o) || PyArray_Check(o) || PyArray_CheckScalar(o) || PyFloat_Check(o) || PyLong_Check(o) ||
           PyComplex_Check(o) || PyList_Check(o) || PyTuple_Check(o);
}

// Whether an operation on it has to be looked at more closely than its numbers.
bool is_watched(PyObject* o) {
    if (!is_tensor(o)) return false;
    const TensorObject* t = as_tensor(o);
    return (t->requires_grad && autograd_state.recording) || (autograd_state.forward_level && t->extra);
}

PyObject* numbers(PyObject* o) { return is_tensor(o) ? as_object(as_tensor(o)->data) : o; }

PyObject* wrapped(PyObject* result) {
    if (!result) return nullptr;
    if (is_exact_array(result)) return as_object(tensor_new_steal(as_array(result)));
    if (PyArray_CheckScalar(result)) {
        PyObject* array = PyArray_EnsureArray(result);
        return array ? as_object(tensor_new_steal(as_array(array))) : nullptr;
    }
    return result;
}

PyObject* recorded(Operator which, PyObject* a, PyObject* b) {
    PyObject* call = support("operator");
    Ref name = Ref::steal(PyUnicode_FromString(names[which]));
    if (!call || !name) return nullptr;
    PyObject* args[] = {name.get(), a, b};
    return vectorcall_new(call, args, b ? 3 : 2);
}

template <Operator which>
PyObject* binary(PyObject* a, PyObject* b) {
    if (!is_operand(a) || !is_operand(b)) Py_RETURN_NOTIMPLEMENTED;
    if (is_watched(a) || is_watched(b)) return recorded(which, a, b);
    PyObject* result = on_arrays(which, numbers(a), numbers(b));
    if (which != Divmod || !result || !PyTuple_CheckExact(result)) return wrapped(result);
    Ref both = Ref::steal(result);
    Ref first = Ref::steal(wrapped(Py_NewRef(PyTuple_GET_ITEM(result, 0))));
    Ref second = Ref::steal(wrapped(Py_NewRef(PyTuple_GET_ITEM(result, 1))));
    return first && second ? PyTuple_Pack(2, first.get(), second.get()) : nullptr;
}

template <Operator which>
PyObject* unary(PyObject* a) {
    if (is_watched(a)) return recorded(which, a, nullptr);
    return wrapped(on_arrays(which, numbers(a), nullptr));
}

PyObject* power(PyObject* a, PyObject* b, PyObject* modulus) {
    if (!is_operand(a) || !is_operand(b) || modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
    if (!is_watched(a) && !is_watched(b)) return wrapped(PyNumber_Power(numbers(a), numbers(b), Py_None));
    PyObject* call = support("power");
    PyObject* args[] = {a, b};
    return call ? vectorcall_new(call, args, 2) : nullptr;
}

PyObject* richcompare(PyObject* a, PyObject* b, int op) {
    if (!is_operand(b)) Py_RETURN_NOTIMPLEMENTED;
    return wrapped(PyObject_RichCompare(numbers(a), numbers(b), op));
}

int to_bool(PyObject* a) { return PyObject_IsTrue(numbers(a)); }
PyObject* to_float(PyObject* a) { return PyNumber_Float(numbers(a)); }
PyObject* to_int(PyObject* a) { return PyNumber_Long(numbers(a)); }
PyObject* to_index(PyObject* a) { return PyNumber_Index(numbers(a)); }
Py_ssize_t length(PyObject* a) { return PyObject_Size(numbers(a)); }

PyObject* subscript(PyObject* a, PyObject* key) {
    PyObject* call = support("getitem");
    PyObject* args[] = {a, key};
    return call ? vectorcall_new(call, args, 2) : nullptr;
}

int assign(PyObject* a, PyObject* key, PyObject* value) {
    PyObject* call = support("setitem");
    PyObject* args[] = {a, key, value};
    if (!call) return -1;
    if (!value) {
        PyErr_SetString(PyExc_TypeError, "elements of a Tensor cannot be deleted");
        return -1;
    }
    Ref done = Ref::steal(vectorcall_new(call, args, 3));
    return done ? 0 : -1;
}

PyObject* iterate(PyObject* a) {
    PyObject* call = support("iterate");
    return call ? vectorcall_new(call, &a, 1) : nullptr;
}

template <typename Function>
PyType_Slot slot(int id, Function* function) {
    return {id, reinterpret_cast<void*>(function)};
}

}  // namespace

int tensor_operator_slots(std::vector<PyType_Slot>& slots) {
    const PyType_Slot own[] = {
        slot(Py_tp_richcompare, richcompare),
        slot(Py_nb_add, binary<Add>),
        slot(Py_nb_subtract, binary<Subtract>),
        slot(Py_nb_multiply, binary<Multiply>),
        slot(Py_nb_remainder, binary<Remainder>),
        slot(Py_nb_divmod, binary<Divmod>),
        slot(Py_nb_power, power),
        slot(Py_nb_floor_divide, binary<FloorDivide>),
        slot(Py_nb_true_divide, binary<TrueDivide>),
        slot(Py_nb_matrix_multiply, binary<Matmul>),
        slot(Py_nb_and, binary<And>),
        slot(Py_nb_or, binary<Or>),
        slot(Py_nb_xor, binary<Xor>),
        slot(Py_nb_lshift, binary<LeftShift>),
        slot(Py_nb_rshift, binary<RightShift>),
        slot(Py_nb_negative, unary<Negative>),
        slot(Py_nb_positive, unary<Positive>),
        slot(Py_nb_absolute, unary<Absolute>),
        slot(Py_nb_invert, unary<Invert>),
        slot(Py_nb_bool, to_bool),
        slot(Py_nb_float, to_float),
        slot(Py_nb_int, to_int),
        slot(Py_nb_index, to_index),
        slot(Py_mp_length, length),
        slot(Py_mp_subscript, subscript),
        slot(Py_mp_ass_subscript, assign),
        slot(Py_tp_iter, iterate),
    };
    slots.insert(slots.end(), std::begin(own), std::end(own));
    return 0;
}

PyObject* tensor_array_ufunc(PyObject*, PyObject* args, PyObject* kwargs) {
    PyObject* call = support("array_ufunc");
    return call ? survive([&] { return PyObject_Call(call, args, kwargs); }) : nullptr;
}

PyObject* tensor_array_function(PyObject*, PyObject* args) {
    PyObject* call = support("array_function");
    return call ? survive([&] { return PyObject_Call(call, args, nullptr); }) : nullptr;
}

}  // namespace pyop
