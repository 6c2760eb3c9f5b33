#include "array/gufunc_call.h"

#include <algorithm>

#include "array/adopt.h"
#include "array/describe.h"
#include "runtime/errors.h"

namespace pyop {

namespace {

// One operand: a read-only view of its core dimensions that moves along the loop.
struct Operand {
    PyArrayObject* array;           // borrowed
    int core_ndim = 0;
    char* data = nullptr;           // of the current index
    npy_intp strides[NPY_MAXDIMS];  // along the loop, 0 where broadcast
    Ref view;

    void place(const LoopShape& loop, const ArraySpec& spec, const Bindings& b) {
        core_ndim = pyop::core_ndim(spec, b);
        data = PyArray_BYTES(array);
        const int outer = PyArray_NDIM(array) - core_ndim;
        std::fill_n(strides, loop.ndim, 0);
        for (int d = 0; d < outer; ++d)
            if (PyArray_DIM(array, d) != 1) strides[loop.ndim - outer + d] = PyArray_STRIDE(array, d);
    }

    // The view of the current index: the last one moved on, unless somebody kept it.
    PyObject* current() {
        if (view && uniquely_owned(view.get())) {
            auto* v = reinterpret_cast<PyArrayObject_fields*>(view.get());
            if (!v->weakreflist && !v->_buffer_info && !(v->flags & NPY_ARRAY_WRITEABLE)) {
                v->data = data;
                return view.get();
            }
        }
        const int outer = PyArray_NDIM(array) - core_ndim;
        PyArray_Descr* descr = PyArray_DESCR(array);
        Py_INCREF(descr);
        const int flags = PyArray_FLAGS(array) & NPY_ARRAY_ALIGNED;
        view = Ref::steal(PyArray_NewFromDescr(&PyArray_Type, descr, core_ndim, PyArray_DIMS(array) + outer,
                                               PyArray_STRIDES(array) + outer, data, flags, nullptr));
        if (view && PyArray_SetBaseObject(as_array(view.get()), Py_NewRef(as_object(array))) < 0) view.reset();
        return view.get();
    }
};

// One output: allocated when the first call has told its core shape and dtype.
struct Result {
    Ref array;
    int core_ndim = 0;

    int allocate(const LoopShape& loop, int ndim, const npy_intp* dims, PyArray_Descr* descr) {
        npy_intp shape[NPY_MAXDIMS];
        if (loop.ndim + ndim > NPY_MAXDIMS) {
            PyErr_Format(PyExc_ValueError, "the result would have %d dimensions, NumPy allows %d", loop.ndim + ndim,
                         NPY_MAXDIMS);
            return -1;
        }
        std::copy_n(loop.dims, loop.ndim, shape);
        std::copy_n(dims, ndim, shape + loop.ndim);
        core_ndim = ndim;
        Py_INCREF(descr);
        array = Ref::steal(PyArray_NewFromDescr(&PyArray_Type, descr, loop.ndim + ndim, shape, nullptr, nullptr, 0,
                                                nullptr));
        return array ? 0 : -1;
    }

    // Copies one call's result to its place; `index` counts the calls, in C order.
    int store(npy_intp index, PyArrayObject* value) {
        PyArrayObject* a = as_array(array.get());
        const npy_intp block = PyArray_MultiplyList(PyArray_DIMS(a) + PyArray_NDIM(a) - core_ndim, core_ndim);
        char* at = PyArray_BYTES(a) + index * block * PyArray_ITEMSIZE(a);
        PyArray_Descr* descr = PyArray_DESCR(a);
        Py_INCREF(descr);
        Ref place = Ref::steal(PyArray_NewFromDescr(&PyArray_Type, descr, core_ndim,
                                                    PyArray_DIMS(a) + PyArray_NDIM(a) - core_ndim, nullptr, at,
                                                    NPY_ARRAY_CARRAY, nullptr));
        return place ? PyArray_CopyInto(as_array(place.get()), value) : -1;
    }

    bool fits(PyArrayObject* value) const {
        PyArrayObject* a = as_array(array.get());
        return PyArray_EquivTypes(PyArray_DESCR(a), PyArray_DESCR(value)) && PyArray_NDIM(value) == core_ndim &&
               std::equal(PyArray_DIMS(value), PyArray_DIMS(value) + core_ndim,
                          PyArray_DIMS(a) + PyArray_NDIM(a) - core_ndim);
    }
};

class Loop {
  public:
    Loop(const Callee& callee, PyObject* const* arrays, Py_ssize_t n, Bindings& b, const LoopShape& shape,
         const Caller& caller)
        : callee_(callee), c_(*callee.contract), arrays_(arrays), b_(b), shape_(shape), caller_(caller),
          operands_(static_cast<size_t>(n)), results_(static_cast<size_t>(callee.n_out)) {
        for (size_t k = 0; k < operands_.size(); ++k) {
            operands_[k].array = as_array(arrays[k]);
            operands_[k].place(shape, (*c_.inputs)[k], b);
        }
    }

    int run() {
        const npy_intp total = PyArray_MultiplyList(const_cast<npy_intp*>(shape_.dims), shape_.ndim);
        if (total == 0) return allocate_empty();
        npy_intp index[NPY_MAXDIMS] = {};
        for (npy_intp i = 0; i < total; ++i) {
            if (call_once(i) < 0) return -1;
            advance(index);
        }
        return 0;
    }

    PyObject* result_new(Py_ssize_t k) const { return results_[static_cast<size_t>(k)].array.new_ref(); }

  private:
    int call_once(npy_intp i) {
        const size_t n = operands_.size();
        const size_t n_args = callee_.form ? callee_.form->order.size() : n;
        argv_.resize(n_args + 1);
        for (size_t a = 0; a < n_args; ++a) {
            const int32_t code = callee_.form ? callee_.form->order[a] : static_cast<int32_t>(a);
            argv_[a + 1] = code >= 0 ? operands_[static_cast<size_t>(code)].current()
                                     : PyTuple_GET_ITEM(callee_.form->statics.get(), ~code);
            if (!argv_[a + 1]) return -1;
        }
        const Py_ssize_t n_keywords = callee_.form ? callee_.form->n_keywords() : 0;
        Ref result = Ref::steal(vectorcall_new(
            callee_.fn, argv_.data() + 1,
            (n_args - static_cast<size_t>(n_keywords)) | PY_VECTORCALL_ARGUMENTS_OFFSET,
            callee_.form ? callee_.form->kwnames.get() : nullptr));
        if (!result) {
            note_call(caller_, arrays_, static_cast<Py_ssize_t>(n));
            return -1;
        }
        Ref values = split_result(c_, std::move(result), caller_);
        if (!values) return -1;
        for (size_t k = 0; k < results_.size(); ++k)
            if (take(i, k, PyTuple_GET_ITEM(values.get(), static_cast<Py_ssize_t>(k))) < 0) return -1;
        return 0;
    }

    int take(npy_intp i, size_t k, PyObject* value) {
        // The core shape of `like` is that of the operand's view, not of the whole array.
        std::vector<PyArrayObject*> cores;
        if ((*c_.outputs)[k].like >= 0)
            for (Operand& o : operands_) cores.push_back(as_array(o.view.get()));
        Ref a = Ref::steal(as_object(adopt_new(&c_, static_cast<Py_ssize_t>(k), value, cores.data(), b_, caller_)));
        if (!a) return -1;
        PyArrayObject* array = as_array(a.get());
        Result& r = results_[k];
        if (i == 0 && r.allocate(shape_, PyArray_NDIM(array), PyArray_DIMS(array), PyArray_DESCR(array)) < 0) return -1;
        if (!r.fits(array)) {
            PyErr_Format(errors.output, "%zu-th value returned by %s is %s in call %zd of the loop over leading "
                         "dimensions, but was %s in the first; they must agree\n  in %s", k, caller_.name().c_str(),
                         array_text(a.get()).c_str(), i, first_core_text(r).c_str(), caller_.description().c_str());
            return -1;
        }
        return r.store(i, array);
    }

    static std::string first_core_text(const Result& r) {
        PyArrayObject* a = as_array(r.array.get());
        std::string text = dtype_text(PyArray_DESCR(a)) + "[";
        for (int d = 0; d < r.core_ndim; ++d)
            text += (d ? "," : "") + std::to_string(PyArray_DIM(a, PyArray_NDIM(a) - r.core_ndim + d));
        return text + "]";
    }

    void advance(npy_intp* index) {
        for (int d = shape_.ndim - 1; d >= 0; --d) {
            ++index[d];
            for (Operand& o : operands_) o.data += o.strides[d];
            if (index[d] < shape_.dims[d]) return;
            for (Operand& o : operands_) o.data -= o.strides[d] * shape_.dims[d];
            index[d] = 0;
        }
    }

    // Nothing to call: shapes from the declaration, and dtypes from it or, as ufuncs have it, from the inputs.
    int allocate_empty() {
        auto* const* inputs = reinterpret_cast<PyArrayObject* const*>(arrays_);
        for (size_t k = 0; k < results_.size(); ++k) {
            npy_intp dims[NPY_MAXDIMS];
            PyArray_Descr* descr = nullptr;
            const int ndim = resolve_output((*c_.outputs)[k], inputs, b_, dims, &descr);
            if (ndim < 0) {
                PyErr_Format(errors.output, "output %zu of %s is declared %s, whose shape only a call can tell, but "
                             "the leading dimensions are empty and nothing is called\n  in %s", k,
                             caller_.name().c_str(), spec_text(c_, (*c_.outputs)[k]).c_str(),
                             caller_.description().c_str());
                return -1;
            }
            Ref common;
            if (!descr) {
                common = Ref::steal(reinterpret_cast<PyObject*>(PyArray_ResultType(
                    static_cast<npy_intp>(operands_.size()), const_cast<PyArrayObject**>(inputs), 0, nullptr)));
                if (!common) return -1;
                descr = reinterpret_cast<PyArray_Descr*>(common.get());
            }
            if (results_[k].allocate(shape_, ndim, dims, descr) < 0) return -1;
        }
        return 0;
    }

    const Callee& callee_;
    const Contract& c_;
    PyObject* const* arrays_;
    Bindings& b_;
    const LoopShape& shape_;
    const Caller& caller_;
    std::vector<Operand> operands_;
    std::vector<Result> results_;
    std::vector<PyObject*> argv_;
};

}  // namespace

int gufunc_call(const Callee& callee, PyObject* const* arrays, Py_ssize_t n, Bindings& b, const LoopShape& loop,
                PyObject** outs, PyObject* const* out, const Caller& caller) {
    Loop calls(callee, arrays, n, b, loop, caller);
    if (calls.run() < 0) return -1;
    for (Py_ssize_t k = 0; k < callee.n_out; ++k) {
        Ref result = Ref::steal(calls.result_new(k));
        if (out && PyArray_CopyInto(as_array(out[k]), as_array(result.get())) < 0) {
            while (k-- > 0) Py_CLEAR(outs[k]);
            return -1;
        }
        outs[k] = out ? Py_NewRef(out[k]) : result.release();
    }
    return 0;
}

}  // namespace pyop
