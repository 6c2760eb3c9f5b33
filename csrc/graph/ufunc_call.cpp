// graph/ufunc_call.cpp: add a node for a ufunc applied to Values, without a detour through Python where dtype and
// shape are simple. The result dtype of (ufunc, operand dtypes) is asked of NumPy once and remembered.
#include <algorithm>
#include <array>
#include <string_view>

#include "array/protocol/scalar_operator.h"
#include "graph/build.h"
#include "runtime/memo.h"

#define NO_IMPORT_UFUNC  // only the struct is used
#include <numpy/ufuncobject.h>

namespace pyop {

namespace {

constexpr Py_ssize_t kMaxInputs = 2;

// An operand's dtype, or for a Python number (whose dtype is weak) its type. The pointers live for ever: only
// NumPy's own dtypes and the three number types are taken.
struct ResultKey {
    PyObject* ufunc;
    std::array<PyObject*, kMaxInputs> kinds;
    bool operator==(const ResultKey&) const = default;
};
struct ResultKeyHash {
    size_t operator()(const ResultKey& k) const {
        size_t h = reinterpret_cast<size_t>(k.ufunc);
        for (PyObject* kind : k.kinds) h = (h ^ reinterpret_cast<size_t>(kind)) * 0x9E3779B97F4A7C15ull;
        return h;
    }
};
struct Resolved {
    Ref ufunc;  // keeps the key valid
    Ref dtype;
};
constinit Memo<ResultKey, Resolved, ResultKeyHash> resolved_results;

bool is_weak_number(PyObject* o) { return PyFloat_CheckExact(o) || PyLong_CheckExact(o) || PyComplex_CheckExact(o); }

// Borrowed: it lives for ever.
PyArray_Descr* builtin_of(int type_num) {
    PyArray_Descr* builtin = PyArray_DescrFromType(type_num);
    Py_DECREF(builtin);
    return builtin;
}

// Null where the Python rules must decide.
PyObject* kind_of(PyObject* input) {
    if (is_weak_number(input)) return reinterpret_cast<PyObject*>(Py_TYPE(input));
    PyArray_Descr* descr = nullptr;
    if (is_value(input))
        descr = graph_of(as_value(input)->graph).spec(as_value(input)->edge).descr();
    else if (is_exact_array(input))
        descr = PyArray_DESCR(as_array(input));
    if (!descr || !PyTypeNum_ISNUMBER(descr->type_num)) {
        if (!descr || descr->type_num != NPY_BOOL) return nullptr;
    }
    return descr == builtin_of(descr->type_num) ? reinterpret_cast<PyObject*>(descr) : nullptr;
}

// Borrowed; null with no error where NumPy refuses (the Python rules raise properly).
PyObject* result_dtype(const ResultKey& key, Py_ssize_t n) {
    if (const Resolved* known = resolved_results.find(key)) return known->dtype.get();
    Ref kinds = Ref::steal(PyTuple_New(n + 1));
    if (!kinds) return nullptr;
    for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(kinds.get(), i, Py_NewRef(key.kinds[static_cast<size_t>(i)]));
    PyTuple_SET_ITEM(kinds.get(), n, Py_NewRef(Py_None));
    Ref resolved = Ref::steal(PyObject_CallMethod(key.ufunc, "resolve_dtypes", "(O)", kinds.get()));
    if (!resolved) {
        PyErr_Clear();
        return nullptr;
    }
    Ref dtype = Ref::borrow(PyTuple_GET_ITEM(resolved.get(), n));
    return resolved_results.keep(key, {Ref::borrow(key.ufunc), std::move(dtype)}).dtype.get();
}

// Broadcasts one more operand into `shape`. False where the sizes contradict each other.
bool broadcast_into(std::vector<int64_t>& shape, std::span<const int64_t> dims) {
    if (dims.size() > shape.size()) shape.insert(shape.begin(), dims.size() - shape.size(), 1);
    const size_t offset = shape.size() - dims.size();
    for (size_t d = 0; d < dims.size(); ++d) {
        int64_t& have = shape[offset + d];
        const int64_t next = dims[d];
        if (have == next || next == 1) continue;
        if (have == 1)
            have = next;
        else if (have >= 0 && next >= 0)
            return false;
        else if (next >= 0)
            have = next;           // unknown, or symbolic: it must be 1 or equal
        else if (have < 0)
            have = kUnknownSize;    // two different symbols: either may be 1
    }
    return true;
}

int result_spec(PyObject* const* inputs, Py_ssize_t n, PyObject* dtype, ValueSpec& spec) {
    spec.dtype = Ref::borrow(dtype);
    for (Py_ssize_t i = 0; i < n; ++i) {
        if (is_value(inputs[i])) {
            const ValueSpec& s = graph_of(as_value(inputs[i])->graph).spec(as_value(inputs[i])->edge);
            if (s.ndim < 0) {
                spec.dims.clear();
                return 0;
            }
            if (!broadcast_into(spec.dims, s.dims)) return -1;
        } else if (is_exact_array(inputs[i])) {
            PyArrayObject* a = as_array(inputs[i]);
            if (!broadcast_into(spec.dims, {PyArray_DIMS(a), static_cast<size_t>(PyArray_NDIM(a))})) return -1;
        }
    }
    spec.ndim = static_cast<int>(spec.dims.size());
    if (spec.ndim == 0) spec.form = Form::Scalar;
    return 0;
}

// Python numbers stay what they are, so that NumPy's weak promotion sees them when the graph runs.
std::unique_ptr<CallForm> form_with_numbers(PyObject* const* inputs, Py_ssize_t n, std::vector<PyObject*>& arrays) {
    auto form = std::make_unique<CallForm>();
    Ref statics = Ref::steal(PyTuple_New(n));
    if (!statics) return nullptr;
    for (Py_ssize_t i = 0; i < n; ++i) {
        const bool weak = !is_value(inputs[i]) && !is_exact_array(inputs[i]);
        PyTuple_SET_ITEM(statics.get(), i, Py_NewRef(weak ? inputs[i] : Py_None));
        form->order.push_back(weak ? ~static_cast<int32_t>(i) : static_cast<int32_t>(arrays.size()));
        if (!weak) arrays.push_back(inputs[i]);
    }
    form->statics = SharedRef::steal(statics.release());
    return form->statics ? std::move(form) : nullptr;
}

class UfuncCaller final : public Caller {
  public:
    explicit UfuncCaller(PyObject* ufunc) : ufunc_(reinterpret_cast<PyUFuncObject*>(ufunc)) {}
    std::string name() const override { return ufunc_->name ? ufunc_->name : "a ufunc"; }
    std::string description() const override { return "np." + name(); }

  private:
    PyUFuncObject* ufunc_;
};

Ref ufunc_name(PyObject* ufunc) { return Ref::steal(PyObject_GetAttrString(ufunc, "__name__")); }

// A NumPy scalar of one of its own dtypes of numbers; borrowed, for they live for ever. Else null.
PyArray_Descr* dtype_of_scalar(PyObject* o) {
    if (!PyArray_IsScalar(o, Number) && !PyArray_IsScalar(o, Bool)) return nullptr;
    PyArray_Descr* d = PyArray_DescrFromScalar(o);
    if (!d) PyErr_Clear();
    Py_XDECREF(d);
    return d && d == builtin_of(d->type_num) ? d : nullptr;
}

// A small number of a kind, as a scalar.
Ref number_of(PyObject* kind, long value) {
    Ref number = Ref::steal(PyLong_FromLong(value));
    PyObject* type =
        PyType_Check(kind) ? kind : reinterpret_cast<PyObject*>(reinterpret_cast<PyArray_Descr*>(kind)->typeobj);
    return Ref::steal(PyObject_CallOneArg(type, number.get()));
}

// The dtypes of what an operator makes of scalars of these kinds, found by trying: they are not always those of the
// ufunc. Borrowed; null with no error where NumPy refuses.
PyObject* scalar_dtypes(const ResultKey& key, Py_ssize_t n) {
    if (const Resolved* known = resolved_results.find(key)) return known->dtype.get();
    Ref operands[kMaxInputs];
    PyObject* given[kMaxInputs] = {};
    for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
        operands[i] = number_of(key.kinds[i], n - 1);  // no operator warns of 0, nor of 1 and 1
        given[i] = operands[i].get();
        if (!given[i]) break;
    }
    Ref made =
        given[n - 1] ? Ref::steal(PyObject_Vectorcall(key.ufunc, given, static_cast<size_t>(n), nullptr)) : Ref();
    if (made && !PyTuple_Check(made.get())) made = Ref::steal(PyTuple_Pack(1, made.get()));
    Ref dtypes = made ? Ref::steal(PyTuple_New(PyTuple_GET_SIZE(made.get()))) : Ref();
    for (Py_ssize_t k = 0; dtypes && k < PyTuple_GET_SIZE(made.get()); ++k) {
        PyObject* const one = PyTuple_GET_ITEM(made.get(), k);
        // A Python complex takes a float64 for a Python float.
        PyArray_Descr* d = PyComplex_CheckExact(one) ? builtin_of(NPY_CDOUBLE) : dtype_of_scalar(one);
        if (!d) return nullptr;
        PyTuple_SET_ITEM(dtypes.get(), k, Py_NewRef(reinterpret_cast<PyObject*>(d)));
    }
    if (!dtypes) {
        PyErr_Clear();
        return nullptr;
    }
    return resolved_results.keep(key, {Ref::borrow(key.ufunc), std::move(dtypes)}).dtype.get();
}

// Adds the node. `numbers`: some inputs are neither Values nor arrays. Its index, or -1 with the error set.
int64_t add_ufunc_call(PyObject* graph, PyNode::Call call, PyObject* ufunc, std::span<PyObject* const> inputs,
                       bool numbers, std::span<const uint32_t> specs) {
    call.lends = false;
    std::vector<PyObject*> arrays;
    if (numbers) {
        call.form = form_with_numbers(inputs.data(), static_cast<Py_ssize_t>(inputs.size()), arrays);
        if (!call.form) return -1;
    } else {
        arrays.assign(inputs.begin(), inputs.end());
    }
    Ref name = ufunc_name(ufunc);
    if (!call.fn || !name) return -1;
    std::vector<Edge> edges;
    if (edges_of(graph, arrays.data(), static_cast<Py_ssize_t>(arrays.size()), nullptr, UfuncCaller(ufunc), edges) < 0)
        return -1;
    return add_call(graph, std::move(call), edges, specs, false, name.get());
}

}  // namespace

bool ufunc_keeps_spec(PyObject* ufunc, PyObject* const* inputs, Py_ssize_t n) {
    auto* u = reinterpret_cast<PyUFuncObject*>(ufunc);
    if (std::string_view(Py_TYPE(ufunc)->tp_name) != "numpy.ufunc" || u->core_enabled || n > kMaxInputs) return false;
    const ValueSpec& target = graph_of(as_value(inputs[0])->graph).spec(as_value(inputs[0])->edge);
    // NumPy's loops for complex numbers round another way where they write over what they read.
    if (!target.dtype || target.ndim < 0 || PyTypeNum_ISCOMPLEX(target.descr()->type_num)) return false;
    ResultKey key{ufunc, {}};
    for (Py_ssize_t i = 0; i < n; ++i) {
        key.kinds[static_cast<size_t>(i)] = kind_of(inputs[i]);
        if (!key.kinds[static_cast<size_t>(i)]) return false;
    }
    PyObject* dtype = result_dtype(key, n);
    ValueSpec spec;
    if (dtype != target.dtype.get() || result_spec(inputs, n, dtype, spec) < 0 || spec.dims != target.dims)
        return false;
    return std::find(spec.dims.begin(), spec.dims.end(), kUnknownSize) == spec.dims.end();
}

bool stands_for_scalar(PyObject* o) {
    if (is_value(o)) return graph_of(as_value(o)->graph).spec(as_value(o)->edge).form == Form::Scalar;
    return is_weak_number(o) || PyBool_Check(o) || dtype_of_scalar(o);
}

PyObject* operator_call_new(PyObject* ufunc, PyObject* const* inputs, Py_ssize_t n) {
    bool scalars = n <= kMaxInputs;
    for (Py_ssize_t i = 0; scalars && i < n; ++i) scalars = stands_for_scalar(inputs[i]);
    PyObject* does = scalars ? scalar_operator(ufunc) : nullptr;
    PyObject* graph = does ? graph_among(inputs, n) : nullptr;
    if (!graph) return ufunc_call_new(ufunc, inputs, n);

    ResultKey key{does, {}};
    bool known = true;
    for (Py_ssize_t i = 0; i < n; ++i) {
        PyObject* kind = kind_of(inputs[i]);
        if (!kind && PyBool_Check(inputs[i])) kind = reinterpret_cast<PyObject*>(&PyBool_Type);
        if (!kind) kind = reinterpret_cast<PyObject*>(dtype_of_scalar(inputs[i]));
        key.kinds[static_cast<size_t>(i)] = kind;
        known &= kind != nullptr;
    }
    PyObject* dtypes = known ? scalar_dtypes(key, n) : nullptr;
    if (!dtypes) return ufunc_call_new(ufunc, inputs, n);
    PyNode::Call call;
    call.of_scalars = true;
    call.fn = SharedRef::borrow(ufunc);
    std::vector<uint32_t> ids;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(dtypes); ++k) {
        ValueSpec spec;
        spec.dtype = Ref::borrow(PyTuple_GET_ITEM(dtypes, k));
        spec.ndim = 0;
        spec.form = Form::Scalar;
        ids.push_back(graph_of(graph).specs().intern(std::move(spec)));
    }
    const bool numbers = n > 1 && !(is_value(inputs[0]) && is_value(inputs[1]));
    const int64_t node = add_ufunc_call(graph, std::move(call), ufunc, {inputs, static_cast<size_t>(n)}, numbers, ids);
    if (node < 0) return nullptr;
    if (ids.size() == 1) return value_new(graph, {static_cast<uint32_t>(node), 0});
    Ref results = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(ids.size())));
    for (uint32_t k = 0; results && k < ids.size(); ++k) {
        PyObject* value = value_new(graph, {static_cast<uint32_t>(node), k});
        if (!value) return nullptr;
        PyTuple_SET_ITEM(results.get(), k, value);
    }
    return results.release();
}

PyObject* ufunc_call_new(PyObject* ufunc, PyObject* const* inputs, Py_ssize_t n, PyObject* instead) {
    auto* u = reinterpret_cast<PyUFuncObject*>(ufunc);
    if (std::string_view(Py_TYPE(ufunc)->tp_name) != "numpy.ufunc" || n > kMaxInputs || n != u->nin || u->nout != 1 ||
        u->core_enabled)
        return array_ufunc_in_python(ufunc, inputs, n);
    ResultKey key{ufunc, {}};
    bool any_number = false, known = true;
    for (Py_ssize_t i = 0; i < n; ++i) {
        key.kinds[static_cast<size_t>(i)] = kind_of(inputs[i]);
        known &= key.kinds[static_cast<size_t>(i)] != nullptr;
        any_number |= is_weak_number(inputs[i]);
    }
    PyObject* dtype = known ? result_dtype(key, n) : nullptr;
    ValueSpec spec;
    if ((!dtype && !instead) || result_spec(inputs, n, dtype, spec) < 0) return array_ufunc_in_python(ufunc, inputs, n);

    PyObject* graph = graph_among(inputs, n);
    if (!graph) return array_ufunc_in_python(ufunc, inputs, n);  // no Value: its error says so
    PyNode::Call call;
    call.fn = SharedRef::borrow(instead ? instead : ufunc);
    const uint32_t id = graph_of(graph).specs().intern(std::move(spec));
    const int64_t node =
        add_ufunc_call(graph, std::move(call), ufunc, {inputs, static_cast<size_t>(n)}, any_number, {&id, 1});
    return node < 0 ? nullptr : value_new(graph, {static_cast<uint32_t>(node), 0});
}

}  // namespace pyop
