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
// our own slots it does, and this is only ever asked of those.
PYOP_INLINE bool uniquely_owned(PyObject* o) {
#if PY_VERSION_HEX >= 0x030E0000
    return PyUnstable_Object_IsUniquelyReferenced(o) != 0;
#else
    return Py_REFCNT(o) == 1;
#endif
}

}  // namespace pyop
