// autograd/tensor_operators.cpp: define the operators of Tensors, and NumPy's protocols on them.
//
// An operator whose operands need no gradient is the operator of their arrays. Anything else is recorded by
// pyop/autograd/recording.py.
#include "array/protocol/containers.h"
#include "array/protocol/operators.h"
#include "autograd/builtin.h"
#include "autograd/engine.h"
#include "autograd/function_parts.h"
#include "autograd/state.h"
#include "autograd/tensor_parts.h"
#include "autograd/turn.h"
#include "graph/value.h"
#include "runtime/errors.h"
#include "runtime/refusal.h"
#include "runtime/up_calls.h"

namespace pyop {

namespace {

bool is_tensor_operand(PyObject* o) { return is_tensor(o) || is_array_operand(o); }
bool is_in_place_operand(PyObject* o) { return is_tensor_operand(o) || is_value(o) || is_batched(o); }

// A container would take the numbers by its own rules, and an array meets any other object element by element, by
// methods of that object, which Python would call once, with the Tensor.
PyObject* refuse_operands(PyObject* a, PyObject* b) {
    PyObject* const other = is_tensor_operand(a) ? b : a;
    if (check_no_rules(other, "beside a Tensor") < 0) return nullptr;
    if (has_its_say(other) || has_no_arithmetic(other)) Py_RETURN_NOTIMPLEMENTED;
    return refuse(PyExc_TypeError,
                  "a Tensor and an object of type '%s': NumPy makes an array of that and works on each element, by "
                  "methods of the object, which no gradient is known of; make a number or an array of it before: "
                  "float(y), np.asarray(y)",
                  Py_TYPE(other)->tp_name);
}

PyObject* numbers_of(PyObject* o) { return is_tensor(o) ? as_object(as_tensor(o)->data) : o; }

bool is_scalar(PyObject* o) { return is_tensor(o) ? as_tensor(o)->is_scalar : !is_exact_array(o); }

// What NumPy has there: its scalars have arithmetic of their own (array/protocol/scalar_operator.h).
Ref operand_of(PyObject* o) {
    if (!is_tensor(o) || !as_tensor(o)->is_scalar) return Ref::borrow(numbers_of(o));
    PyArrayObject* data = as_tensor(o)->data;
    return Ref::steal(PyArray_Scalar(PyArray_DATA(data), PyArray_DESCR(data), as_object(data)));
}

PyObject* on_operands(PyObject* (*operation)(PyObject*, PyObject*), PyObject* a, PyObject* b) {
    const Ref x = operand_of(a), y = operand_of(b);
    return x && y ? operation(x.get(), y.get()) : nullptr;
}

PyObject* wrapped(PyObject* result) {
    if (!result) return nullptr;
    if (is_exact_array(result)) return as_object(tensor_new_steal(as_array(result)));
    if (PyArray_CheckScalar(result)) {
        PyObject* array = PyArray_EnsureArray(result);
        TensorObject* t = array ? tensor_new_steal(as_array(array)) : nullptr;
        if (t) t->is_scalar = true;
        return as_object(t);
    }
    return result;
}

// The operations that are recorded without Python.
constexpr Builtin builtin_of(Operator which) {
    switch (which) {
        case Operator::Add:
            return Builtin::Add;
        case Operator::Subtract:
            return Builtin::Subtract;
        case Operator::Multiply:
            return Builtin::Multiply;
        case Operator::TrueDivide:
            return Builtin::Divide;
        case Operator::Matmul:
            return Builtin::Matmul;
        case Operator::Negative:
            return Builtin::Negative;
        case Operator::Absolute:
            return Builtin::Absolute;
        default:
            return Builtin::None;
    }
}

PyObject* recorded(Operator which, PyObject* a, PyObject* b) {
    if (const Builtin builtin = builtin_of(which); builtin != Builtin::None) {
        PyObject* made = nullptr;
        const bool scalars = is_scalar(a) && (!b || is_scalar(b));
        const int done = guarded([&] { return builtin_call(builtin, a, b, made, scalars); }, -1);
        if (done) return made;
    }
    Ref name = Ref::steal(PyUnicode_FromString(row_of(which).ufunc));
    if (!name) return nullptr;
    PyObject* args[] = {name.get(), a, b};
    return outside_new(up_calls.tensor_operator, args, b ? 3 : 2);
}

// A Tensor beside a Value is a constant of the graph, unless a gradient would have to go to it.
PyObject* with_value(PyObject* (*operation)(PyObject*, PyObject*), PyObject* a, PyObject* b) {
    if (is_watched(a) || is_watched(b)) {
        return refuse(PyExc_TypeError,
                      "a Tensor that requires a gradient cannot be part of a graph, which would lose its history: use "
                      "t.detach() for a constant, or make it an input of the graph");
    }
    return on_operands(operation, a, b);
}

struct OperatorSlots {
    template <Operator which>
    static PyObject* binary(PyObject* a, PyObject* b) {
        const Turn turn;
        if (is_value(a) || is_value(b)) return with_value(row_of(which).binary, a, b);
        if (!is_tensor_operand(a) || !is_tensor_operand(b)) return refuse_operands(a, b);
        if (is_watched(a) || is_watched(b)) return recorded(which, a, b);
        PyObject* result = on_operands(row_of(which).binary, a, b);
        if (which != Operator::Divmod || !result || !PyTuple_CheckExact(result)) return wrapped(result);
        Ref both = Ref::steal(result);
        Ref first = Ref::steal(wrapped(Py_NewRef(PyTuple_GET_ITEM(result, 0))));
        Ref second = Ref::steal(wrapped(Py_NewRef(PyTuple_GET_ITEM(result, 1))));
        return first && second ? PyTuple_Pack(2, first.get(), second.get()) : nullptr;
    }

    template <Operator which>
    static PyObject* unary(PyObject* a) {
        if (is_watched(a)) return recorded(which, a, nullptr);
        const Ref x = operand_of(a);
        return x ? wrapped(row_of(which).unary(x.get())) : nullptr;
    }
};

PyObject* power_of(PyObject* a, PyObject* b) { return PyNumber_Power(a, b, Py_None); }

PyObject* tensor_power(PyObject* a, PyObject* b, PyObject* modulus) {
    if (is_value(a) || is_value(b)) return with_value(power_of, a, b);
    if (!is_tensor_operand(a) || !is_tensor_operand(b)) return refuse_operands(a, b);
    if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
    if (!is_watched(a) && !is_watched(b)) return wrapped(on_operands(power_of, a, b));
    // As NumPy's operator does it for small exponents.
    Builtin builtin = Builtin::Power;
    if (is_scalar(a)) {
        // No exponent of a scalar is a function of its own.
    } else if (PyLong_CheckExact(b)) {
        int overflow = 0;
        if (PyLong_AsLongAndOverflow(b, &overflow) == 2) builtin = Builtin::Square;
    } else if (PyFloat_CheckExact(b) && PyFloat_AS_DOUBLE(b) == 0.5) {
        builtin = Builtin::Sqrt;
    }
    PyObject* made = nullptr;
    const int done = guarded(
        [&] { return builtin == Builtin::Power ? builtin_power(a, b, made) : builtin_call(builtin, a, nullptr, made); },
        -1);
    if (done) return made;
    PyObject* args[] = {a, b};
    return outside_new(up_calls.tensor_power, args, 2);
}

constexpr const char* kInPlaceText[] = {"+=", "-=", "*=", "%=", "", "<<=", ">>=", "&=", "^=", "|=", "//=", "/=", "@="};

template <Operator which>
PyObject* tensor_inplace(PyObject* a, PyObject* b) {
    if (as_tensor(a)->is_scalar) return OperatorSlots::binary<which>(a, b);  // a name gets another value
    if (!is_in_place_operand(b)) return refuse_operands(a, b);
    const OperatorRow& row = row_of(which);
    return tensor_in_place({kInPlaceText[static_cast<int>(which)], row.ufunc, builtin_of(which), row.in_place}, a, b);
}

PyObject* in_place_power_of(PyObject* a, PyObject* b) { return PyNumber_InPlacePower(a, b, Py_None); }

PyObject* tensor_inplace_power(PyObject* a, PyObject* b, PyObject* modulus) {
    if (as_tensor(a)->is_scalar) return tensor_power(a, b, modulus);
    if (!is_in_place_operand(b)) return refuse_operands(a, b);
    if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
    return tensor_in_place({"**=", "power", Builtin::None, in_place_power_of}, a, b);
}

PyObject* tensor_compare(PyObject* a, PyObject* b, int op) {
    const Ref x = operand_of(a), y = operand_of(b);
    if (!x || !y) return nullptr;
    if (is_value(b)) return PyObject_RichCompare(x.get(), b, op);
    // NumPy compares each element with any object.
    if (!is_tensor_operand(b)) {
        if (check_no_rules(b, "beside a Tensor") < 0) return nullptr;
        if (has_its_say(b)) Py_RETURN_NOTIMPLEMENTED;
    }
    return wrapped(PyObject_RichCompare(x.get(), y.get(), op));
}

int to_bool(PyObject* a) { return PyObject_IsTrue(numbers_of(a)); }
// A number for Python; what NumPy refuses is NumPy's error.
PyObject* number(PyObject* a, PyObject* made, const char* what) {
    if (!made || !is_watched(a)) return made;
    Py_DECREF(made);
    return refuse_numbers(what);
}
PyObject* to_float(PyObject* a) { return number(a, PyNumber_Float(numbers_of(a)), "float(x)"); }
PyObject* to_int(PyObject* a) { return number(a, PyNumber_Long(numbers_of(a)), "int(x)"); }
PyObject* to_index(PyObject* a) { return PyNumber_Index(numbers_of(a)); }

// NumPy asks for a buffer before it asks for an array: what is not recorded goes that way, which keeps the array the
// same object.
int get_buffer(PyObject* a, Py_buffer* buffer, int) {
    buffer->obj = nullptr;
    if (is_watched(a)) {
        refuse_numbers("memoryview(x), or conversion to an array,");
    } else {
        PyErr_SetString(PyExc_BufferError, "a Tensor has no buffer: use that of x.numpy()");
    }
    return -1;
}

// What NumPy says of a scalar of numbers; scalars of text are never recorded.
PyObject* no_sequence(PyObject* a, const char* format) {
    PyErr_Format(PyExc_TypeError, format, PyArray_DESCR(as_tensor(a)->data)->typeobj->tp_name);
    return nullptr;
}

Py_ssize_t tensor_length(PyObject* a) {
    if (!as_tensor(a)->is_scalar) return PyObject_Size(numbers_of(a));
    no_sequence(a, "object of type '%s' has no len()");
    return -1;
}

int tensor_contains(PyObject* a, PyObject* item) {
    if (as_tensor(a)->is_scalar) {
        no_sequence(a, "argument of type '%s' is not iterable");
        return -1;
    }
    Ref same = Ref::steal(PyObject_RichCompare(a, item, Py_EQ));
    Ref any = same ? Ref::steal(PyObject_CallMethod(same.get(), "any", nullptr)) : Ref();
    return any ? PyObject_IsTrue(any.get()) : -1;
}

PyObject* subscript(PyObject* a, PyObject* key) {
    PyObject* made = nullptr;
    if (guarded([&] { return builtin_getitem(a, key, made); }, -1)) return made;
    PyObject* args[] = {a, key};
    return outside_new(up_calls.tensor_getitem, args, 2);
}

int assign(PyObject* a, PyObject* key, PyObject* value) {
    PyObject* args[] = {a, key, value};
    if (!value) {
        PyErr_SetString(PyExc_TypeError, "elements of a Tensor cannot be deleted");
        return -1;
    }
    Ref done = Ref::steal(outside_new(up_calls.tensor_setitem, args, 3));
    return done ? 0 : -1;
}

PyObject* tensor_iterate(PyObject* a) {
    if (as_tensor(a)->is_scalar) return no_sequence(a, "'%s' object is not iterable");
    return outside_new(up_calls.tensor_iterate, &a, 1);
}

}  // namespace

int tensor_operator_slots(std::vector<PyType_Slot>& slots) {
    using enum Operator;
    add_operator_slots<OperatorSlots>(slots);
    const PyType_Slot own[] = {
        type_slot(Py_tp_richcompare, in_turn<tensor_compare>),
        type_slot(Py_nb_power, in_turn<tensor_power>),
        type_slot(Py_nb_inplace_add, in_turn<tensor_inplace<Add>>),
        type_slot(Py_nb_inplace_subtract, in_turn<tensor_inplace<Subtract>>),
        type_slot(Py_nb_inplace_multiply, in_turn<tensor_inplace<Multiply>>),
        type_slot(Py_nb_inplace_remainder, in_turn<tensor_inplace<Remainder>>),
        type_slot(Py_nb_inplace_power, in_turn<tensor_inplace_power>),
        type_slot(Py_nb_inplace_floor_divide, in_turn<tensor_inplace<FloorDivide>>),
        type_slot(Py_nb_inplace_true_divide, in_turn<tensor_inplace<TrueDivide>>),
        type_slot(Py_nb_inplace_matrix_multiply, in_turn<tensor_inplace<Matmul>>),
        type_slot(Py_nb_inplace_and, in_turn<tensor_inplace<And>>),
        type_slot(Py_nb_inplace_or, in_turn<tensor_inplace<Or>>),
        type_slot(Py_nb_inplace_xor, in_turn<tensor_inplace<Xor>>),
        type_slot(Py_nb_inplace_lshift, in_turn<tensor_inplace<LeftShift>>),
        type_slot(Py_nb_inplace_rshift, in_turn<tensor_inplace<RightShift>>),
        type_slot(Py_nb_bool, in_turn<to_bool>),
        type_slot(Py_nb_float, in_turn<to_float>),
        type_slot(Py_nb_int, in_turn<to_int>),
        type_slot(Py_nb_index, in_turn<to_index>),
        type_slot(Py_mp_length, in_turn<tensor_length>),
        type_slot(Py_sq_contains, in_turn<tensor_contains>),
        type_slot(Py_mp_subscript, in_turn<subscript>),
        type_slot(Py_mp_ass_subscript, in_turn<assign>),
        type_slot(Py_tp_iter, in_turn<tensor_iterate>),
        type_slot(Py_bf_getbuffer, in_turn<get_buffer>),
    };
    slots.insert(slots.end(), std::begin(own), std::end(own));
    return 0;
}

PyObject* tensor_array_ufunc(PyObject*, PyObject* args, PyObject* kwargs) {
    const Py_ssize_t n = PyTuple_GET_SIZE(args);
    if ((!kwargs || PyDict_GET_SIZE(kwargs) == 0) && (n == 3 || n == 4) &&
        PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(args, 1), "__call__") == 0) {
        const Builtin builtin = builtin_of_ufunc(PyTuple_GET_ITEM(args, 0));
        PyObject* made = nullptr;
        if (builtin != Builtin::None) {
            PyObject* second = n == 4 ? PyTuple_GET_ITEM(args, 3) : nullptr;
            const int done =
                guarded([&] { return builtin_call(builtin, PyTuple_GET_ITEM(args, 2), second, made); }, -1);
            if (done) return made;
        }
    }
    return survive([&] { return PyObject_Call(up_calls.tensor_array_ufunc, args, kwargs); });
}

// The value of a keyword that is the only one given, or null.
static PyObject* only_keyword(PyObject* named, const char* name) {
    PyObject *key, *value;
    Py_ssize_t at = 0;
    if (PyDict_GET_SIZE(named) != 1 || !PyDict_Next(named, &at, &key, &value)) return nullptr;
    return PyUnicode_CompareWithASCIIString(key, name) == 0 ? value : nullptr;
}

// np.sum and np.mean of everything, or along one axis.
static int reduced(Builtin builtin, PyObject* given, PyObject* named, PyObject*& made) {
    const Py_ssize_t n = PyTuple_GET_SIZE(given);
    PyObject* axis = n > 1 ? PyTuple_GET_ITEM(given, 1) : Py_None;
    bool keepdims = false;
    if (n > 2) return 0;
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(named, &at, &key, &value)) {
        if (PyUnicode_CompareWithASCIIString(key, "axis") == 0 && n == 1) {
            axis = value;
        } else if (PyUnicode_CompareWithASCIIString(key, "keepdims") == 0 && PyBool_Check(value)) {
            keepdims = value == Py_True;
        } else {
            return 0;
        }
    }
    return builtin_reduce(builtin, PyTuple_GET_ITEM(given, 0), axis, keepdims, made);
}

// A function of NumPy in its plain form: 1, 0 or -1 as builtin_call.
static int function_called(PyObject* args, PyObject*& made) {
    if (PyTuple_GET_SIZE(args) != 4) return 0;
    const Builtin builtin = builtin_of_function(PyTuple_GET_ITEM(args, 0));
    PyObject *given = PyTuple_GET_ITEM(args, 2), *named = PyTuple_GET_ITEM(args, 3);
    if (builtin == Builtin::None || !PyTuple_CheckExact(given) || !PyDict_CheckExact(named)) return 0;
    const Py_ssize_t n = PyTuple_GET_SIZE(given);
    if (n == 0) return 0;
    PyObject* first = PyTuple_GET_ITEM(given, 0);
    if (builtin == Builtin::Sum || builtin == Builtin::Mean) return reduced(builtin, given, named, made);
    if (builtin == Builtin::Transpose) {
        const bool plain = PyDict_GET_SIZE(named) == 0 && (n == 1 || (n == 2 && PyTuple_GET_ITEM(given, 1) == Py_None));
        return plain ? builtin_transpose(first, made) : 0;
    }
    if (n != 2) return 0;
    if (PyDict_GET_SIZE(named)) {
        PyObject* order = only_keyword(named, "order");
        if (!order || !PyUnicode_Check(order) || PyUnicode_CompareWithASCIIString(order, "C") != 0) return 0;
    }
    return builtin_reshape(first, PyTuple_GET_ITEM(given, 1), made);
}

PyObject* tensor_array_function(PyObject*, PyObject* args) {
    PyObject* made = nullptr;
    if (guarded([&] { return function_called(args, made); }, -1)) return made;
    return survive([&] { return PyObject_Call(up_calls.tensor_array_function, args, nullptr); });
}

}  // namespace pyop
