// autograd/builtin_rules.cpp: write the derivatives as formulas.
#include <algorithm>  // std::fill_n

#include "array/memory/pool.h"
#include "autograd/builtin.h"
#include "autograd/engine.h"
#include "autograd/saved.h"
#include "autograd/turn.h"
#include "runtime/up_calls.h"

namespace pyop {

namespace {

Term apply(Builtin which, Term a, const Term* b) {
    if (!a.get() || (b && !b->get())) return {};
    PyObject* second = b ? b->get() : nullptr;
    Ufunc& u = builtin_ufuncs[static_cast<int>(which)];
    if (!is_tensor(a.get()) && !(second && is_tensor(second))) return Term(ufunc_call(u, a.take(), second));
    PyObject* made = nullptr;
    const int done = builtin_call(which, a.get(), second, made);
    if (done < 0) return {};
    if (done > 0) return Term(Ref::steal(made));
    PyObject* args[] = {a.get(), second};
    return Term(Ref::steal(outside_new(u.object, args, second ? 2 : 1)));
}

// The left operand may lend its memory to the result.
Term operator+(Term a, const Term& b) { return apply(Builtin::Add, std::move(a), &b); }
Term operator-(Term a, const Term& b) { return apply(Builtin::Subtract, std::move(a), &b); }
Term operator*(Term a, const Term& b) { return apply(Builtin::Multiply, std::move(a), &b); }
Term operator/(Term a, const Term& b) { return apply(Builtin::Divide, std::move(a), &b); }
Term operator-(Term a) { return apply(Builtin::Negative, std::move(a), nullptr); }
template <Builtin which>
Term call(Term a) {
    return apply(which, std::move(a), nullptr);
}
constexpr auto sin = call<Builtin::Sin>;
constexpr auto cos = call<Builtin::Cos>;
constexpr auto sinh = call<Builtin::Sinh>;
constexpr auto cosh = call<Builtin::Cosh>;
constexpr auto sign = call<Builtin::Sign>;

Term square(const Term& x) { return x * x; }
Term one() { return Term(1.0); }
Term two() { return Term(2.0); }

Term same(const Recorded&, Term g) { return g; }

// g * (y * x ** (y - 1)), for a Python number y.
Term power(const Recorded& r, Term g) {
    Term x = r.a(), y = r.b();
    if (!x.get() || !y.get()) return {};
    const double exponent = PyFloat_Check(y.get()) ? PyFloat_AS_DOUBLE(y.get()) : PyLong_AsDouble(y.get());
    if (exponent == -1.0 && PyErr_Occurred()) return {};
    if (exponent == 0) {
        Ref zeros = zeros_like_info(*r.node()->edges[0].info);
        if (!zeros || !is_tensor(g.get())) return Term(std::move(zeros));
        return Term(Ref::steal(as_object(tensor_new_steal(as_array(zeros.release())))));
    }
    if (exponent == 1) return g;
    if (exponent == 2) return std::move(g) * (two() * x);
    Term less{Ref::steal(PyNumber_Subtract(y.get(), Ref::steal(PyLong_FromLong(1)).get()))};
    if (!less.get()) return {};
    Term lower{Ref::steal(survive([&] { return PyNumber_Power(x.get(), less.get(), Py_None); }))};
    return std::move(g) * (std::move(lower) * y);
}

// --- matrix products of one and two dimensions

int ndim_of(const Term& t) {
    PyObject* o = t.get();
    return is_tensor(o) ? PyArray_NDIM(as_tensor(o)->data) : PyArray_NDIM(as_array(o));
}
Term transposed(const Term& x) {
    if (!x.get()) return {};
    return Term(Ref::steal(survive([&] { return PyObject_GetAttrString(x.get(), "T"); })));
}
Term product(const Term& a, const Term& b) { return apply(Builtin::Matmul, a, &b); }
Term outer(const Term& a, const Term& b) {
    if (!a.get() || !b.get()) return {};
    PyObject* args[] = {a.get(), b.get()};
    return Term(Ref::steal(outside_new(up_calls.outer, args, 2)));
}

Term matmul_by_a(const Recorded& r, Term g) {
    Term b = r.b();
    if (!b.get()) return {};
    const int dims = r.node()->edges[0].info->ndim;
    if (ndim_of(b) == 1) return dims == 1 ? b * g : outer(g, b);
    return dims == 1 ? product(b, g) : product(g, transposed(b));
}
Term matmul_by_b(const Recorded& r, Term g) {
    Term a = r.a();
    if (!a.get()) return {};
    const int dims = r.node()->edges[1].info->ndim;
    if (ndim_of(a) == 1) return dims == 1 ? a * g : outer(a, g);
    return product(transposed(a), g);
}

// --- reductions

Ref shape_of(const ArrayInfo& info) {
    Ref shape = Ref::steal(PyTuple_New(info.ndim));
    for (int i = 0; shape && i < info.ndim; ++i) PyTuple_SET_ITEM(shape.get(), i, PyLong_FromSsize_t(info.shape[i]));
    return shape;
}

// `g` laid along the axis it was reduced over, or all of them. The axis was saved where the shapes do not tell it.
Term spread(const Recorded& r, Term g) {
    const ArrayInfo& info = *r.node()->edges[0].info;
    const Term saved = needs_axis(info, *r.node()->first.info) ? r.b() : Term();
    PyObject* axis = saved.get();
    if (!g.get() || (!axis && PyErr_Occurred())) return {};
    if (is_tensor(g.get())) {
        Ref shape = shape_of(info);
        if (!shape) return {};
        PyObject* args[] = {g.get(), axis ? axis : Py_None, shape.get()};
        return Term(Ref::steal(outside_new(up_calls.spread, args, 3)));
    }
    Ref array = to_array(g.get());
    if (array && axis) {
        npy_intp dims[NPY_MAXDIMS];
        const auto at = static_cast<int>(PyLong_AsLong(axis));
        for (int i = 0; i < info.ndim; ++i) dims[i] = i == at ? 1 : info.shape[i];
        PyArray_Dims wide{dims, info.ndim};
        array = Ref::steal(PyArray_Newshape(as_array(array.get()), &wide, NPY_CORDER));
    }
    if (!array) return {};
    PyArray_Descr* dtype = PyArray_DESCR(as_array(array.get()));
    Ref made = Ref::steal(pooled_array_new(dtype, info.ndim, info.shape, nullptr));
    if (!made) return {};
    if (dtype->type_num == NPY_DOUBLE && PyArray_SIZE(as_array(array.get())) == 1 &&
        PyArray_ISBEHAVED_RO(as_array(array.get()))) {
        std::fill_n(static_cast<double*>(PyArray_DATA(as_array(made.get()))), PyArray_SIZE(as_array(made.get())),
                    *static_cast<const double*>(PyArray_DATA(as_array(array.get()))));
        return Term(std::move(made));
    }
    if (PyArray_CopyInto(as_array(made.get()), as_array(array.get())) < 0) return {};
    return Term(std::move(made));
}

// --- views

Term shaped_back(const Recorded& r, Term g) {
    Ref shape = shape_of(*r.node()->edges[0].info);
    if (!shape) return {};
    return Term(Ref::steal(survive([&] { return PyObject_CallMethod(g.get(), "reshape", "(O)", shape.get()); })));
}

// Zeros, with `g` where it came from.
Term put_back(const Recorded& r, Term g) {
    const ArrayInfo& info = *r.node()->edges[0].info;
    const Term key = r.b();
    if (!key.get()) return {};
    if (is_tensor(g.get())) {
        Ref shape = shape_of(info);
        if (!shape) return {};
        PyObject* args[] = {g.get(), key.get(), shape.get(), reinterpret_cast<PyObject*>(info.descr)};
        return Term(Ref::steal(outside_new(up_calls.put_back, args, 4)));
    }
    Ref zeros = zeros_like_info(info);
    if (!zeros || PyObject_SetItem(zeros.get(), key.get(), g.get()) < 0) return {};
    return Term(std::move(zeros));
}

Term mean(const Recorded& r, Term g) {
    npy_intp all = 1, left = 1;
    const ArrayInfo& in = *r.node()->edges[0].info;
    const ArrayInfo& out = *r.node()->first.info;
    for (int i = 0; i < in.ndim; ++i) all *= in.shape[i];
    for (int i = 0; i < out.ndim; ++i) left *= out.shape[i];
    return spread(r, left > 0 ? std::move(g) / Term(static_cast<double>(all / left)) : std::move(g));
}

}  // namespace

using R = const Recorded&;
using T = Term;
constexpr uint8_t A = BuiltinRule::A, B = BuiltinRule::B, Ans = BuiltinRule::Ans;

// In the order of Builtin. Each: the name in NumPy, the name of the node, and for each operand what the derivative by
// it reads and what it makes of the gradient `g` of the result.
const BuiltinRule builtin_rules[kBuiltins] = {
    {"add", "Add", {{0, same}, {0, same}}},
    {"subtract", "Subtract", {{0, same}, {0, [](R, T g) { return -std::move(g); }}}},
    {"multiply",
     "Multiply",
     {{B, [](R r, T g) { return std::move(g) * r.b(); }}, {A, [](R r, T g) { return std::move(g) * r.a(); }}}},
    {"divide",
     "Divide",
     {{B, [](R r, T g) { return std::move(g) / r.b(); }},
      {B | Ans, [](R r, T g) { return -std::move(g) * r.ans() / r.b(); }}}},
    {"power", "Power", {{A | B, power}, {0, nullptr}}},
    {"matmul", "Matmul", {{B, matmul_by_a}, {A, matmul_by_b}}},
    {"negative", "Negative", {{0, [](R, T g) { return -std::move(g); }}}},
    {"absolute", "Absolute", {{A, [](R r, T g) { return std::move(g) * sign(r.a()); }}}},
    {"square", "Square", {{A, [](R r, T g) { return std::move(g) * (two() * r.a()); }}}},
    {"reciprocal", "Reciprocal", {{Ans, [](R r, T g) { return -std::move(g) * r.ans() * r.ans(); }}}},
    {"sqrt", "Sqrt", {{Ans, [](R r, T g) { return std::move(g) * Term(0.5) / r.ans(); }}}},
    {"exp", "Exp", {{Ans, [](R r, T g) { return std::move(g) * r.ans(); }}}},
    {"expm1", "Expm1", {{Ans, [](R r, T g) { return std::move(g) * (r.ans() + one()); }}}},
    {"log", "Log", {{A, [](R r, T g) { return std::move(g) / r.a(); }}}},
    {"log1p", "Log1p", {{A, [](R r, T g) { return std::move(g) / (r.a() + one()); }}}},
    {"sin", "Sin", {{A, [](R r, T g) { return std::move(g) * cos(r.a()); }}}},
    {"cos", "Cos", {{A, [](R r, T g) { return -std::move(g) * sin(r.a()); }}}},
    {"tan", "Tan", {{Ans, [](R r, T g) { return std::move(g) * (square(r.ans()) + one()); }}}},
    {"arctan", "Arctan", {{A, [](R r, T g) { return std::move(g) / (square(r.a()) + one()); }}}},
    {"sinh", "Sinh", {{A, [](R r, T g) { return std::move(g) * cosh(r.a()); }}}},
    {"cosh", "Cosh", {{A, [](R r, T g) { return std::move(g) * sinh(r.a()); }}}},
    {"tanh", "Tanh", {{Ans, [](R r, T g) { return std::move(g) * (one() - square(r.ans())); }}}},
    {"sign", "Sign", {{0, nullptr}}},
    {"sum", "Sum", {{0, spread}}},
    {"mean", "Mean", {{0, mean}}},
    {"reshape", "Reshape", {{0, shaped_back}}},
    {"transpose", "Transpose", {{0, [](R, T g) { return transposed(g); }}}},
    {nullptr, "Getitem", {{0, put_back}}},
};

Term Recorded::read(int item) const {
    Ref value = saved_item_new(node_, static_cast<uint32_t>(item));
    return Term(std::move(value));
}

}  // namespace pyop
