// array/call/checked_call.cpp: make plain calls, and general ones with out=, changed arguments, undeclared results.
#include "array/call/checked_call.h"

#include <memory>  // std::unique_ptr

#include "array/call/adopt.h"
#include "array/call/arguments.h"
#include "array/call/gufunc_call.h"
#include "array/call/native_call.h"
#include "array/call/plain_call.h"
#include "array/contract/describe.h"
#include "array/memory/copied.h"
#include "array/native/native_kernel.h"
#include "runtime/errors.h"

namespace pyop {

PyObject* adopt_other_steal(PyObject* returned, const Contract& c, const SizeBindings& sizes, const Caller& caller) {
    return guarded(
        [&]() -> PyObject* {
            Ref values = split_result(c, Ref::steal(returned), caller);
            if (!values) return nullptr;
            Bindings b(sizes);
            return as_object(adopt_new(&c, 0, PyTuple_GET_ITEM(values.get(), 0), b, caller));
        },
        static_cast<PyObject*>(nullptr));
}

int checked_call_plain(PyObject* fn, const Contract& c, PyObject* const* arrays, Py_ssize_t n, PyObject** result,
                       const Caller& caller) {
    return call_plain(fn, c, arrays, n, result, [&]() -> const Caller& { return caller; });
}

namespace {

// The views and copies of one general call, taken back at its end.
class Arguments {
  public:
    explicit Arguments(Py_ssize_t n) : n_(n) {}
    ~Arguments() {
        for (size_t k = 0; k < loans_.size(); ++k)
            if (loans_[k].owned) lend_return_steal(as_array(loans_[k].object));
    }
    Arguments(const Arguments&) = delete;
    Arguments& operator=(const Arguments&) = delete;

    int fill(const Callee& callee, PyObject* const* arrays) {
        loans_.reserve(static_cast<size_t>(n_));
        for (Py_ssize_t k = 0; k < n_; ++k) {
            if (callee.contract && callee.contract->text_as_utf8 && is_exact_array(arrays[k]) &&
                PyArray_NDIM(as_array(arrays[k])) == 0) {
                if (add_scalar(as_array(arrays[k])) < 0) return -1;
            } else if (!callee.lends || !is_exact_array(arrays[k])) {
                loans_.push_back({arrays[k], false});
            } else if (callee.contract && callee.contract->mutates_input(k)) {
                if (add_private(callee, k, arrays[k]) < 0) return -1;
            } else {
                const Loan loan = lend(as_array(arrays[k]));
                if (!loan.object) return -1;
                loans_.push_back(loan);
            }
        }
        return 0;
    }

    PyObject* operator[](Py_ssize_t k) const { return loans_[static_cast<size_t>(k)].object; }

    // If `value` is one of the lent views, the array it was lent from.
    Ref unlend(Ref value, PyObject* const* arrays) const {
        for (Py_ssize_t k = 0; k < n_; ++k)
            if (const Loan& loan = loans_[static_cast<size_t>(k)];
                loan.owned && loan.object == value.get() && lend_unchanged(as_array(value.get()), as_array(arrays[k])))
                return Ref::borrow(arrays[k]);
        return value;
    }

  private:
    // TensorFlow's functions get scalars of NumPy, and bytes for text, where an array has no dimension.
    int add_scalar(PyArrayObject* array) {
        copies_.push_back(Ref::steal(PyArray_ToScalar(PyArray_DATA(array), array)));
        loans_.push_back({copies_.back().get(), false});
        return copies_.back() ? 0 : -1;
    }

    int add_private(const Callee& callee, Py_ssize_t k, PyObject* array) {
        if (callee.private_inputs >> k & 1) {
            loans_.push_back({array, false});
            return 0;
        }
        copies_.push_back(Ref::steal(counted(PyArray_NewCopy(as_array(array), NPY_KEEPORDER))));
        loans_.push_back({copies_.back().get(), false});
        return copies_.back() ? 0 : -1;
    }

    Py_ssize_t n_;
    std::vector<Loan> loans_;
    std::vector<Ref> copies_;
};

// The out= arrays of one call: given by the caller, or made from the output specs. Empty when the function
// takes none.
class OutArrays {
  public:
    int prepare(const Contract& c, OutMode mode, PyObject* const* given, const Bindings& b, const Caller& caller) {
        if (given) {
            Bindings trial = b;  // names that only outputs bind are bound by the results
            for (Py_ssize_t k = 0; k < c.n_out(); ++k) {
                const ArraySpec& spec = (*c.outputs)[static_cast<size_t>(k)];
                if (!match(spec, as_array(given[k]), trial)) {
                    PyErr_Format(errors.input, "out= for output %zd of %s is %s, but expects %s%s\n  in %s", k,
                                 caller.name().c_str(), array_text(given[k]).c_str(), spec_text(c, spec).c_str(),
                                 bindings_text(c, b).c_str(), caller.description().c_str());
                    return -1;
                }
                arrays_.push_back(Ref::borrow(given[k]));
            }
            return 0;
        }
        if (mode != OutMode::Required) return 0;
        for (Py_ssize_t k = 0; k < c.n_out(); ++k) {
            arrays_.push_back(Ref::steal(allocate_output_new(c, k, b, caller)));
            if (!arrays_.back()) return -1;
        }
        return 0;
    }
    bool used() const { return !arrays_.empty(); }
    PyObject* operator[](Py_ssize_t k) const { return arrays_[static_cast<size_t>(k)].get(); }

    // The value of the keyword: one array, or a tuple of them.
    Ref argument() const {
        if (arrays_.size() == 1) return arrays_[0];
        Ref tuple = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(arrays_.size())));
        for (size_t k = 0; tuple && k < arrays_.size(); ++k)
            PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(k), arrays_[k].new_ref());
        return tuple;
    }

  private:
    std::vector<Ref> arrays_;
};

Ref with_out_keyword(PyObject* kwnames) {
    Ref last = Ref::steal(Py_BuildValue("(s)", "out"));
    if (!kwnames || !last) return last;
    return Ref::steal(PySequence_Concat(kwnames, last.get()));
}

Ref call_function(const Callee& callee, const Arguments& arguments, Py_ssize_t n, const OutArrays& out) {
    const size_t n_args = callee.form ? callee.form->order.size() : static_cast<size_t>(n);
    std::vector<PyObject*> argv(n_args + 2);
    for (size_t i = 0; i < n_args; ++i) {
        const int32_t code = callee.form ? callee.form->order[i] : static_cast<int32_t>(i);
        argv[i + 1] = code >= 0 ? arguments[code] : PyTuple_GET_ITEM(callee.form->statics.get(), ~code);
    }
    const Py_ssize_t n_keywords = callee.form ? callee.form->n_keywords() : 0;
    const size_t nargsf = (n_args - static_cast<size_t>(n_keywords)) | PY_VECTORCALL_ARGUMENTS_OFFSET;
    PyObject* kwnames = callee.form ? callee.form->kwnames.get() : nullptr;
    if (!out.used()) return Ref::steal(vectorcall_new(callee.fn, argv.data() + 1, nargsf, kwnames));
    Ref names = with_out_keyword(kwnames), value = out.argument();
    if (!names || !value) return {};
    argv[n_args + 1] = value.get();
    return Ref::steal(vectorcall_new(callee.fn, argv.data() + 1, nargsf, names.get()));
}

// A result that went into out=: whatever the function returned, the caller's array holds it and is it.
int deliver_out(const OutArrays& out, Py_ssize_t k, PyObject** slot, const Caller& caller) {
    if (*slot == out[k]) return 0;
    PyArrayObject *have = as_array(*slot), *want = as_array(out[k]);
    if (!PyArray_EquivTypes(PyArray_DESCR(have), PyArray_DESCR(want)) || !PyArray_SAMESHAPE(have, want)) {
        PyErr_Format(errors.output,
                     "%zd-th value returned by %s is %s, but out= takes %s; nothing is cast or broadcast "
                     "silently\n  in %s",
                     k, caller.name().c_str(), array_text(*slot).c_str(), array_text(out[k]).c_str(),
                     caller.description().c_str());
        return -1;
    }
    const int copied = counted(PyArray_CopyInto(as_array(out[k]), as_array(*slot)), as_array(out[k]));
    Py_SETREF(*slot, Py_NewRef(out[k]));
    return copied;
}

void drop(PyObject** outs, Py_ssize_t n) {
    for (Py_ssize_t k = 0; k < n; ++k) Py_CLEAR(outs[k]);
}

// Functions nobody declared: NumPy's own, in graphs. Numbers become arrays, other objects stay as they are.
PyObject* undeclared_value_steal(PyObject* value) {
    if (is_exact_array(value) ||
        !(PyArray_CheckScalar(value) || PyFloat_Check(value) || PyLong_Check(value) || PyComplex_Check(value)))
        return value;
    PyObject* array = as_object(to_array_new(value));
    Py_DECREF(value);
    return array;
}

int call_undeclared(const Callee& callee, PyObject* const* arrays, Py_ssize_t n, PyObject** outs,
                    const Caller& caller) {
    Arguments arguments(n);
    if (arguments.fill(callee, arrays) < 0) return -1;
    Ref result = call_function(callee, arguments, n, OutArrays());
    if (!result) {
        note_call(caller, arrays, n);
        return -1;
    }
    result = arguments.unlend(std::move(result), arrays);
    if (callee.n_out == 1) {
        outs[0] = undeclared_value_steal(result.release());
        return outs[0] ? 0 : -1;
    }
    Ref values = Ref::steal(PySequence_Tuple(result.get()));
    if (!values) return -1;
    if (PyTuple_GET_SIZE(values.get()) != callee.n_out) {
        PyErr_Format(errors.output, "%s returns %zd values, but expects to see %zd values.\n  in %s",
                     caller.name().c_str(), PyTuple_GET_SIZE(values.get()), callee.n_out, caller.description().c_str());
        return -1;
    }
    for (Py_ssize_t k = 0; k < callee.n_out; ++k) {
        outs[k] = undeclared_value_steal(Py_NewRef(PyTuple_GET_ITEM(values.get(), k)));
        if (!outs[k]) {
            drop(outs, k);
            return -1;
        }
    }
    return 0;
}

int check_inputs(const Contract& c, PyObject* const* arrays, Py_ssize_t n, Bindings& b, LoopShape& loop,
                 const Caller& caller) {
    if (!c.inputs_declared) return 0;
    auto* const* a = reinterpret_cast<PyArrayObject* const*>(arrays);
    Py_ssize_t bad = -1;
    if (c.gufunc) {
        bad = match_gufunc(c, a, b, loop);
    } else {
        for (Py_ssize_t k = 0; k < n && bad < 0; ++k)
            if (!match((*c.inputs)[static_cast<size_t>(k)], a[k], b)) bad = k;
        if (bad < 0 && c.has_input_exprs) bad = check_input_exprs(c, a, b);
    }
    return bad < 0 ? 0 : wrong_input(c, bad, arrays, caller);
}

PYOP_COLD int wrong_abstract(const Contract& results, Py_ssize_t expected, const Caller& caller) {
    PyErr_Format(errors.output, "the abstract function of %s gives %zd specs, but gave %zd before\n  in %s",
                 caller.name().c_str(), results.n_out(), expected, caller.description().c_str());
    return -1;
}

// `like` names an argument by position; where the inputs are not declared it may be missing.
int check_likes(const Contract& c, Py_ssize_t n, const Caller& caller) {
    if (c.inputs_declared) return 0;
    for (const ArraySpec& spec : *c.outputs) {
        if (spec.like < n) continue;
        PyErr_Format(errors.input, "%s declares an output like argument %d, but is called with %zd\n  in %s",
                     caller.name().c_str(), spec.like, n, caller.description().c_str());
        return -1;
    }
    return 0;
}

}  // namespace

Ref static_dict_new(const CallForm* form) {
    Ref dict = Ref::steal(PyDict_New());
    const Py_ssize_t n_keywords = form ? form->n_keywords() : 0;
    for (Py_ssize_t i = 0; dict && i < n_keywords; ++i) {
        const int32_t code = form->order[form->order.size() - static_cast<size_t>(n_keywords - i)];
        if (code >= 0) continue;
        if (PyDict_SetItem(dict.get(), PyTuple_GET_ITEM(form->kwnames.get(), i),
                           PyTuple_GET_ITEM(form->statics.get(), ~code)) < 0)
            return {};
    }
    return dict;
}

Ref abstract_contract_new(const Contract& c, PyObject* const* arrays, Py_ssize_t n, const CallForm* form,
                          const Caller& caller) {
    auto bindings = std::make_unique<Bindings>(c);
    auto loop = std::make_unique<LoopShape>();
    if (check_inputs(c, arrays, n, *bindings, *loop, caller) < 0) return {};
    Ref kinds = Ref::steal(PyTuple_New(n)), statics = static_dict_new(form);
    for (Py_ssize_t k = 0; kinds && k < n; ++k) {
        PyArrayObject* a = as_array(arrays[k]);
        Ref shape = Ref::steal(PyArray_IntTupleFromIntp(PyArray_NDIM(a), PyArray_DIMS(a)));
        PyObject* kind = shape ? PyTuple_Pack(2, PyArray_DESCR(a), shape.get()) : nullptr;
        if (!kind) return {};
        PyTuple_SET_ITEM(kinds.get(), k, kind);
    }
    if (!kinds || !statics) return {};
    Ref contract = Ref::steal(
        survive([&] { return PyObject_CallFunctionObjArgs(c.abstract, kinds.get(), statics.get(), nullptr); }));
    if (!contract)
        note_call(caller, arrays, n);
    else if (!is_contract(contract.get())) {
        PyErr_SetString(PyExc_TypeError, "the abstract rule of an op must return a Contract");
        return {};
    }
    return contract;
}

namespace {

int call_declared(const Callee& callee, PyObject* const* arrays, Py_ssize_t n, PyObject** outs, PyObject* const* out,
                  const Caller& caller) {
    const Contract& c = *callee.contract;
    auto bindings = std::make_unique<Bindings>(c);
    auto loop = std::make_unique<LoopShape>();
    if (check_likes(c, n, caller) < 0 || check_inputs(c, arrays, n, *bindings, *loop, caller) < 0) return -1;
    auto* const* inputs = reinterpret_cast<PyArrayObject* const*>(arrays);
    bind_likes(c, inputs, *bindings);
    if (is_native_kernel(callee.fn)) return native_call(callee, arrays, n, *bindings, *loop, outs, out, caller);
    if (c.gufunc && loop->ndim > 0) return gufunc_call(callee, arrays, n, *bindings, *loop, outs, out, caller);

    const Contract* results = &c;
    Ref computed;
    if (c.abstract) {
        computed = abstract_contract_new(c, arrays, n, callee.form, caller);
        if (!computed) return -1;
        results = reinterpret_cast<const Contract*>(computed.get());
        bindings = std::make_unique<Bindings>(*results);
        bind_likes(*results, inputs, *bindings);
        if (results->n_out() != callee.n_out) return wrong_abstract(*results, callee.n_out, caller);
    }
    Arguments arguments(n);
    OutArrays out_arrays;
    if (arguments.fill(callee, arrays) < 0 || out_arrays.prepare(*results, c.out_mode, out, *bindings, caller) < 0)
        return -1;
    Ref result = call_function(callee, arguments, n, out_arrays);
    if (!result) {
        note_call(caller, arrays, n);
        return -1;
    }
    if (out_arrays.used() && result.get() == Py_None) result = out_arrays.argument();
    Ref values = split_result(*results, std::move(result), caller);
    if (!values) return -1;
    for (Py_ssize_t k = 0; k < callee.n_out; ++k) {
        Ref value = arguments.unlend(Ref::borrow(PyTuple_GET_ITEM(values.get(), k)), arrays);
        outs[k] = as_object(adopt_new(results, k, value.get(), *bindings, caller));
        if (!outs[k] || (out_arrays.used() && deliver_out(out_arrays, k, &outs[k], caller) < 0)) {
            drop(outs, k + 1);
            return -1;
        }
    }
    return 0;
}

}  // namespace

int checked_call(const Callee& callee, PyObject* const* arrays, Py_ssize_t n, PyObject** outs, PyObject* const* out,
                 const Caller& caller) {
    if (!callee.contract) return call_undeclared(callee, arrays, n, outs, caller);
    const Contract& c = *callee.contract;
    bool all_arrays = true;
    for (Py_ssize_t k = 0; k < n; ++k) all_arrays &= is_exact_array(arrays[k]);
    if (PYOP_LIKELY(all_arrays) && c.plain && !callee.form && n <= kPlainArity && !is_native_kernel(callee.fn)) {
        const int done = checked_call_plain(callee.fn, c, arrays, n, outs, caller);
        if (done <= 0) return done;
    }
    if (PYOP_UNLIKELY(!all_arrays || c.text_as_utf8 || c.casting != NPY_NO_CASTING)) {
        // A node before this one returned some other object, or text may be among the arguments.
        std::vector<Ref> converted;
        std::vector<PyObject*> pointers;
        for (Py_ssize_t k = 0; k < n; ++k) {
            converted.push_back(Ref::steal(argument_new(&c, k, arrays[k], caller)));
            if (!converted.back()) return -1;
            pointers.push_back(converted.back().get());
        }
        return call_declared(callee, pointers.data(), n, outs, out, caller);
    }
    return call_declared(callee, arrays, n, outs, out, caller);
}

}  // namespace pyop
