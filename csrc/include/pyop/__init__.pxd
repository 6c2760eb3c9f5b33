# What C knows of pyop, for Cython 3: `cimport pyop`, or `from pyop cimport pyop_call, pyop_plan_of`.
#
# The words are those of the headers, which say all of it: <pyop/entry.h>, plans called from C; <pyop/kernel.h>, kernels
# that pyop calls; <pyop/python.h>; <pyop/version.h>. Nothing is imported at run time; the C compiler needs the headers:
# pyop.get_include().

from libc.stdint cimport int64_t, intptr_t, uint32_t


cdef extern from "pyop/version.h" nogil:
    const int PYOP_VERSION_MAJOR
    const int PYOP_VERSION_MINOR
    const int PYOP_VERSION_PATCH


cdef extern from "pyop/entry.h" nogil:
    const int PYOP_ENTRY_VERSION
    const char *PYOP_PLAN_CAPSULE

    enum pyop_status:
        PYOP_OK
        PYOP_RAISED
        PYOP_SHUT_DOWN
        PYOP_NO_MEMORY

    ctypedef struct pyop_array:
        const char *name
        const char *dtype
        size_t itemsize
        int ndim
        const int64_t *shape
        size_t bytes

    ctypedef struct pyop_table:
        uint32_t version
        uint32_t size

    ctypedef struct pyop_plan:
        const pyop_table *table

    # A pyop_status. Who holds the GIL has the exception set besides: `pyop_call` turns both into Python's manners.
    int pyop_plan_call(const pyop_plan *plan, const void *const *inputs, void *const *outputs) noexcept
    const char *pyop_message(const pyop_plan *plan) noexcept
    bint pyop_is_native(const pyop_plan *plan) noexcept
    size_t pyop_n_inputs(const pyop_plan *plan) noexcept
    size_t pyop_n_outputs(const pyop_plan *plan) noexcept
    const pyop_array *pyop_input(const pyop_plan *plan, size_t i) noexcept
    const pyop_array *pyop_output(const pyop_plan *plan, size_t i) noexcept


cdef extern from "pyop/entry.h":
    int pyop_raise(const pyop_plan *plan) except -1


cdef extern from "pyop/python.h":
    # Borrowed from `plan`, which must be kept. `signature`: what it must take and give, or NULL.
    const pyop_plan *pyop_plan_of(object plan, const char *signature) except NULL
    str pyop_signature(const pyop_plan *plan)

    # Raises what the plan raised; with the GIL or without.
    int pyop_call(const pyop_plan *plan, const void *const *inputs, void *const *outputs) except -1 nogil


cdef extern from "pyop/kernel.h" nogil:
    const int PYOP_KERNEL_VERSION
    const char *PYOP_KERNEL_CAPSULE

    # Kernels neither raise nor throw: they return a status.
    ctypedef int (*pyop_kernel)(
        char *const *args, const intptr_t *sizes, const intptr_t *strides, void *data) noexcept nogil
    ctypedef void (*pyop_ufunc_loop)(
        char **args, const intptr_t *sizes, const intptr_t *strides, void *data) noexcept nogil

    enum pyop_kernel_kind:
        PYOP_KERNEL
        PYOP_UFUNC_LOOP
        PYOP_SCALAR

    enum pyop_kernel_flags:
        PYOP_KERNEL_GIL
        PYOP_KERNEL_STATEFUL
        PYOP_KERNEL_RAISES

    ctypedef struct pyop_kernel_info:
        uint32_t version
        uint32_t kind
        void (*function)() noexcept nogil
        void *data
        uint32_t flags
        const char *name
        const char *declaration
        const char *c_signature
        const char *(*message)(int status, void *data) noexcept nogil
