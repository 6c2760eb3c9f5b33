// array/loop/quiet.h: silence NumPy about floating-point errors while pyop tries something out, or have it
// raise.
#pragma once

#include <optional>

#include "runtime/errors.h"
#include "runtime/ref.h"

namespace pyop {

// np.errstate(all="ignore") for a block. Attached threads; an error pending at the end stays pending.
class QuietErrors {
  public:
    QuietErrors() : QuietErrors(Ref::steal(Py_BuildValue("{ss}", "all", "ignore"))) {}
    ~QuietErrors() {
        if (!state_) return;
        const SavedError saved;
        if (!Ref::steal(PyObject_CallMethod(state_.get(), "__exit__", "OOO", Py_None, Py_None, Py_None))) PyErr_Clear();
    }
    QuietErrors(const QuietErrors&) = delete;
    QuietErrors& operator=(const QuietErrors&) = delete;

    explicit operator bool() const { return static_cast<bool>(state_); }

  protected:
    explicit QuietErrors(const Ref& how) {
        Ref numpy = Ref::steal(PyImport_ImportModule("numpy"));
        Ref type = numpy ? Ref::steal(PyObject_GetAttrString(numpy.get(), "errstate")) : Ref();
        Ref no_arguments = Ref::steal(PyTuple_New(0));
        if (type && no_arguments && how) state_ = Ref::steal(PyObject_Call(type.get(), no_arguments.get(), how.get()));
        if (state_ && !Ref::steal(PyObject_CallMethod(state_.get(), "__enter__", nullptr))) state_ = Ref();
        if (!state_) PyErr_Clear();
    }

  private:
    Ref state_;
};

// All errors raise, underflow only if that is asked for, or is not ignored as it is. Where np.errstate is as usual this
// sets NumPy's context variable, in 100 ns; else it enters an np.errstate.
class RaisingErrors {
  public:
    explicit RaisingErrors(bool underflow);
    ~RaisingErrors();
    RaisingErrors(const RaisingErrors&) = delete;
    RaisingErrors& operator=(const RaisingErrors&) = delete;

    explicit operator bool() const { return token_ || (state_ && *state_); }

  private:
    class Entered : public QuietErrors {
      public:
        explicit Entered(bool underflow);
    };

    Ref token_;
    std::optional<Entered> state_;
};

}  // namespace pyop
