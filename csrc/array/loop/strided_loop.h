// array/loop/strided_loop.h: call NumPy's own inner loop of a ufunc directly; it is asked for once.
//
// The way in is the pair ufunc._resolve_dtypes_and_context / ufunc._get_strided_loop, whose capsule is named after
// the layout of its content. A capsule of another name, a loop that needs the GIL, a ufunc with core dimensions
// or anything else unusual is simply "not available": then the ufunc itself is called, with the same results.
//
// A loop computes what the ufunc computes, bit for bit. It leaves floating-point errors in the processor's status
// flags, and some loops (minimum, comparisons) clear flags that they raised without meaning it. So whoever calls
// it looks at the flags after every call and, if any is raised, calls the ufunc instead, which reports as
// np.errstate asks.
#pragma once

#include <array>

#include "array/numpy.h"
#include "runtime/ref.h"

namespace pyop {

class StridedLoop {
  public:
    static constexpr int kMaxOperands = 4;

    // The loop for `n` inputs of these kinds: a dtype, or the type int, float or complex for a Python number. Returns
    // 1, 0 if not available, -1 with an error set. Attached threads.
    int resolve(PyObject* ufunc, PyObject* const* kinds, int n);

    // As resolve(), also for a ufunc with core dimensions; see core_loop.h for how that is called.
    int resolve_any(PyObject* ufunc, PyObject* const* kinds, int n);

    // A loop that is not NumPy's, but is called as NumPy's are; with these dtypes, NumPy's own. `context` is given to
    // it. It reports failures by its status, and where it `may_raise` by a Python error, on threads that Python knows.
    void assign(int (*loop)(void*, char* const*, const npy_intp*, const npy_intp*, void*), void* context,
                PyObject* const* dtypes, int n_inputs, int n_operands, bool may_raise);
    // Whether it is such a one: nothing is known of how long it takes.
    bool is_foreign() const { return is_foreign_; }
    bool may_raise() const { return may_raise_; }

    int n_inputs() const { return n_inputs_; }
    int n_outputs() const { return n_operands_ - n_inputs_; }
    // The dtype the loop wants of operand i (inputs first); borrowed.
    PyArray_Descr* dtype(int i) const {
        return reinterpret_cast<PyArray_Descr*>(dtypes_[static_cast<size_t>(i)].get());
    }
    npy_intp itemsize(int i) const { return PyDataType_ELSIZE(dtype(i)); }

    // Runs over `n` elements. Any thread; returns 0, or -1 if the loop reports failure.
    int operator()(char* const* data, npy_intp n, const npy_intp* strides) const {
        return loop_(context_, data, &n, strides, auxdata_);
    }

    // With core dimensions: their sizes follow n, and their strides follow those of the operands.
    int call_with_core(char* const* data, const npy_intp* dimensions, const npy_intp* strides) const {
        return loop_(context_, data, dimensions, strides, auxdata_);
    }

    // Flags that this loop raises mean nothing.
    bool ignores_flags() const { return ignores_flags_; }

  private:
    using Function = int(void* context, char* const* data, const npy_intp* dimensions, const npy_intp* strides,
                         void* auxdata);

    Function* loop_ = nullptr;
    void* context_ = nullptr;
    void* auxdata_ = nullptr;
    int n_inputs_ = 0, n_operands_ = 0;
    bool ignores_flags_ = false, is_foreign_ = false, may_raise_ = false;
    std::array<Ref, kMaxOperands> dtypes_;
    Ref capsule_;  // owns context and auxdata
};

// Whether an object is a ufunc itself, not of a derived or another type.
bool is_ufunc(PyObject* o);
// Whether an object is a ufunc that works element by element, with no more operands than a StridedLoop has.
bool is_elementwise_ufunc(PyObject* o);

}  // namespace pyop
