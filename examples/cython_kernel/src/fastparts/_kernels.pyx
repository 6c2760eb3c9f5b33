# cython: language_level=3, cdivision=True
"""Kernels that pyop calls, none of which touches Python: one that `cdef api` lets others find, one in a capsule."""

from cpython.pycapsule cimport PyCapsule_New
from libc.math cimport exp, fabs, log1p
from libc.stdint cimport intptr_t

from pyop cimport PYOP_KERNEL_CAPSULE, PYOP_KERNEL_VERSION, PYOP_SCALAR, pyop_kernel_info


cdef double softplus_of(double x) noexcept nogil:
    # log(1 + exp(x)) without overflow. A function of numbers: pyop calls it for each element.
    return (x if x > 0 else 0) + log1p(exp(-fabs(x)))


# A capsule says of a function what its C signature does not: by its flags, none here, that it needs no GIL and raises
# nothing.
cdef pyop_kernel_info info
info.version = PYOP_KERNEL_VERSION
info.kind = PYOP_SCALAR
info.function = <void (*)() noexcept nogil>softplus_of
info.c_signature = "double (double)"
info.name = "softplus"
softplus = PyCapsule_New(&info, PYOP_KERNEL_CAPSULE, NULL)


cdef api int smooth(char *const *args, const intptr_t *sizes, const intptr_t *strides, void *data) noexcept nogil:
    # y[i] = y[i-1] + rate (x[i] - y[i-1]), from 0: "float64[n], float64[] -> float64[n]". A kernel over arrays, which
    # has sizes {count, n}, and strides {x, rate, y from one computation to the next, x along n, y along n}.
    cdef intptr_t k, i
    cdef const char *x
    cdef char *y
    cdef double rate, level
    for k in range(sizes[0]):
        x = args[0] + k * strides[0]
        rate = (<const double *>(args[1] + k * strides[1]))[0]
        y = args[2] + k * strides[2]
        level = 0
        for i in range(sizes[1]):
            level += rate * ((<const double *>(x + i * strides[3]))[0] - level)
            (<double *>(y + i * strides[4]))[0] = level
    return 0
