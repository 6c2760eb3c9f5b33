// array/call/plain_call.h: make the plain call where every instruction counts: inline, in the middle of a plan's loop.
#pragma once

#include "array/call/checked_call.h"
#include "array/call/lend.h"
#include "array/contract/match.h"
#include "runtime/errors.h"

namespace pyop {

// A result that is not the declared array as it stands. Null with the error set.
PYOP_COLD PyObject* adopt_other_steal(PyObject* returned, const Contract& c, const SizeBindings& sizes,
                                      const Caller& caller);

// As checked_call_plain(); `caller()` makes the Caller, where one is needed.
template <typename MakeCaller>
PYOP_INLINE int call_plain(PyObject* fn, const Contract& c, PyObject* const* arrays, Py_ssize_t n, PyObject** result,
                           MakeCaller&& caller) {
    SizeBindings b(c);
    if (PYOP_LIKELY(c.inputs_declared)) {
        const ArraySpec* specs = c.inputs->data();
        for (Py_ssize_t k = 0; k < n; ++k)
            if (PYOP_UNLIKELY(!match_plain(specs[k], as_array(arrays[k]), b) ||
                              (!specs[k].dtype && is_foreign(as_array(arrays[k])))))
                return 1;
    } else {
        for (Py_ssize_t k = 0; k < n; ++k)
            if (PYOP_UNLIKELY(is_foreign(as_array(arrays[k])))) return 1;
    }

    PyObject* argv[kPlainArity + 1];  // one in front, so that bound methods can put their self there
    unsigned lent = 0;
    argv[0] = nullptr;
    for (Py_ssize_t k = 0; k < n; ++k) {
        const Loan loan = lend(as_array(arrays[k]));
        if (PYOP_UNLIKELY(!loan.object)) {
            while (k-- > 0)
                if (lent >> k & 1) lend_return_steal(as_array(argv[k + 1]));
            return -1;
        }
        argv[k + 1] = loan.object;
        lent |= static_cast<unsigned>(loan.owned) << k;
    }
    PyObject* r = vectorcall_new(fn, argv + 1, static_cast<size_t>(n) | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
    if (lent) {
        for (Py_ssize_t k = 0; k < n; ++k) {
            if (!(lent >> k & 1)) continue;
            // An argument that is returned is the caller's own array again, as in a direct call.
            if (r == argv[k + 1] && lend_unchanged(as_array(r), as_array(arrays[k]))) {
                r = Py_NewRef(arrays[k]);
                Py_DECREF(argv[k + 1]);
            }
            lend_return_steal(as_array(argv[k + 1]));
        }
    }
    if (PYOP_UNLIKELY(!r)) {
        note_call(caller(), arrays, n);
        return -1;
    }
    const ArraySpec& out = c.outputs->front();
    if (PYOP_LIKELY(is_exact_array(r) && (out.dtype || !is_foreign(as_array(r))) && match_plain(out, as_array(r), b))) {
        *result = r;
        return 0;
    }
    *result = adopt_other_steal(r, c, b, caller());
    return *result ? 0 : -1;
}

}  // namespace pyop
