// array/call/checked_call.h: make one call of a declared Python function on arrays. The middle of every path: eager
// ops, plans and folding come here.
//
//     match the inputs, bind names  →  lend read-only  →  vectorcall  →  split  →  adopt the results
#pragma once

#include "array/call/call_form.h"
#include "array/call/caller.h"
#include "array/contract/contract.h"

namespace pyop {

// The function and what is known of it. Everything is borrowed from the op or node that owns the call.
struct Callee {
    PyObject* fn;
    const Contract* contract;  // null: nothing is declared and nothing checked
    const CallForm* form;      // null: the arrays are the positional arguments
    Py_ssize_t n_out;
    // NumPy's own functions are known not to write into their arguments, and get them as they are.
    bool lends;
    // Bit k: nobody but this call can see array k, so that `mutates=` may have it without a copy.
    uint64_t private_inputs = 0;
};

// Calls on `n` arrays (borrowed; exact ndarrays where a contract declares inputs), storing n_out new
// references in `outs`. `out`, if not null, is one writable array per output for functions that take out=.
// Returns 0, or -1 with the error set and nothing stored.
int checked_call(const Callee& callee, PyObject* const* arrays, Py_ssize_t n, PyObject** outs, PyObject* const* out,
                 const Caller& caller);

// The commonest case (Contract::plain, exact ndarrays, at most kPlainArity of them) without the general path's
// bookkeeping. Returns 0 or -1 as checked_call, or 1 if an argument does not fit as it is: then nothing has
// been called and checked_call() will convert or complain.
inline constexpr Py_ssize_t kPlainArity = 4;
int checked_call_plain(PyObject* fn, const Contract& c, PyObject* const* arrays, Py_ssize_t n, PyObject** result,
                       const Caller& caller);

// An argument as the exact ndarray that input `k` of a contract (may be null) wants: views where NumPy can
// give one without copying, else lists and scalars converted. New reference; nullptr with the error set.
PyObject* argument_new(const Contract* c, Py_ssize_t k, PyObject* value, const Caller& caller);

// What an op with an abstract function (@op.abstract) promises for these arguments: a Contract. Empty with the
// error set on failure. The function is asked once for arguments of the same dtypes and shapes, and only for
// arguments that fit what is declared of them.
Ref abstract_contract_new(const Contract& c, PyObject* const* arrays, Py_ssize_t n, const CallForm* form,
                          const Caller& caller);

// The static keyword arguments of a call as a new dict.
Ref static_dict_new(const CallForm* form);

// Raises InputError for argument k.
PYOP_COLD int wrong_input(const Contract& c, Py_ssize_t k, PyObject* const* arrays, const Caller& caller);

// Adds pyop's one note to an exception of the user's function: where, and on which arrays.
PYOP_COLD void note_call(const Caller& caller, PyObject* const* arrays, Py_ssize_t n);

}  // namespace pyop
