// op/op_call.cpp: make one call, from the vectorcall slot to the result.
#include <memory>
#include <optional>

#include "array/call/lend.h"
#include "array/call/lend_tensor.h"
#include "array/memory/array_bytes.h"
#include "array/memory/copied.h"
#include "array/memory/overlap.h"
#include "graph/build.h"
#include "graph/value.h"
#include "op/op.h"
#include "profile/scope.h"
#include "runtime/errors.h"
#include "runtime/reaper.h"
#include "runtime/stack_limit.h"
#include "runtime/up_calls.h"

namespace pyop {

namespace {

// `out=` as one array an output; each must be an ndarray that can be written to.
int read_out(const OpObject& op, PyObject* out, std::vector<PyObject*>& arrays) {
    const Contract& c = op.declared();
    if (c.out_mode == OutMode::None) {
        PyErr_Format(PyExc_TypeError, "%s takes no out=: its function has no keyword-only parameter `out`",
                     OpCaller(op).description().c_str());
        return -1;
    }
    const bool single = c.n_out() == 1 && !PyTuple_Check(out);
    if (!single && (!PyTuple_Check(out) || PyTuple_GET_SIZE(out) != c.n_out())) {
        PyErr_Format(errors.input, "out= of %s must be a tuple of %zd arrays, one for each output",
                     OpCaller(op).description().c_str(), c.n_out());
        return -1;
    }
    for (Py_ssize_t k = 0; k < c.n_out(); ++k) {
        PyObject* a = single ? out : PyTuple_GET_ITEM(out, k);
        if (!is_exact_array(a) || !PyArray_ISWRITEABLE(as_array(a))) {
            PyErr_Format(errors.input, "out= of %s must be a writable ndarray, not %s%s",
                         OpCaller(op).description().c_str(), is_exact_array(a) ? "a read-only " : "a ",
                         Py_TYPE(a)->tp_name);
            return -1;
        }
        arrays.push_back(a);
    }
    return 0;
}

// The function may write its result before it has read all of its arguments: those that share memory with
// out= are copied.
int separate(std::vector<Ref>& arguments, const std::vector<PyObject*>& out) {
    for (Ref& argument : arguments) {
        for (PyObject* target : out) {
            if (!may_overlap(as_array(argument.get()), as_array(target))) continue;
            argument = Ref::steal(counted(PyArray_NewCopy(as_array(argument.get()), NPY_KEEPORDER)));
            if (!argument) return -1;
        }
    }
    return 0;
}

PyObject* call_on_arrays(OpObject& op, const BoundArguments& bound) {
    const Ref declared = Ref::borrow(op.contract);  // the function may replace it (@op.abstract)
    const Contract& c = op.declared();
    const OpCaller caller(op, bound.arrays.data());
    std::vector<Ref> arguments;
    std::vector<PyObject*> pointers, out;
    for (size_t k = 0; k < bound.arrays.size(); ++k) {
        arguments.push_back(Ref::steal(argument_new(&c, static_cast<Py_ssize_t>(k), bound.arrays[k], caller)));
        if (!arguments.back()) return nullptr;
    }
    const bool has_out = bound.out && bound.out != Py_None;
    if (has_out && (read_out(op, bound.out, out) < 0 || separate(arguments, out) < 0)) return nullptr;
    for (const Ref& argument : arguments) pointers.push_back(argument.get());
    std::unique_ptr<CallForm> form;
    if (make_form(bound, form) < 0) return nullptr;
    const auto n = static_cast<Py_ssize_t>(pointers.size());
    const Contract* promised = &c;
    Ref computed;
    if (c.abstract) {
        computed = abstract_contract_new(c, pointers.data(), n, form.get(), caller);
        if (!computed) return nullptr;
        promised = reinterpret_cast<const Contract*>(computed.get());
    }
    std::vector<PyObject*> results(static_cast<size_t>(promised->n_out()) + 1);
    const Callee callee{op.call_fn, &c, form.get(), promised->n_out(), true};
    if (checked_call(callee, pointers.data(), n, results.data(), has_out ? out.data() : nullptr, caller) < 0)
        return nullptr;
    return package_steal(*promised, results.data());
}

// An op of device="any": Python code tells what is on another device and hands that on.
PyObject* call_on_devices(OpObject& op, const BoundArguments& bound) {
    if (bound.out && bound.out != Py_None) {
        PyErr_Format(PyExc_TypeError,
                     "%s is declared with device=\"any\", and takes no out=", OpCaller(op).description().c_str());
        return nullptr;
    }
    const auto n = static_cast<Py_ssize_t>(bound.arrays.size());
    const Ref arrays = Ref::steal(PyTuple_New(n)), statics = Ref::steal(PyDict_New());
    if (!arrays || !statics) return nullptr;
    for (Py_ssize_t k = 0; k < n; ++k)
        PyTuple_SET_ITEM(arrays.get(), k, Py_NewRef(bound.arrays[static_cast<size_t>(k)]));
    for (size_t i = 0; i < bound.static_names.size(); ++i)
        if (PyDict_SetItem(statics.get(), bound.static_names[i], bound.static_values[i]) < 0) return nullptr;
    return survive([&] {
        return PyObject_CallFunctionObjArgs(up_calls.device_call, reinterpret_cast<PyObject*>(&op), arrays.get(),
                                            statics.get(), nullptr);
    });
}

// Tensors, and examples under vmap.
bool any_recorded(const BoundArguments& bound) {
    for (PyObject* array : bound.arrays) {
        if (is_exact_array(array)) continue;
        PyObject* types = up_calls.recorded_types;
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(types); ++k)
            if (reinterpret_cast<PyObject*>(Py_TYPE(array)) == PyTuple_GET_ITEM(types, k)) return true;
    }
    return false;
}

PyObject* call_recorded(OpObject& op, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
    Ref positional = Ref::steal(PyTuple_New(n)), keywords = Ref::steal(PyDict_New());
    if (!positional || !keywords) return nullptr;
    for (Py_ssize_t k = 0; k < n; ++k) PyTuple_SET_ITEM(positional.get(), k, Py_NewRef(args[k]));
    for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); ++k)
        if (PyDict_SetItem(keywords.get(), PyTuple_GET_ITEM(kwnames, k), args[n + k]) < 0) return nullptr;
    return PyObject_CallFunctionObjArgs(up_calls.recorded_call, reinterpret_cast<PyObject*>(&op), positional.get(),
                                        keywords.get(), nullptr);
}

PyObject* call_general(OpObject& op, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
    if (op.is_method) {
        if (n == 0) {
            PyErr_Format(PyExc_TypeError, "%s is a method: call it on an instance", OpCaller(op).description().c_str());
            return nullptr;
        }
        Ref bound_op = Ref::steal(op_bind_instance_new(&op, args[0]));
        return bound_op ? op_vectorcall(bound_op.get(), args + 1, static_cast<size_t>(n - 1), kwnames) : nullptr;
    }
    BoundArguments bound;
    if (bind_arguments(op, args, n, kwnames, bound) < 0) return nullptr;
    if (any_recorded(bound)) return call_recorded(op, args, n, kwnames);
    PyObject* graph = graph_among(bound.arrays.data(), static_cast<Py_ssize_t>(bound.arrays.size()));
    if (graph) return call_symbolically(op, graph, bound);
    return op.declared().any_device ? call_on_devices(op, bound) : call_on_arrays(op, bound);
}

}  // namespace

namespace {

// Tensors of types that export by C functions, and ndarrays. 1: something else is among them, or does not fit as it is.
__attribute__((noinline)) int call_on_tensors(OpObject& op, PyObject* const* args, Py_ssize_t n, PyObject** result) {
    PyObject* arrays[kPlainArity];
    uint32_t lent = 0;
    int status = 0;
    for (Py_ssize_t k = 0; k < n && status == 0; ++k) {
        arrays[k] = args[k];
        if (is_exact_array(args[k])) continue;
        const Exporter* exporter = exporter_of(args[k]);
        arrays[k] = exporter ? lend_tensor_new(args[k], *exporter) : nullptr;
        if (PYOP_LIKELY(arrays[k] != nullptr)) {
            lent |= 1u << k;
        } else if (exporter && !PyErr_ExceptionMatches(PyExc_Exception)) {
            status = -1;
        } else {
            PyErr_Clear();  // the general call finds it again, and says of which argument it is
            status = 1;
        }
    }
    if (status == 0) status = checked_call_plain(op.call_fn, op.declared(), arrays, n, result, OpCaller(op, args));
    std::optional<SavedError> keep;
    if (status < 0) keep.emplace();
    for (Py_ssize_t k = 0; k < n; ++k)
        if (lent >> k & 1) lend_return_steal(as_array(arrays[k]));
    return status;
}

PYOP_INLINE PyObject* call(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
    OpObject& op = *as_op(self);
    if (PYOP_LIKELY(op.fast && !kwnames && n == op.n_in && !graphs_being_built)) {
        bool arrays = true;
        for (Py_ssize_t k = 0; k < n; ++k) arrays &= is_exact_array(args[k]);
        if (PYOP_LIKELY(arrays)) {
            PyObject* result;
            const int done = checked_call_plain(op.call_fn, op.declared(), args, n, &result, OpCaller(op));
            if (PYOP_LIKELY(done <= 0)) return done < 0 ? nullptr : result;
        } else {
            PyObject* result;
            const int done = guarded([&] { return call_on_tensors(op, args, n, &result); }, -1);
            if (done <= 0) return done < 0 ? nullptr : result;
        }
    }
    return guarded([&] { return call_general(op, args, n, kwnames); }, static_cast<PyObject*>(nullptr));
}

// Whether a call with that result has added to a graph instead of computing.
bool is_symbolic(PyObject* result) {
    if (is_value(result) || Py_TYPE(result) == node_type) return true;
    if (PyTuple_CheckExact(result)) return PyTuple_GET_SIZE(result) && is_symbolic(PyTuple_GET_ITEM(result, 0));
    if (PyList_CheckExact(result)) return PyList_GET_SIZE(result) && is_symbolic(PyList_GET_ITEM(result, 0));
    Py_ssize_t at = 0;
    PyObject* item;
    return PyDict_CheckExact(result) && PyDict_Next(result, &at, nullptr, &item) && is_symbolic(item);
}

// A call in the profile. What becomes a node of a graph is no call.
__attribute__((noinline)) PyObject* call_profiled(PyObject* self, PyObject* const* args, Py_ssize_t n,
                                                  PyObject* kwnames) {
    OpObject& op = *as_op(self);
    // A method is called through the op that it binds, and that call is the one to record.
    if (op.is_method) return call(self, args, n, kwnames);
    // Every bound op is an object of its own, and all are one in the profile.
    PyObject* declared = op.unbound ? op.unbound : self;
    Scope scope(as_op(declared)->profile_id, declared, kWholeCall);
    const Py_ssize_t n_all = n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    for (Py_ssize_t k = 0; k < n_all; ++k) scope.bytes_in += bytes_in_arrays(args[k]);
    PyObject* result = call(self, args, n, kwnames);
    if (!result) return nullptr;
    if (PYOP_UNLIKELY(!is_exact_array(result) && is_symbolic(result))) scope.forget();
    scope.succeeded(bytes_in_arrays(result));
    return result;
}

}  // namespace

PyObject* op_vectorcall(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
    reaper_poll();
    if (stack_is_low()) return no_stack_left(" in a call of an op");
    const Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    return profiling() ? call_profiled(self, args, n, kwnames) : call(self, args, n, kwnames);
}

PyObject* package_steal(const Contract& c, PyObject** items) {
    const Py_ssize_t n = c.n_out();
    if (c.form == ResultForm::Single && n == 1) return items[0];
    if (n == 0 && c.form != ResultForm::Tree) Py_RETURN_NONE;
    Ref all = Ref::steal(c.form == ResultForm::Tuple ? PyTuple_New(n) : PyList_New(n));
    for (Py_ssize_t k = 0; k < n; ++k) {
        if (!all)
            Py_DECREF(items[k]);
        else if (c.form == ResultForm::Tuple)
            PyTuple_SET_ITEM(all.get(), k, items[k]);
        else
            PyList_SET_ITEM(all.get(), k, items[k]);
    }
    if (!all || c.form != ResultForm::Tree) return all.release();
    return survive([&] { return PyObject_CallMethodOneArg(c.tree, up_attributes.unflatten, all.get()); });
}

}  // namespace pyop
