# cython: language_level=3, cdivision=True
"""Connected components, the slowest stage of the demonstration, as kernels: through <pyop/kernel.h> as anybody's."""

from cpython.pycapsule cimport PyCapsule_New
from libc.stdint cimport int64_t, intptr_t

from pyop cimport PYOP_KERNEL, PYOP_KERNEL_CAPSULE, PYOP_KERNEL_VERSION, pyop_kernel, pyop_kernel_info


cdef struct Labels:
    char *first
    intptr_t down, right  # steps in bytes
    intptr_t width


cdef inline int64_t *at(const Labels *labels, int64_t pixel) noexcept nogil:
    return <int64_t *>(labels.first + pixel // labels.width * labels.down + pixel % labels.width * labels.right)


cdef inline int64_t root_of(const Labels *labels, int64_t pixel) noexcept nogil:
    cdef int64_t *parent = at(labels, pixel)
    while parent[0] != pixel:
        parent[0] = at(labels, parent[0])[0]
        pixel = parent[0]
        parent = at(labels, pixel)
    return pixel


cdef inline void join(const Labels *labels, int64_t one, int64_t other) noexcept nogil:
    # A parent lies before its children in reading order, so that a root is the first pixel of its region.
    one, other = root_of(labels, one), root_of(labels, other)
    if one < other:
        at(labels, other)[0] = one
    else:
        at(labels, one)[0] = other


cdef void label(const char *mask, intptr_t down, intptr_t right, const Labels *labels, intptr_t height,
                bint diagonal) noexcept nogil:
    cdef intptr_t i, j, width = labels.width
    cdef int64_t pixel, found = 0
    # The labels first hold the regions as trees: of each pixel its parent, -1 outside.
    for i in range(height):
        for j in range(width):
            pixel = i * width + j
            if not (mask + i * down + j * right)[0]:
                at(labels, pixel)[0] = -1
                continue
            at(labels, pixel)[0] = pixel
            if j > 0 and at(labels, pixel - 1)[0] >= 0:
                join(labels, pixel, pixel - 1)
            if i > 0 and at(labels, pixel - width)[0] >= 0:
                join(labels, pixel, pixel - width)
            if diagonal and i > 0 and j > 0 and at(labels, pixel - width - 1)[0] >= 0:
                join(labels, pixel, pixel - width - 1)
            if diagonal and i > 0 and j + 1 < width and at(labels, pixel - width + 1)[0] >= 0:
                join(labels, pixel, pixel - width + 1)
    # In reading order a parent has its number before its children ask for it.
    for pixel in range(height * width):
        if at(labels, pixel)[0] < 0:
            at(labels, pixel)[0] = 0
        elif at(labels, pixel)[0] == pixel:
            found += 1
            at(labels, pixel)[0] = found
        else:
            at(labels, pixel)[0] = at(labels, at(labels, pixel)[0])[0]


cdef int run(char *const *args, const intptr_t *sizes, const intptr_t *strides, void *data) noexcept nogil:
    cdef intptr_t k
    cdef Labels labels
    labels.down, labels.right, labels.width = strides[4], strides[5], sizes[2]
    for k in range(sizes[0]):
        labels.first = args[1] + k * strides[1]
        label(args[0] + k * strides[0], strides[2], strides[3], &labels, sizes[1], data != NULL)
    return 0


cdef pyop_kernel kernel = run
cdef pyop_kernel_info sides, corners
sides.version = corners.version = PYOP_KERNEL_VERSION
sides.kind = corners.kind = PYOP_KERNEL
sides.function = corners.function = <void (*)() noexcept nogil>kernel
sides.declaration = corners.declaration = "bool[h, w] -> int64[h, w]"
sides.name, corners.name = "components", "components_diagonal"
sides.data, corners.data = NULL, &corners  # anything: pixels that touch at a corner are connected

components = PyCapsule_New(&sides, PYOP_KERNEL_CAPSULE, NULL)
components_diagonal = PyCapsule_New(&corners, PYOP_KERNEL_CAPSULE, NULL)
