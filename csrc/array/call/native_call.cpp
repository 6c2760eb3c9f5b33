// array/call/native_call.cpp: call a NativeKernel by its ufunc, with out=, and check results against the declaration.
#include "array/call/native_call.h"

#include <algorithm>
#include <vector>

#include "array/call/adopt.h"
#include "array/contract/describe.h"
#include "array/native/native_kernel.h"
#include "runtime/errors.h"
#include "runtime/forced_exit.h"

namespace pyop {

namespace {

// Whether `a` is output k: of a gufunc-style declaration, behind the leading dimensions.
bool fits(const Contract& c, size_t k, PyArrayObject* a, Bindings& b, const LoopShape& loop) {
    const ArraySpec& spec = (*c.outputs)[k];
    if (!c.gufunc) return match(spec, a, b);
    npy_intp core[NPY_MAXDIMS];
    PyArray_Descr* descr = nullptr;
    const int ndim = resolve_output(spec, b, core, &descr);
    return ndim >= 0 && PyArray_NDIM(a) == loop.ndim + ndim &&
           (!descr || PyArray_EquivTypes(descr, PyArray_DESCR(a))) &&
           std::equal(loop.dims, loop.dims + loop.ndim, PyArray_DIMS(a)) &&
           std::equal(core, core + ndim, PyArray_DIMS(a) + loop.ndim);
}

PYOP_COLD int wrong_result(const Contract& c, size_t k, PyObject* a, const Bindings& b, const LoopShape& loop,
                           bool given, const Caller& caller) {
    const std::string leading =
        loop.ndim ? "the leading dimensions " + shape_text(loop.ndim, loop.dims) + " and then " : "";
    PyErr_Format(given ? errors.input : errors.output, "%s %zu of %s is %s, but expects %s%s%s\n  in %s",
                 given ? "out= for output" : "output", k, caller.name().c_str(), array_text(a).c_str(), leading.c_str(),
                 spec_text(c, (*c.outputs)[k]).c_str(), bindings_text(c, b).c_str(), caller.description().c_str());
    return -1;
}

}  // namespace

int native_call(const Callee& callee, PyObject* const* arrays, Py_ssize_t n, Bindings& b, const LoopShape& loop,
                PyObject** outs, PyObject* const* out, const Caller& caller) {
    const Contract& c = *callee.contract;
    const auto n_out = static_cast<size_t>(callee.n_out);
    std::vector<PyObject*> argv(1);
    argv.insert(argv.end(), arrays, arrays + n);
    if (out) {
        Bindings trial = b;  // names that only outputs bind are bound by the results
        for (size_t k = 0; k < n_out; ++k) {
            if (!fits(c, k, as_array(out[k]), trial, loop)) return wrong_result(c, k, out[k], b, loop, true, caller);
            argv.push_back(out[k]);
        }
    }
    Ref result = Ref::steal(vectorcall_new(as_native_kernel(callee.fn).ufunc, argv.data() + 1,
                                           (argv.size() - 1) | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
    if (!result) {
        note_call(caller, arrays, n);
        return -1;
    }
    std::vector<Ref> made;
    for (size_t k = 0; k < n_out; ++k) {
        PyObject* value = n_out == 1 ? result.get() : PyTuple_GET_ITEM(result.get(), static_cast<Py_ssize_t>(k));
        made.push_back(is_exact_array(value) ? Ref::borrow(value) : Ref::steal(as_object(to_array_new(value))));
        if (!made.back()) return -1;
        if (!fits(c, k, as_array(made.back().get()), b, loop))
            return wrong_result(c, k, made.back().get(), b, loop, false, caller);
    }
    for (size_t k = 0; k < n_out; ++k) outs[k] = made[k].release();
    return 0;
}

}  // namespace pyop
