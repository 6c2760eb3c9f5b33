// runtime/python.h: the only place that includes Python.h, and the shims between interpreter versions.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <cstddef>  // size_t
#include <cstdint>  // fixed-width integers

#if PY_VERSION_HEX < 0x030B0000
#error "pyop needs Python 3.11 or newer"
#endif

#define PYOP_LIKELY(x) __builtin_expect(!!(x), 1)
#define PYOP_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define PYOP_INLINE inline __attribute__((always_inline))
// Error construction and other paths that must not crowd the hot code.
#define PYOP_COLD __attribute__((cold, noinline))

namespace pyop {

// True when `o` is referenced by nobody but the caller's own slot. Since 3.14 a count of one does not
// mean that for a function's *arguments* (the interpreter borrows stack references); for objects held in
// our own slots it does, and this is only ever asked of those. Without a GIL the answer is no for what another
// thread has made, whose count nobody else can read.
PYOP_INLINE bool uniquely_owned(PyObject* o) {
#if PY_VERSION_HEX >= 0x030E0000
    return PyUnstable_Object_IsUniquelyReferenced(o) != 0;
#elif defined(Py_GIL_DISABLED)
    return _Py_IsOwnedByCurrentThread(o) && _Py_atomic_load_uint32_relaxed(&o->ob_ref_local) == 1 &&
           _Py_atomic_load_ssize_relaxed(&o->ob_ref_shared) == 0;
#else
    return Py_REFCNT(o) == 1;
#endif
}

// How many references there are; -1 where there is no GIL and another thread may have some.
PYOP_INLINE Py_ssize_t references_of(PyObject* o) {
#ifdef Py_GIL_DISABLED
    const bool mine = _Py_IsOwnedByCurrentThread(o) && _Py_atomic_load_ssize_relaxed(&o->ob_ref_shared) == 0;
    return mine ? static_cast<Py_ssize_t>(_Py_atomic_load_uint32_relaxed(&o->ob_ref_local)) : -1;
#else
    return Py_REFCNT(o);
#endif
}

// For a pointer that holds no reference and is cleared when the object ends: after `enable_try_incref`, once, a
// reference is had by `try_incref`, unless the object ends on another thread just now.
#ifndef Py_GIL_DISABLED
inline void enable_try_incref(PyObject*) {}
inline bool try_incref(PyObject* o) { return Py_INCREF(o), true; }
#elif PY_VERSION_HEX >= 0x030E0000
inline void enable_try_incref(PyObject* o) { PyUnstable_EnableTryIncRef(o); }
inline bool try_incref(PyObject* o) { return PyUnstable_TryIncRef(o) != 0; }
#else
// As CPython 3.13 does for weak references, without a name for it.
inline void enable_try_incref(PyObject* o) {
    Py_ssize_t shared = _Py_atomic_load_ssize_relaxed(&o->ob_ref_shared);
    while ((shared & _Py_REF_SHARED_FLAG_MASK) == 0 &&
           !_Py_atomic_compare_exchange_ssize(&o->ob_ref_shared, &shared, shared | _Py_REF_MAYBE_WEAKREF)) {
    }
}
inline bool try_incref(PyObject* o) {
    const uint32_t local = _Py_atomic_load_uint32_relaxed(&o->ob_ref_local) + 1;
    if (local == 0) return true;  // immortal
    if (_Py_IsOwnedByCurrentThread(o)) return _Py_atomic_store_uint32_relaxed(&o->ob_ref_local, local), true;
    Py_ssize_t shared = _Py_atomic_load_ssize_relaxed(&o->ob_ref_shared);
    do {
        if (shared == 0 || shared == _Py_REF_MERGED) return false;
    } while (!_Py_atomic_compare_exchange_ssize(&o->ob_ref_shared, &shared,
                                                shared + (Py_ssize_t{1} << _Py_REF_SHARED_SHIFT)));
    return true;
}
#endif

}  // namespace pyop
