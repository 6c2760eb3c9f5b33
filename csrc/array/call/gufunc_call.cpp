// array/call/gufunc_call.cpp: loop over the leading dimensions, with one checked call of the function at each index.
#include "array/call/gufunc_call.h"

#include "array/call/adopt.h"
#include "array/call/arguments.h"
#include "array/call/gufunc_operands.h"
#include "array/contract/describe.h"
#include "array/memory/copied.h"
#include "runtime/errors.h"

namespace pyop {

namespace {

class Loop {
  public:
    Loop(const Callee& callee, PyObject* const* arrays, Py_ssize_t n, Bindings& b, const LoopShape& shape,
         const Caller& caller)
        : callee_(callee),
          c_(*callee.contract),
          arrays_(arrays),
          b_(b),
          shape_(shape),
          caller_(caller),
          operands_(static_cast<size_t>(n)),
          results_(static_cast<size_t>(callee.n_out)) {
        for (size_t k = 0; k < operands_.size(); ++k) {
            CoreOperand& o = operands_[k];
            o.array = as_array(arrays[k]);
            o.mutated = c_.mutates_input(static_cast<Py_ssize_t>(k));
            o.at.start(o.array, core_ndim((*c_.inputs)[k], b), shape);
        }
    }

    // `out`: one array per output given by the caller, or null.
    int run(PyObject* const* out) {
        if (out && use_given(out) < 0) return -1;
        const npy_intp total = PyArray_MultiplyList(const_cast<npy_intp*>(shape_.dims), shape_.ndim);
        if (total == 0) return allocate_empty();
        pass_out_ = out ? c_.out_mode != OutMode::None : c_.out_mode == OutMode::Required;
        if (pass_out_ && prepare_out(out != nullptr) < 0) return -1;
        npy_intp index[NPY_MAXDIMS] = {};
        for (npy_intp i = 0; i < total; ++i) {
            if (call_once(i) < 0) return -1;
            advance(index);
        }
        for (size_t k = 0; k < results_.size(); ++k)
            if (!results_[k].as_made()) return result_changed(k);
        return 0;
    }

    PyObject* result_new(Py_ssize_t k) const { return results_[static_cast<size_t>(k)].array.new_ref(); }

  private:
    auto* const* inputs() const { return reinterpret_cast<PyArrayObject* const*>(arrays_); }

    int use_given(PyObject* const* out) {
        for (size_t k = 0; k < results_.size(); ++k) {
            PyArrayObject* a = as_array(out[k]);
            const ArraySpec& spec = (*c_.outputs)[k];
            bool fits =
                PyArray_NDIM(a) >= shape_.ndim && std::equal(shape_.dims, shape_.dims + shape_.ndim, PyArray_DIMS(a));
            if (fits) {
                results_[k].use(out[k], PyArray_NDIM(a) - shape_.ndim, shape_);
                results_[k].given = true;
                Ref core = Ref::steal(results_[k].place_new());
                if (!core) return -1;
                Bindings trial = b_;  // names that only outputs bind are bound by the results
                fits = match(spec, as_array(core.get()), trial);
            }
            if (fits) continue;
            PyErr_Format(errors.input,
                         "out= for output %zu of %s is %s, but expects the leading dimensions %s and then "
                         "%s%s\n  in %s",
                         k, caller_.name().c_str(), array_text(out[k]).c_str(),
                         shape_text(shape_.ndim, shape_.dims).c_str(), spec_text(c_, spec).c_str(),
                         bindings_text(c_, b_).c_str(), caller_.description().c_str());
            return -1;
        }
        return 0;
    }

    // The function takes out=: its places must exist before the first call.
    int prepare_out(bool given) {
        for (size_t k = 0; k < results_.size() && !given; ++k) {
            Ref core = Ref::steal(allocate_output_new(c_, static_cast<Py_ssize_t>(k), b_, caller_));
            if (!core) return -1;
            PyArrayObject* a = as_array(core.get());
            if (results_[k].allocate(shape_, PyArray_NDIM(a), PyArray_DIMS(a), PyArray_DESCR(a)) < 0) return -1;
        }
        kwnames_ = Ref::steal(Py_BuildValue("(s)", "out"));
        if (kwnames_ && callee_.form && callee_.form->kwnames)
            kwnames_ = Ref::steal(PySequence_Concat(callee_.form->kwnames.get(), kwnames_.get()));
        return kwnames_ ? 0 : -1;
    }

    // The places of one call: an array, or a tuple of them.
    Ref places_new(std::vector<Ref>& places) const {
        for (const Result& r : results_) {
            places.push_back(Ref::steal(r.place_new()));
            if (!places.back()) return {};
        }
        if (places.size() == 1) return places[0];
        Ref tuple = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(places.size())));
        for (size_t k = 0; tuple && k < places.size(); ++k)
            PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(k), places[k].new_ref());
        return tuple;
    }

    int call_once(npy_intp i) {
        const size_t n_args = callee_.form ? callee_.form->order.size() : operands_.size();
        argv_.resize(n_args + 2);
        for (size_t a = 0; a < n_args; ++a) {
            const int32_t code = callee_.form ? callee_.form->order[a] : static_cast<int32_t>(a);
            argv_[a + 1] = code >= 0 ? operands_[static_cast<size_t>(code)].current()
                                     : PyTuple_GET_ITEM(callee_.form->statics.get(), ~code);
            if (!argv_[a + 1]) return -1;
        }
        std::vector<Ref> places;
        Ref out;
        if (pass_out_) {
            out = places_new(places);
            if (!out) return -1;
            argv_[n_args + 1] = out.get();
        }
        const Py_ssize_t n_keywords = callee_.form ? callee_.form->n_keywords() : 0;
        PyObject* kwnames = pass_out_ ? kwnames_.get() : callee_.form ? callee_.form->kwnames.get() : nullptr;
        Ref result = Ref::steal(
            vectorcall_new(callee_.fn, argv_.data() + 1,
                           (n_args - static_cast<size_t>(n_keywords)) | PY_VECTORCALL_ARGUMENTS_OFFSET, kwnames));
        if (!result) {
            note_call(caller_, arrays_, static_cast<Py_ssize_t>(operands_.size()));
            return -1;
        }
        if (out && result.get() == Py_None) result = out;
        Ref values = split_result(c_, std::move(result), caller_);
        if (!values) return -1;
        for (size_t k = 0; k < results_.size(); ++k) {
            PyObject* value = PyTuple_GET_ITEM(values.get(), static_cast<Py_ssize_t>(k));
            if (take(i, k, value, out ? places[k].get() : nullptr) < 0) return -1;
        }
        return 0;
    }

    int take(npy_intp i, size_t k, PyObject* value, PyObject* place) {
        Ref a = Ref::steal(as_object(adopt_new(&c_, static_cast<Py_ssize_t>(k), value, b_, caller_)));
        if (!a) return -1;
        PyArrayObject* array = as_array(a.get());
        Result& r = results_[k];
        if (!r.array && r.allocate(shape_, PyArray_NDIM(array), PyArray_DIMS(array), PyArray_DESCR(array)) < 0)
            return -1;
        if (!r.fits(array)) {
            PyErr_Format(errors.output,
                         "%zu-th value returned by %s is %s in call %zd of the loop over leading "
                         "dimensions, but %s %s; they must agree\n  in %s",
                         k, caller_.name().c_str(), array_text(a.get()).c_str(), i,
                         r.given ? "out= takes" : "the first was", core_text(r).c_str(), caller_.description().c_str());
            return -1;
        }
        if (a.get() == place) return 0;
        Ref to = place ? Ref::borrow(place) : Ref::steal(r.place_new());
        return to ? counted(PyArray_CopyInto(as_array(to.get()), array), array) : -1;
    }

    // Through `.base` of the place it was given.
    PYOP_COLD int result_changed(size_t k) const {
        PyErr_Format(errors.output,
                     "the function has given the array for output %zu of %s another shape or dtype, now %s, while it "
                     "was called for one core after the other: let it write to what it is given, and reshape the "
                     "result\n  in %s",
                     k, caller_.name().c_str(), array_text(results_[k].array.get()).c_str(),
                     caller_.description().c_str());
        return -1;
    }

    static std::string core_text(const Result& r) {
        return dtype_text(r.at.descr()) + shape_text(r.at.core_ndim(), r.at.core_dims.data());
    }

    void advance(npy_intp* index) {
        for (int d = shape_.ndim - 1; d >= 0; --d) {
            ++index[d];
            move(d, 1);
            if (index[d] < shape_.dims[d]) return;
            move(d, -shape_.dims[d]);
            index[d] = 0;
        }
    }

    void move(int d, npy_intp steps) {
        for (CoreOperand& o : operands_) o.at.data += o.at.strides[d] * steps;
        for (Result& r : results_) r.at.data += r.at.strides[d] * steps;
    }

    // Nothing to call: shapes from the declaration, and dtypes from it or, as ufuncs have it, from the inputs.
    int allocate_empty() {
        for (size_t k = 0; k < results_.size(); ++k) {
            if (results_[k].given) continue;
            npy_intp dims[NPY_MAXDIMS];
            PyArray_Descr* descr = nullptr;
            const int ndim = resolve_output((*c_.outputs)[k], b_, dims, &descr);
            if (ndim < 0) {
                PyErr_Format(errors.output,
                             "output %zu of %s is declared %s, whose shape only a call can tell, but "
                             "the leading dimensions are empty and nothing is called\n  in %s",
                             k, caller_.name().c_str(), spec_text(c_, (*c_.outputs)[k]).c_str(),
                             caller_.description().c_str());
                return -1;
            }
            Ref common;
            if (!descr) {
                common = Ref::steal(reinterpret_cast<PyObject*>(PyArray_ResultType(
                    static_cast<npy_intp>(operands_.size()), const_cast<PyArrayObject**>(inputs()), 0, nullptr)));
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
    std::vector<CoreOperand> operands_;
    std::vector<Result> results_;
    std::vector<PyObject*> argv_;
    bool pass_out_ = false;
    Ref kwnames_;
};

}  // namespace

int gufunc_call(const Callee& callee, PyObject* const* arrays, Py_ssize_t n, Bindings& b, const LoopShape& loop,
                PyObject** outs, PyObject* const* out, const Caller& caller) {
    Loop calls(callee, arrays, n, b, loop, caller);
    if (calls.run(out) < 0) return -1;
    for (Py_ssize_t k = 0; k < callee.n_out; ++k) outs[k] = calls.result_new(k);
    return 0;
}

}  // namespace pyop
