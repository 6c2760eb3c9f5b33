// graph/value_operators.cpp: Value's operators are NumPy's ufuncs.
#include <array>

#include "array/numpy.h"
#include "graph/build.h"
#include "runtime/errors.h"

namespace pyop {

namespace {

enum Operator {
    Add,
    Subtract,
    Multiply,
    Remainder,
    Divmod,
    Power,
    LeftShift,
    RightShift,
    And,
    Xor,
    Or,
    FloorDivide,
    TrueDivide,
    Matmul,
    Square,
    SquareRoot,
    Reciprocal,
    Less,
    LessEqual,
    Equal,
    NotEqual,
    Greater,
    GreaterEqual,
    Negative,
    Positive,
    Absolute,
    Invert,
    kOperators
};

constexpr std::array<const char*, kOperators> names = {
    "add",         "subtract",      "multiply",    "remainder",  "divmod",       "power",       "left_shift",
    "right_shift", "bitwise_and",   "bitwise_xor", "bitwise_or", "floor_divide", "true_divide", "matmul",
    "square",      "sqrt",          "reciprocal",  "less",       "less_equal",   "equal",       "not_equal",
    "greater",     "greater_equal", "negative",    "positive",   "absolute",     "invert"};

std::array<PyObject*, kOperators> ufuncs;  // for the life of the process

// What an operator takes beside a Value; for anything else Python tries the other operand's method.
bool is_operand(PyObject* o) {
    return is_value(o) || PyArray_Check(o) || PyArray_CheckScalar(o) || PyFloat_Check(o) || PyLong_Check(o) ||
           PyComplex_Check(o) || PyList_Check(o) || PyTuple_Check(o) || PyUnicode_Check(o) || PyBytes_Check(o) ||
           is_dim(o);
}

template <Operator which>
PyObject* binary(PyObject* a, PyObject* b) {
    if (!is_operand(a) || !is_operand(b)) Py_RETURN_NOTIMPLEMENTED;
    PyObject* inputs[] = {a, b};
    return guarded([&] { return ufunc_call_new(ufuncs[which], inputs, 2); }, static_cast<PyObject*>(nullptr));
}

template <Operator which>
PyObject* unary(PyObject* a) {
    return guarded([&] { return ufunc_call_new(ufuncs[which], &a, 1); }, static_cast<PyObject*>(nullptr));
}

// `operator.pow` as a node: its specs are those of np.power.
PyObject* operator_power(PyObject* a, PyObject* number) {
    static PyObject* pow_function = nullptr;  // for the life of the process
    if (!pow_function) {
        Ref module = Ref::steal(PyImport_ImportModule("operator"));
        pow_function = module ? PyObject_GetAttrString(module.get(), "pow") : nullptr;
        if (!pow_function) return nullptr;
    }
    Ref model = Ref::steal(binary<Power>(a, number));
    if (!model || !is_value(model.get())) return model.release();
    // The node just made tells dtype and shape; nothing reads it, so it never runs.
    PyObject* graph = as_value(a)->graph;
    Graph& g = graph_of(graph);
    const uint32_t spec = g.node(as_value(model.get())->edge.node).output_specs()[0];
    PyNode::Call call;
    call.fn = SharedRef::borrow(pow_function);
    call.lends = false;
    call.form = std::make_unique<CallForm>();
    call.form->order = {0, ~0};
    call.form->statics = SharedRef::steal(PyTuple_Pack(1, number));
    if (!call.fn || !call.form->statics) return nullptr;
    Ref name = Ref::steal(PyUnicode_InternFromString("power"));
    const Edge input = as_value(a)->edge;
    const int64_t node = name ? add_call(graph, std::move(call), {&input, 1}, {&spec, 1}, false, name.get()) : -1;
    return node < 0 ? nullptr : value_new(graph, {static_cast<uint32_t>(node), 0});
}

// NumPy's ** is not np.power for some exponents: a float array squared is np.square, and so on. Which exponents
// depends on NumPy's release, but for those three; where in doubt, the operator itself runs on the array.
PyObject* number_power(PyObject* a, PyObject* number) {
    PyArray_Descr* descr = graph_of(as_value(a)->graph).spec(as_value(a)->edge).descr();
    const double exponent = PyFloat_AsDouble(number);
    if (exponent == -1.0 && PyErr_Occurred()) PyErr_Clear();  // too large to be one of them
    const bool whole = PyLong_CheckExact(number);
    const bool truths = descr && PyTypeNum_ISBOOL(descr->type_num);  // squared they are int8, by np.power int64
    if (descr && !PyTypeNum_ISFLOAT(descr->type_num) && !PyTypeNum_ISCOMPLEX(descr->type_num) &&
        !(truths && whole && exponent == 2.0))
        return binary<Power>(a, number);
    if (descr && whole && exponent == 2.0) return unary<Square>(a);
    if (descr && whole && exponent == -1.0) return unary<Reciprocal>(a);
    if (descr && !whole && exponent == 0.5) return unary<SquareRoot>(a);
    const bool special = exponent == 0.0 || exponent == 1.0 || exponent == 2.0 || exponent == -1.0 || exponent == 0.5;
    if (!special) return binary<Power>(a, number);
    return operator_power(a, number);
}

PyObject* power(PyObject* a, PyObject* b, PyObject* modulus) {
    if (modulus != Py_None) {
        PyErr_SetString(PyExc_TypeError, "pow() of a Value takes no modulus");
        return nullptr;
    }
    return is_value(a) && (PyLong_CheckExact(b) || PyFloat_CheckExact(b)) ? number_power(a, b) : binary<Power>(a, b);
}

PyObject* richcompare(PyObject* a, PyObject* b, int op) {
    if (!is_operand(b)) Py_RETURN_NOTIMPLEMENTED;
    // Py_LT, Py_LE, Py_EQ, Py_NE, Py_GT, Py_GE are 0 to 5.
    PyObject* inputs[] = {a, b};
    return ufunc_call_new(ufuncs[static_cast<size_t>(Less + op)], inputs, 2);
}

template <typename Function>
PyType_Slot slot(int id, Function* function) {
    return {id, reinterpret_cast<void*>(function)};
}

}  // namespace

int add_operator_slots(std::vector<PyType_Slot>& slots) {
    Ref numpy = Ref::steal(PyImport_ImportModule("numpy"));
    for (size_t i = 0; i < kOperators; ++i) {
        ufuncs[i] = numpy ? PyObject_GetAttrString(numpy.get(), names[i]) : nullptr;
        if (!ufuncs[i]) return -1;
    }
    const PyType_Slot own[] = {
        slot(Py_tp_richcompare, richcompare),
        slot(Py_nb_add, binary<Add>),
        slot(Py_nb_subtract, binary<Subtract>),
        slot(Py_nb_multiply, binary<Multiply>),
        slot(Py_nb_remainder, binary<Remainder>),
        slot(Py_nb_divmod, binary<Divmod>),
        slot(Py_nb_power, power),
        slot(Py_nb_lshift, binary<LeftShift>),
        slot(Py_nb_rshift, binary<RightShift>),
        slot(Py_nb_and, binary<And>),
        slot(Py_nb_xor, binary<Xor>),
        slot(Py_nb_or, binary<Or>),
        slot(Py_nb_floor_divide, binary<FloorDivide>),
        slot(Py_nb_true_divide, binary<TrueDivide>),
        slot(Py_nb_matrix_multiply, binary<Matmul>),
        slot(Py_nb_negative, unary<Negative>),
        slot(Py_nb_positive, unary<Positive>),
        slot(Py_nb_absolute, unary<Absolute>),
        slot(Py_nb_invert, unary<Invert>),
    };
    slots.insert(slots.end(), std::begin(own), std::end(own));
    return 0;
}

}  // namespace pyop
