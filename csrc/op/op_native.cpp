// op/op_native.cpp: call an op that is compiled code eagerly, where the arrays lie as its loop takes them: no views
// are lent, no ufunc is asked. Whatever else it is goes the way of all ops, and ends in array/call/native_call.cpp.
#include "array/call/checked_call.h"
#include "array/contract/match.h"
#include "array/loop/fp_flags.h"
#include "array/loop/ufunc_errors.h"
#include "array/memory/overlap.h"
#include "array/memory/pool.h"
#include "array/native/native_kernel.h"
#include "graph/build.h"
#include "op/op.h"
#include "profile/scope.h"
#include "runtime/attach.h"
#include "runtime/errors.h"
#include "runtime/reaper.h"
#include "runtime/release_gil.h"

namespace pyop {

namespace {

// The elements of arrays of one shape, in one run.
struct ElementRun {
    int ndim;
    const npy_intp* dims;
    npy_intp n;
};

// Elements that follow each other by one step.
PYOP_INLINE bool is_one_run(PyArrayObject* a) { return PyArray_NDIM(a) <= 1 || PyArray_IS_C_CONTIGUOUS(a); }

PYOP_INLINE npy_intp step_of(PyArrayObject* a) {
    return PyArray_NDIM(a) == 1 ? PyArray_STRIDE(a, 0) : PyArray_ITEMSIZE(a);
}

PYOP_INLINE bool has_shape(PyArrayObject* a, const ElementRun& run) {
    if (PyArray_NDIM(a) != run.ndim) return false;
    for (int d = 0; d < run.ndim; ++d)
        if (PyArray_DIM(a, d) != run.dims[d]) return false;
    return true;
}

PYOP_INLINE bool is_operand(PyObject* o, PyArray_Descr* dtype) {
    return is_exact_array(o) && PyArray_DESCR(as_array(o)) == dtype && PyArray_ISALIGNED(as_array(o)) &&
           is_one_run(as_array(o));
}

// Whether the result may be computed in `out` though an input shares its memory: element by element, at the same place.
bool may_write(PyArrayObject* out, PyObject* const* args, int n_in) {
    if (step_of(out) == 0) return false;  // many elements in one place
    for (int k = 0; k < n_in; ++k) {
        PyArrayObject* a = as_array(args[k]);
        const bool same = PyArray_DATA(a) == PyArray_DATA(out) && step_of(a) == step_of(out) &&
                          PyArray_ITEMSIZE(a) == PyArray_ITEMSIZE(out);
        if (!same && may_overlap(a, out)) return false;
    }
    return true;
}

PYOP_COLD int failed(OpObject& op, int status, PyObject* const* args) {
    native_call_failed(*as_native_kernel(op.call_fn).code, status);
    note_call(OpCaller(op), args, op.n_in);
    return -1;
}

PYOP_COLD int report(OpObject& op, int flags, PyObject* const* args) {
    clear_all_fp_errors();
    if (report_fp_errors(as_native_kernel(op.call_fn).code->name->c_str(), flags) == 0) return 0;
    note_call(OpCaller(op), args, op.n_in);
    return -1;
}

// 0, -1 with the error set, 1 where it is to be called another way. Nothing is kept of the op while it runs without the
// GIL: the caller holds the op, and the op its code.
PYOP_INLINE int call_elements(OpObject& op, PyObject* const* args, PyObject* out, PyObject*& result) {
    const NativeKernel& kernel = as_native_kernel(op.call_fn);
    const NativeCode& code = *kernel.code;
    NativeKernel::Ready& ready = *kernel.ready;
    const Contract& c = op.declared();
    const int n_in = code.n_in;
    if (PYOP_UNLIKELY(code.n_operands != n_in + 1 || !is_operand(args[0], ready.dtypes[0]))) return 1;
    PyArrayObject* first = as_array(args[0]);
    ElementRun run{PyArray_NDIM(first), PyArray_DIMS(first), 1};
    for (int d = 0; d < run.ndim; ++d) run.n *= run.dims[d];
    char* data[NativeCode::kMaxOperands];
    npy_intp steps[NativeCode::kMaxOperands];
    data[0] = PyArray_BYTES(first);
    steps[0] = step_of(first);
    for (int k = 1; k < n_in; ++k) {
        if (PYOP_UNLIKELY(!is_operand(args[k], ready.dtypes[k]) || !has_shape(as_array(args[k]), run))) return 1;
        data[k] = PyArray_BYTES(as_array(args[k]));
        steps[k] = step_of(as_array(args[k]));
    }
    SizeBindings b(c);
    if (!op.any_alike) {
        if (!c.outputs->front().plain) return 1;
        for (int k = 0; k < n_in; ++k) {
            const ArraySpec& spec = (*c.inputs)[static_cast<size_t>(k)];
            if (!spec.plain || !match_plain(spec, as_array(args[k]), b)) return 1;
        }
    }
    PyArray_Descr* dtype = ready.dtypes[n_in];
    if (out) {
        if (!is_operand(out, dtype) || !PyArray_ISWRITEABLE(as_array(out)) || !has_shape(as_array(out), run) ||
            !may_write(as_array(out), args, n_in))
            return 1;
        result = Py_NewRef(out);
    } else {
        result = run.n * PyDataType_ELSIZE(dtype) <= ResultRecycler::kMostBytes
                     ? ready.recycler.take(dtype, run.ndim, run.dims)
                     : pooled_array_new(dtype, run.ndim, run.dims, nullptr);
        if (PYOP_UNLIKELY(!result)) return -1;
    }
    PyArrayObject* made = as_array(result);
    if (!op.any_alike && !match_plain(c.outputs->front(), made, b)) {
        Py_DECREF(result);
        return 1;
    }
    data[n_in] = PyArray_BYTES(made);
    steps[n_in] = step_of(made);
    int status = 0;
    if (PYOP_UNLIKELY(all_fp_errors())) clear_all_fp_errors();
    if (PYOP_LIKELY(run.n > 0)) {
        const DetachScope detached(run.n >= kReleaseForeign && !code.needs_gil);
        status = code.run(data, &run.n, steps);
    }
    const int flags = all_fp_errors();
    int done = 0;
    if (PYOP_UNLIKELY(status != 0 || (code.may_raise && PyErr_Occurred())))
        done = failed(op, status, args);
    else if (PYOP_UNLIKELY(flags != 0))
        done = report(op, flags, args);
    if (PYOP_UNLIKELY(done < 0)) Py_DECREF(result);
    return done;
}

// With core dimensions. As call_elements(); a failure, or a flag, is left to the ufunc, which computes once more.
int call_cores(OpObject& op, PyObject* const* args, PyObject*& result) {
    const NativeKernel::Ready& ready = *as_native_kernel(op.call_fn).ready;
    const Contract& c = op.declared();
    if (!ready.has_core_loop || op.stateful || ready.core_loop.n_outputs() != 1) return 1;
    if (!c.gufunc) {
        SizeBindings b(c);
        for (int k = 0; k < op.n_in; ++k) {
            const ArraySpec& spec = (*c.inputs)[static_cast<size_t>(k)];
            if (!spec.plain || !is_exact_array(args[k]) || !match_plain(spec, as_array(args[k]), b)) return 1;
        }
    }
    const int done = ready.core_loop.run(args, &result, CoreLoop::Errors::All);
    return done > 0 ? 0 : done < 0 ? -1 : 1;
}

// The array of out=, if that is the one keyword; null if there is none. False: sort the arguments.
PYOP_INLINE bool only_out(PyObject* const* keyword_values, PyObject* kwnames, PyObject*& out) {
    out = nullptr;
    if (!kwnames) return true;
    static PyObject* interned = nullptr;  // as the names of call sites are; the GIL guards it
    if (PYOP_UNLIKELY(!interned)) interned = PyUnicode_InternFromString("out");
    if (PyTuple_GET_SIZE(kwnames) != 1 || PyTuple_GET_ITEM(kwnames, 0) != interned || !interned) {
        PyErr_Clear();
        return false;
    }
    out = keyword_values[0];
    return true;
}

}  // namespace

bool takes_any_alike(const Contract& c) {
    if (!c.inputs_declared || c.abstract) return false;
    const auto open = [&](const ArraySpec& spec) {
        if (c.gufunc) return spec.dims.empty();
        return !spec.rank_known || (spec.dims.size() == 1 && spec.variadic == 0);
    };
    for (const ArraySpec& spec : *c.inputs)
        if (!open(spec)) return false;
    for (const ArraySpec& spec : *c.outputs)
        if (!open(spec)) return false;
    return true;
}

PyObject* native_op_vectorcall(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
    OpObject& op = *as_op(self);
    const Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    PyObject *out, *result;
    if (PYOP_LIKELY(n == op.n_in && only_out(args + n, kwnames, out) && !graphs_being_built && !profiling())) {
        reaper_poll();
        int done = 1;
        if (PYOP_LIKELY(as_native_kernel(op.call_fn).code->elementwise()))
            done = call_elements(op, args, out, result);
        else if (!out)
            done = guarded([&] { return call_cores(op, args, result); }, -1);
        if (PYOP_LIKELY(done <= 0)) return done < 0 ? nullptr : result;
    }
    return op_vectorcall(self, args, nargsf, kwnames);
}

}  // namespace pyop
