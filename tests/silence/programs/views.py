"""Views, and views of views: what is written by one is seen in the array, and the other way round."""

from __future__ import annotations

import numpy as np

from . import program, smooth


@smooth("f8[4]")
def a_slice(x):
    y = x.copy()
    v = y[1:]
    v += 1.0
    return y.sum()


@smooth("f8[5]")
def a_slice_seen_late(x):
    y = x * 1
    v = y[1:3]
    y += 10
    return v


@smooth("f8[5]")
def a_slice_of_a_slice(x):
    y = x * 1
    w = y[1:][::2]
    w *= 3
    return y


@smooth("f8[5]")
def overlapping_slices(x):
    y = x * 1
    a, b = y[:3], y[2:]
    a += 1
    b *= 2
    return y, a


@smooth("f8[5]")
def backwards(x):
    y = x * 1
    y[::-1][:2] += 1
    r = y[::-1]
    r -= x
    return y


@smooth("f8[3,2]")
def a_row(x):
    y = x * 1
    row = y[0]
    row += 1
    return y


@smooth("f8[3,2]")
def a_column(x):
    y = x * 1
    column = y[:, 1]
    column *= 2
    y[:, 0] += column
    return y


@smooth("f8[3,2]")
def transposed(x):
    y = x * 1
    t = y.T
    t += 1
    t[0] = 5
    return y


@smooth("f8[3,2]")
def reshaped(x):
    y = x * 1
    r = y.reshape(-1)
    r += 1
    r[0] = 0
    return y


@smooth("f8[3,2]")
def reshaped_of_transposed_is_new(x):
    y = x * 1
    r = y.T.reshape(-1)
    r += 1
    return y, r


@smooth("f8[3,2]")
def ravelled(x):
    y = x * 1
    r = y.ravel()
    r -= 1
    return y


@smooth("f8[3,2]")
def flattened_is_new(x):
    y = x * 1
    r = y.flatten()
    r -= 1
    return y, r


@smooth("f8[3,2] F")
def ravelled_argument_in_fortran_order(x):
    r = np.ravel(x)
    r += 1
    return x, r


@smooth("f8[3,2] step")
def reshaped_argument_with_steps(x):
    r = x.reshape(6)
    r += 1
    return x, r


@smooth("f8[3,3]")
def diagonal_by_einsum(x):
    y = x * 1
    np.einsum("ii->i", y)[...] = 1
    return y


@program("f8[3,3]")
def diagonal_is_read_only(x):
    y = x * 1
    d = y.diagonal()
    d += 1
    return y


@program("f8[3]")
def broadcast_is_read_only(x):
    y = x * 1
    b = np.broadcast_to(y, (2, 3))
    b[0] = 1
    return y


@smooth("f8[3]")
def broadcast_seen_late(x):
    y = x * 1
    b = np.broadcast_to(y, (2, 3))
    y += 1
    return b.sum()


@smooth("f8[4]")
def new_axis(x):
    y = x * 1
    y[None][0] += 1
    v = y[:, np.newaxis]
    v *= 2
    return y


@smooth("f8[4]")
def expanded_and_squeezed(x):
    y = x * 1
    e = np.expand_dims(y, 0)
    e += 1
    s = np.squeeze(e)
    s *= 2
    return y


@smooth("f8[2,3]")
def swapped_axes(x):
    y = x * 1
    np.swapaxes(y, 0, 1)[0] = 7
    m = np.moveaxis(y, 0, -1)
    m += 1
    return y


@smooth("f8[6]")
def split_in_parts(x):
    y = x * 1
    a, b = np.split(y, 2)
    a += 1
    b *= a
    return y


@smooth("f8[6]")
def split_unevenly(x):
    y = x * 1
    for k, part in enumerate(np.array_split(y, 4)):
        part -= k
    return y


@smooth("f8[2,3]")
def flipped(x):
    y = x * 1
    f = np.flip(y, 1)
    f[0] += 1
    u = np.flipud(y)
    u *= 2
    return y


@smooth("f8[3,3]")
def rotated(x):
    y = x * 1
    r = np.rot90(y)
    r[0] = 0
    return y


@smooth("f8[6]")
def atleast_two_dimensions(x):
    y = x * 1
    a = np.atleast_2d(y)
    a += 1
    return y


@smooth("f8[6]")
def the_whole_by_ellipsis(x):
    y = x * 1
    v = y[...]
    v += 1
    w = y[:]
    w *= 2
    return y


@smooth("f8[6]")
def the_whole_by_view(x):
    y = x * 1
    v = y.view()
    v += 1
    return y


@smooth("f8[4]")
def parts_of_a_complex_array(x):
    z = x + 1j * x
    r = z.real
    r += 1
    z.imag[0] = 7
    return z.real * z.imag


@program("c16[4]")
def complex_seen_as_floats(x):
    z = x * 1
    f = z.view(float)
    f[0] = 7
    return z


@smooth("f8[4]")
def real_of_real_is_itself(x):
    y = x * 1
    y.real += 1
    r = np.real(y)
    r *= 2
    return y


@smooth("f8[5]")
def picked_by_a_list_is_new(x):
    y = x * 1
    p = y[[0, 2]]
    p += 1
    return y, p


@smooth("f8[5]")
def picked_by_a_list_in_place(x):
    y = x * 1
    y[[0, 2, 0]] += 1
    return y


@smooth("f8[5] unit")
def picked_by_a_mask_is_new(x):
    y = x * 1
    p = y[np.array([True, False, True, True, False])]
    p += 1
    return y, p


@smooth("f8[5]")
def taken_is_new(x):
    y = x * 1
    t = y.take([1, 2])
    t += 1
    r = np.repeat(y, 1)
    r += 1
    return y, t, r


@smooth("f8[4]")
def an_element_is_a_copy(x):
    y = x * 1
    a = y[0]
    a += 1
    return y, a


@smooth("f8[4]")
def an_element_of_no_dimension_is_a_view(x):
    y = x * 1
    a = y[0, ...]
    a += 1
    return y


@smooth("f8[4]")
def a_sum_is_a_scalar(x):
    s = x.sum()
    t = s
    s += 1
    return s, t


@smooth("f8[4]")
def a_sum_that_keeps_dimensions_is_an_array(x):
    s = x.sum(keepdims=True)
    t = s
    s += 1
    return t


@smooth("f8[]")
def no_dimension_by_two_names(x):
    y = np.zeros(()) + x
    z = y
    z += 1
    return y, z


@smooth("f8[4]")
def shift_within(x):
    y = x * 1
    y[1:] = y[:-1]
    y[:-1] += y[1:]
    return y


@smooth("f8[3,3]")
def transposed_onto_itself(x):
    y = x * 1
    y += y.T
    y[:] = y.T
    return y


@smooth("f8[4]")
def rolled_is_new(x):
    y = x * 1
    r = np.roll(y, 1)
    r += 1
    return y, r


@smooth("f8[2,3]")
def views_in_a_list(x):
    y = x * 1
    views = [y[0], y[:, 0], y.T, y.ravel()]
    for v in views:
        v += 1
    return y


@smooth("f8[4]")
def view_of_the_argument(x):
    v = x[1:]
    v *= 2
    return x.sum()


@smooth("f8[4]")
def view_of_the_argument_seen_late(x):
    v = x[1:]
    x += 1
    return v


@smooth("f8[2,2]")
def windows(x):
    y = x * 1
    w = np.lib.stride_tricks.sliding_window_view(y.ravel(), 2)
    y += 1
    return w


@smooth("f8[5]")
def strided_by_hand(x):
    y = x * 1
    w = np.lib.stride_tricks.as_strided(y, (2, 2), (16, 8))
    w[1, 0] = 9
    return y


@smooth("f8[2,3]")
def broadcast_arrays_are_views(x):
    y = x * 1
    a, b = np.broadcast_arrays(y, 1.0)
    y += 1
    return a + b


@smooth("f8[3,3]")
def triangle_is_new(x):
    y = x * 1
    t = np.triu(y)
    t += 1
    d = np.diag(y)
    return y, t, d


@smooth("f8[2,3]")
def flat_iterator(x):
    y = x * 1
    y.flat[1] = 7
    y.flat = y.flat[::-1]
    return y
