// op/op.h: define Op, a declared Python function. Calling it dispatches:
//
//     op(arrays)             the checked call, now                     op_call.cpp
//                            of compiled code: its loop, at once       op_native.cpp
//     op(…, Value, …)        a node of that Value's graph              op_symbolic.cpp
//     op(…) inside `with g:` a node of g                               op_symbolic.cpp
//
// Immutable but for its attribute dict; attached threads only.
#pragma once

#include <memory>
#include <vector>

#include "array/call/checked_call.h"
#include "profile/events.h"
#include "runtime/ref.h"

namespace pyop {

struct OpObject {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject* fn;             // what the user declared
    PyObject* call_fn;        // what is called with the flat arrays: fn, or something that rebuilds its trees
    PyObject* contract;
    PyObject* signature;      // the Python Signature
    PyObject* name;           // str: base of node names
    PyObject* origin;         // str: "file:line" of the declaration
    PyObject* parameters;     // tuple of str: the positional parameters
    PyObject* defaults;       // tuple: of the last of them
    PyObject* statics;        // tuple of str: the keyword-only parameters
    PyObject* required;       // tuple of str: those without a default
    PyObject* arg_trees;      // tuple of TreeDef, one a parameter, or null when every argument is one array
    PyObject* unbound;        // the op in the class body, of one that is bound to an instance; else null
    PyObject* dict;
    PyObject* weakrefs;
    int32_t n_in;             // positional arguments; -1: any number
    bool stateful;
    bool any_static;          // the function takes **kwargs
    bool is_method;           // declared in a class body: the first argument is self
    bool fast;                // checked_call_plain serves it
    bool any_alike;           // compiled code, declared to take arrays of any one shape
    SourceId profile_id;

    const Contract& declared() const { return *reinterpret_cast<const Contract*>(contract); }
};

extern PyTypeObject* op_type;
int op_init(PyObject* module);

PYOP_INLINE OpObject* as_op(PyObject* o) { return reinterpret_cast<OpObject*>(o); }

PyObject* op_vectorcall(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames);
// Of an op that is compiled code.
PyObject* native_op_vectorcall(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames);
// Whether a declaration says of arrays of one shape no more than their dtypes.
bool takes_any_alike(const Contract& c);

// The op of a bound method: same declaration, `instance` as self.
PyObject* op_bind_instance_new(OpObject* op, PyObject* instance);

// The arguments of one call, sorted: positional ones (defaults filled in, trees flattened), static ones, out.
struct BoundArguments {
    std::vector<PyObject*> arrays;        // borrowed from the caller, the defaults, or `owned`
    std::vector<PyObject*> static_names;  // borrowed
    std::vector<PyObject*> static_values;
    PyObject* out = nullptr;
    std::vector<Ref> owned;
};
int bind_arguments(const OpObject& op, PyObject* const* args, Py_ssize_t n, PyObject* kwnames, BoundArguments& bound);

// The static arguments as a CallForm (null form if there are none). -1 with the error set on failure.
int make_form(const BoundArguments& bound, std::unique_ptr<CallForm>& form);

PyObject* call_symbolically(OpObject& op, PyObject* graph, const BoundArguments& bound);

// One object from n_out() objects, in the declared form. Steals the references in `items`.
PyObject* package_steal(const Contract& c, PyObject** items);

class OpCaller final : public Caller {
  public:
    explicit OpCaller(const OpObject& op, PyObject* const* given = nullptr) : op_(op), given_(given) {}
    std::string name() const override;
    std::string description() const override;
    std::string argument_name(int64_t k) const override;
    void* given(int64_t k) const override { return given_ ? given_[k] : nullptr; }
    const Contract* declared() const override { return &op_.declared(); }

  private:
    const OpObject& op_;
    PyObject* const* given_;
};

}  // namespace pyop
