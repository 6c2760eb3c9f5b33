// plan/read_call.h: hold the arguments of a compiled function, with `out=` put aside (ReadCall).
#pragma once

#include <vector>

#include "plan/compiled_function.h"
#include "runtime/lazy.h"
#include "runtime/ref.h"

namespace pyop {

inline PyObject* out_name() {
    static constinit Lazy name;
    return name.interned("out");
}

// A call whose `out=`, if it is the plan's and not the function's, has been put aside.
class ReadCall {
  public:
    ReadCall(const CompiledFunctionObject& f, PyObject* const* args, Py_ssize_t n_positional, PyObject* names)
        : call{args, n_positional + (names ? PyTuple_GET_SIZE(names) : 0), n_positional, names} {
        if (names && PyTuple_GET_SIZE(names) == 0) call.names = nullptr;
        if (call.names && f.takes_out) take_out();
    }

    Call call;
    PyObject* out = nullptr;  // borrowed
    bool failed = false;      // with the error set
    bool wants_plan = false;  // a plan is asked for, so the call is traced in any case

  private:
    void take_out() {
        const Py_ssize_t n = PyTuple_GET_SIZE(call.names), first = call.n_positional;
        Py_ssize_t at = 0;
        while (at < n && PyUnicode_Compare(PyTuple_GET_ITEM(call.names, at), out_name()) != 0) ++at;
        if (at == n) return;
        out = call.args[first + at];
        Ref names = n == 1 ? Ref() : Ref::steal(PyTuple_New(n - 1));
        failed = n > 1 && !names;
        if (failed) return;
        if (n > 1) rest_.assign(call.args, call.args + first);
        for (Py_ssize_t i = 0; n > 1 && i < n; ++i) {
            if (i == at) continue;
            PyTuple_SET_ITEM(names.get(), i - (i > at), Py_NewRef(PyTuple_GET_ITEM(call.names, i)));
            rest_.push_back(call.args[first + i]);
        }
        names_ = std::move(names);
        call = {n > 1 ? rest_.data() : call.args, call.n - 1, first, names_.get()};
    }

    std::vector<PyObject*> rest_;
    Ref names_;
};

}  // namespace pyop
