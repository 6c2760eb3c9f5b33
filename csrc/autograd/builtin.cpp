// autograd/builtin.cpp: record a built-in operation from its operands as a node, and take a gradient back.
#include "autograd/builtin.h"

#include "autograd/engine.h"
#include "autograd/function.h"
#include "autograd/function_parts.h"
#include "autograd/state.h"
#include "autograd/turn.h"

namespace pyop {

// Never destroyed: they own Python objects, and the process ends after Python has.
Ufunc* const builtin_ufuncs = new Ufunc[kBuiltinUfuncs];

namespace {

// For the life of the process: the class of each operation's nodes, and what NumPy's functions are.
PyObject* classes[kBuiltins];
PyObject* builtin_functions[kBuiltins - kBuiltinUfuncs];

PyObject* class_new(int which) {
    PyObject* self = function_class_type->tp_alloc(function_class_type, 0);
    if (!self) return nullptr;
    FunctionClass& f = *as_function_class(self);
    f.vectorcall = in_turn<function_apply>;
    f.cls = Py_NewRef(Py_None);
    f.name = PyUnicode_FromString(builtin_rules[which].name);
    f.defaults = PyTuple_New(0);
    f.bind = Py_NewRef(Py_None);
    f.parameters = -1;
    f.internal = true;
    f.is_builtin = true;
    f.builtin = static_cast<uint8_t>(which);
    if (f.name && f.defaults) return self;
    Py_DECREF(self);
    return nullptr;
}

bool is_real(PyArray_Descr* dtype) {
    return PyTypeNum_ISFLOAT(dtype->type_num) || PyTypeNum_ISINTEGER(dtype->type_num) ||
           PyTypeNum_ISBOOL(dtype->type_num);
}

}  // namespace

bool builtin_operand(PyObject* o, TensorObject*& t) {
    if (is_tensor(o)) {
        t = as_tensor(o);
        return is_real(PyArray_DESCR(t->data)) && !tensor_tangent(t);
    }
    if (PyFloat_CheckExact(o) || PyLong_CheckExact(o)) return true;
    if (is_exact_array(o)) return is_real(PyArray_DESCR(as_array(o)));
    return PyArray_IsScalar(o, Floating) || PyArray_IsScalar(o, Integer) || PyArray_IsScalar(o, Bool);
}

namespace {

// A result that is to be an array. Empty with the error set.
Ref as_exact_array(Ref result) {
    if (!result || is_exact_array(result.get())) return result;
    return Ref::steal(PyArray_EnsureArray(result.release()));
}

// The node of a result; `out` becomes its output. -1 with the error set.
int record(Builtin which, BuiltinOperand* operands, int n, TensorObject* out, PyObject* constant) {
    const BuiltinRule& rule = builtin_rules[static_cast<int>(which)];
    GradNode* node = grad_node_new(GradNodeKind::Function, n);
    if (!node) return -1;
    Ref owner = Ref::steal(as_object(node));
    node->owner = Py_NewRef(classes[static_cast<int>(which)]);
    node->materialize = false;
    node->executable = true;
    node->output_count = 1;
    node->first.differentiable = true;
    uint8_t reads = 0;
    for (int i = 0; i < n; ++i) {
        TensorObject* t = operands[i].tensor;
        GradEdge& edge = node->edges[i];
        edge.kind = t ? ArgumentKind::Tensor : ArgumentKind::Other;
        if (!operands[i].recorded) continue;
        ArrayInfo* info = tensor_info(t);
        edge.node = info ? gradient_target_new(t) : nullptr;
        if (!edge.node) return -1;
        edge.output = t->output;
        edge.info = share(info);
        reads |= rule.derivatives[i].reads;
        if (!out->info && is_described_by(out->data, *info)) out->info = share(info);
    }
    ArrayInfo* info = tensor_info(out);
    if (!info) return -1;
    node->first.info = share(info);
    grad_node_finish(node);
    if (PYOP_UNLIKELY(autograd_state.anomaly) && remember_creation(node) < 0) return -1;
    tensor_set_history(out, node, 0);
    if (constant) reads |= BuiltinRule::B;
    if (!reads) return 0;
    SavedArrays* saved = node->saved = saved_blank(reads & BuiltinRule::Ans ? 3 : reads & BuiltinRule::B ? 2 : 1);
    if (!saved) return -1;
    for (int i = 0; i < 2; ++i) {
        if (!(reads & (1 << i))) continue;
        SavedItem& item = saved->items[i];
        if (i < n && operands[i].tensor) {
            saved_set_input(item, operands[i].tensor, PyArray_NBYTES(out->data));
            continue;
        }
        item.value = Py_NewRef(i < n ? operands[i].given : constant);
        if (is_exact_array(item.value)) saved_finish(item, PyArray_NBYTES(out->data));
        item.kind = SavedItem::Constant;
    }
    if (!(reads & BuiltinRule::Ans)) return 0;
    saved->items[2].value = Py_NewRef(as_object(out->data));
    return saved_set_output(saved->items[2], out, 0);
}

}  // namespace

// Whether NumPy would have a scalar where the result has no dimension: its ufuncs always do, and functions that make
// views where they are given one.
static bool is_scalar_result(Builtin which, const BuiltinOperand* operands, PyObject* value) {
    if (!value || !is_exact_array(value)) return true;
    if (PyArray_NDIM(as_array(value)) > 0) return false;
    if (which == Builtin::Getitem) return false;
    if (which == Builtin::Reshape || which == Builtin::Transpose) return operands[0].tensor->is_scalar;
    return true;
}

int builtin_finish(Builtin which, BuiltinOperand* operands, int n, Ref value, PyObject* constant, PyObject*& result) {
    const bool scalar = is_scalar_result(which, operands, value.get());
    value = as_exact_array(std::move(value));
    if (!value) return -1;
    Ref out = Ref::steal(as_object(tensor_new_steal(as_array(value.release()))));
    if (!out) return -1;
    as_tensor(out.get())->is_scalar = scalar;
    bool any = false;
    for (int i = 0; i < n; ++i) any |= operands[i].recorded;
    if (any && PyTypeNum_ISFLOAT(PyArray_DESCR(as_tensor(out.get())->data)->type_num) &&
        record(which, operands, n, as_tensor(out.get()), constant) < 0)
        return -1;
    result = out.release();
    return 1;
}

int builtin_init(PyObject* numpy) {
    for (int i = 0; i < kBuiltins; ++i) {
        classes[i] = class_new(i);
        if (!classes[i]) return -1;
        if (i < kBuiltinUfuncs) {
            if (ufunc_find(builtin_ufuncs[i], numpy, builtin_rules[i].numpy) < 0) return -1;
        } else if (builtin_rules[i].numpy &&
                   !(builtin_functions[i - kBuiltinUfuncs] = PyObject_GetAttrString(numpy, builtin_rules[i].numpy))) {
            return -1;
        }
    }
    return 0;
}

Builtin builtin_of_ufunc(PyObject* ufunc) {
    for (int i = 0; i < kBuiltinUfuncs; ++i) {
        if (builtin_ufuncs[i].object == ufunc) return static_cast<Builtin>(i);
    }
    return Builtin::None;
}

Builtin builtin_of_function(PyObject* function) {
    for (int i = kBuiltinUfuncs; i < kBuiltins; ++i) {
        if (builtin_functions[i - kBuiltinUfuncs] == function) return static_cast<Builtin>(i);
    }
    return Builtin::None;
}

// 1, 0 or -1 as builtin_call.
static int take_operands(Builtin which, BuiltinOperand* operands, int n) {
    const BuiltinRule& rule = builtin_rules[static_cast<int>(which)];
    for (int i = 0; i < n; ++i) {
        BuiltinOperand& o = operands[i];
        if (!builtin_operand(o.given, o.tensor)) return 0;
        if (!o.tensor) continue;
        if (check_view(o.tensor) < 0) return -1;
        o.recorded = is_recording() && o.tensor->requires_grad && rule.derivatives[i].by;
    }
    for (int i = 0; which == Builtin::Matmul && i < n; ++i) {
        const BuiltinOperand& o = operands[i];
        if (!o.tensor && !is_exact_array(o.given)) return 0;
        const int ndim = PyArray_NDIM(o.tensor ? o.tensor->data : as_array(o.given));
        if (ndim < 1 || ndim > 2) return 0;
    }
    return 1;
}

int builtin_record(Builtin which, PyObject* a, PyObject* b, const Ref& numbers, PyObject*& result) {
    BuiltinOperand operands[2] = {{a}, {b}};
    const int taken = take_operands(which, operands, 2);
    return taken <= 0 ? taken : builtin_finish(which, operands, 2, Ref::borrow(numbers.get()), nullptr, result);
}

int builtin_call(Builtin which, PyObject* a, PyObject* b, PyObject*& result, bool scalars) {
    Ufunc& u = builtin_ufuncs[static_cast<int>(which)];
    BuiltinOperand operands[2] = {{a}, {b}};
    const int n = b ? 2 : 1;
    if (n != u.inputs) return 0;
    if (const int taken = take_operands(which, operands, n); taken <= 0) return taken;
    // The exponent is a number; NumPy refuses some, and special cases of others are the operator's.
    if (which == Builtin::Power && !PyFloat_CheckExact(b) && !PyLong_CheckExact(b)) return 0;
    auto numbers = [](const BuiltinOperand& o) { return o.tensor ? as_object(o.tensor->data) : o.given; };
    // Apart from the next line, which asks who has the operands.
    Ref value = ufunc_call(u, Ref::borrow(numbers(operands[0])), b ? numbers(operands[1]) : nullptr, scalars);
    return builtin_finish(which, operands, n, std::move(value), nullptr, result);
}

int builtin_power(PyObject* a, PyObject* b, PyObject*& result) {
    BuiltinOperand operands[2] = {{a}, {b}};
    if (!is_tensor(a) || !builtin_operand(a, operands[0].tensor)) return 0;
    if (!PyFloat_CheckExact(b) && !PyLong_CheckExact(b)) return 0;
    TensorObject* t = operands[0].tensor;
    if (check_view(t) < 0) return -1;
    operands[0].recorded = is_recording() && t->requires_grad;
    // A scalar of NumPy has a power of its own.
    Ref base = t->is_scalar
                   ? Ref::steal(PyArray_Scalar(PyArray_DATA(t->data), PyArray_DESCR(t->data), as_object(t->data)))
                   : Ref::borrow(as_object(t->data));
    if (!base) return -1;
    Ref value = Ref::steal(survive([&] { return PyNumber_Power(base.get(), b, Py_None); }));
    return value ? builtin_finish(Builtin::Power, operands, 2, std::move(value), nullptr, result) : -1;
}

int builtin_reduce(Builtin which, PyObject* a, PyObject* axis, bool keepdims, PyObject*& result) {
    BuiltinOperand operand{a};
    if (!is_tensor(a) || !builtin_operand(a, operand.tensor)) return 0;
    TensorObject* t = operand.tensor;
    const int type = PyArray_DESCR(t->data)->type_num;
    if (type != NPY_DOUBLE && type != NPY_FLOAT) return 0;  // NumPy adds the others up in wider types
    const int ndim = PyArray_NDIM(t->data);
    int at = NPY_RAVEL_AXIS;
    Ref normal;
    if (axis != Py_None) {
        if (!PyLong_CheckExact(axis)) return 0;
        const long number = PyLong_AsLong(axis);
        if (number == -1 && PyErr_Occurred()) PyErr_Clear();
        if (number < -ndim || number >= ndim) return 0;  // NumPy says what is wrong
        at = static_cast<int>(number < 0 ? number + ndim : number);
        normal = Ref::steal(PyLong_FromLong(at));
        if (!normal) return -1;
    }
    const npy_intp count = axis == Py_None ? PyArray_SIZE(t->data) : PyArray_DIM(t->data, at);
    if (which == Builtin::Mean && count == 0) return 0;  // a warning
    if (check_view(t) < 0) return -1;
    operand.recorded = is_recording() && t->requires_grad;
    Ref value = as_exact_array(Ref::steal(PyArray_Sum(t->data, at, NPY_NOTYPE, nullptr)));
    if (value && which == Builtin::Mean) {
        Ref number = Ref::steal(PyFloat_FromDouble(static_cast<double>(count)));
        if (!number) return -1;
        value = as_exact_array(
            ufunc_call(builtin_ufuncs[static_cast<int>(Builtin::Divide)], std::move(value), number.get()));
    }
    if (value && keepdims) {
        npy_intp dims[NPY_MAXDIMS];
        for (int i = 0; i < ndim; ++i) dims[i] = axis == Py_None || i == at ? 1 : PyArray_DIM(t->data, i);
        PyArray_Dims shape{dims, ndim};
        value = Ref::steal(PyArray_Newshape(as_array(value.get()), &shape, NPY_CORDER));
    }
    if (!value) {
        if (!PyErr_Occurred()) PyErr_NoMemory();  // as PyArray_Sum does not always
        return -1;
    }
    const bool kept = PyArray_NDIM(as_array(value.get())) > 0 && PyArray_NDIM(as_array(value.get())) != ndim;
    return builtin_finish(which, &operand, 1, std::move(value), kept ? normal.get() : nullptr, result);
}

int builtin_backward(GradNode* node, PyObject** arrived, PyObject** gradients, bool tensors, bool keep) {
    if (!arrived[0]) return 0;
    const FunctionClass* f = as_function_class(node->owner);
    const BuiltinRule& rule = builtin_rules[f->builtin];
    const Py_ssize_t n = edge_count(node);
    Recording recording(tensors);
    bool wanted[2] = {};
    for (Py_ssize_t i = 0; i < n; ++i)
        wanted[i] = node->edges[i].node && (!autograd_state.run || autograd_state.run->wants(node->edges[i]));
    for (Py_ssize_t i = 0; i < n; ++i) {
        if (!wanted[i]) continue;
        const bool last = i + 1 == n || !wanted[i + 1];
        Term g{last && !keep ? Ref::steal(std::exchange(arrived[0], nullptr)) : Ref::borrow(arrived[0])};
        if (!tensors && is_tensor(g.get())) g = Term(to_array(g.get()));
        Ref gradient = rule.derivatives[i].by(Recorded(node), std::move(g)).take();
        if (!gradient) return -1;
        if (!tensors) gradient = to_array(gradient.get());
        if (!gradient) return -1;
        gradient = fit_gradient(std::move(gradient), *node->edges[i].info, tensors, true, "backward", f->name, i);
        if (!gradient) return -1;
        gradients[i] = gradient.release();
        if (PYOP_UNLIKELY(autograd_state.anomaly) && autograd_state.check_nan && check_nan(node, i, gradients[i]) < 0)
            return -1;
    }
    return 0;
}

}  // namespace pyop
