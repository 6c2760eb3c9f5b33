"""Every spelling of a write."""

from __future__ import annotations

import numpy as np

from . import program, smooth


@smooth("f8[4]")
def an_element(x):
    y = x * 1
    y[0] = 7
    y[-1] = x[0] * x[1]
    return y


@smooth("f8[4]")
def an_element_into_zeros(x):
    out = np.zeros(4)
    for k in range(4):
        out[k] = x[k] ** 2
    return out


@smooth("f8[4]")
def an_element_augmented(x):
    y = x * 1
    y[1] += x[0]
    y[2] *= y[1]
    return y


@smooth("f8[4]")
def a_slice_into_empty(x):
    out = np.empty(6)
    out[1:-1] = x * x
    out[0] = out[-1] = 0
    return out


@smooth("f8[4]")
def a_slice_into_zeros_like(x):
    out = np.zeros_like(x)
    out[:] = x**3
    return out.sum()


@smooth("f8[4]")
def a_slice_by_a_number(x):
    y = x * 1
    y[1:3] = 5
    y[::2] = x[::2] * 2
    y[::-2] *= 3
    return y


@smooth("f8[3,2]")
def rows_and_columns(x):
    y = x * 1
    y[0] = y[1]
    y[:, 1] = 2 * y[:, 0]
    y[1:, :1] -= 1
    return y


@smooth("f8[4]")
def a_mask(x):
    y = x**3
    y[x > 0.5] = 0
    return y


@smooth("f8[4]")
def a_mask_augmented(x):
    y = x * 1
    y[y < 0] *= -1
    return y


@smooth("f8[4]")
def a_mask_of_values(x):
    y = np.zeros(4)
    positive = x > 0
    y[positive] = x[positive] * 2
    return y


@smooth("f8[4]")
def a_list_of_places(x):
    y = x * 1
    y[[0, 0, 3]] = [1.0, 2.0, 3.0]
    y[[1, 2]] = x[[2, 1]] * 2
    return y


@smooth("f8[3,3]")
def two_lists_of_places(x):
    y = x * 1
    i = np.arange(3)
    y[i, i] = 0
    y[[0, 1], [1, 2]] += x[0, :2]
    return y


@smooth("f8[4]", "i8[3] pos")
def places_from_an_argument(x, k):
    y = x * 1
    y[k % 4] = 100
    return y


@smooth("f8[4]")
def out_of_a_function(x):
    y = x * 1
    z = y
    np.add(y, 1, out=y)
    np.multiply(y, x, y)
    return z


@smooth("f8[4]")
def out_into_zeros(x):
    out = np.zeros(4)
    np.exp(x, out=out)
    return out


@smooth("f8[4]")
def out_into_a_part(x):
    out = np.zeros(6)
    np.sin(x, out=out[1:5])
    return out


@smooth("f8[4]")
def out_where(x):
    y = x * 1
    np.negative(x, out=y, where=x > 0)
    return y


@smooth("f8[4]")
def where_without_out_into_zeros(x):
    return np.sqrt(x, out=np.zeros(4), where=x > 0) * 2


@smooth("f8[3,2]")
def out_of_reductions(x):
    total = np.zeros(2)
    np.sum(x, axis=0, out=total)
    z = x * 1
    np.cumsum(z, axis=0, out=z)
    x.max(axis=0, out=z[0])
    return total, z


@smooth("f8[3,3]")
def out_of_products(x):
    out = np.zeros((3, 3))
    np.matmul(x, x, out=out)
    np.dot(x, out, out=out.copy())
    return out


@smooth("f8[4]")
def out_of_clip(x):
    y = x * 1
    np.clip(y, -1, 1, out=y)
    return y


@smooth("f8[4]")
def out_in_a_tuple(x):
    y = x * 1
    np.add(y, y, out=(y,))
    return y


@smooth("f8[4]")
def copied_onto(x):
    y = np.empty(4)
    np.copyto(y, x * 2)
    np.copyto(y, 0.0, where=x > 0)
    return y


@smooth("f8[4]")
def put(x):
    y = x * 1
    np.put(y, [0, 2], [1.0, 2.0])
    y.put([1], x[3])
    return y


@smooth("f8[4]")
def put_mask(x):
    y = x * 1
    np.putmask(y, x > 0, x * 2)
    return y


@smooth("f8[4]")
def place(x):
    y = x * 1
    np.place(y, x > 0, [1.0, 2.0])
    return y


@smooth("f8[4]")
def filled(x):
    y = x * 1
    y.fill(3)
    y[1:].fill(x[0])
    return y


@smooth("f8[3,3]")
def filled_diagonal(x):
    y = x * 1
    np.fill_diagonal(y, 0)
    return y


@smooth("f8[2,3]")
def put_along_an_axis(x):
    y = x * 1
    np.put_along_axis(y, np.array([[0], [2]]), 9.0, axis=1)
    return y


@smooth("f8[5]")
def sorted_in_place(x):
    y = x * 1
    y.sort()
    return y


@smooth("f8[5]")
def sorted_part_in_place(x):
    y = x * 1
    y[1:4].sort()
    return y


@program("f8[5]")
def partitioned_in_place(x):
    y = x * 1
    y.partition(2)
    return y[2]


@program("f8[5]")
def sorted_argument(x):
    x.sort()
    return x[0]


@smooth("f8[4]")
def add_at(x):
    y = np.zeros(3)
    np.add.at(y, [0, 1, 1, 2], x)
    return y


@smooth("f8[4]")
def multiply_at(x):
    y = x * 1
    np.multiply.at(y, [0, 0, 3], 2.0)
    return y


@program("i8[6] pos")
def histogram_by_add_at(x):
    counts = np.zeros(8, np.int64)
    np.add.at(counts, x, 1)
    return counts


@smooth("f8[4]")
def real_set(x):
    z = x + 0j
    z.real = x * 2
    z.imag = 1.0
    return z.real + z.imag


@program("f8[6]")
def shape_set(x):
    y = x * 1
    y.shape = (2, 3)
    return y


@program("f8[6]", without=("op",))  # what an op is lent is a view
def shape_of_argument_set(x):
    x.shape = (3, 2)
    return x.sum(axis=0)


@program("f8[4]")
def dtype_set(x):
    y = x * 1
    y.dtype = np.int64
    return y


@program("f8[4]")
def resized(x):
    y = x * 1
    y.resize(6, refcheck=False)
    return y


@program("f8[6]")
def shuffled(x):
    y = x * 1
    np.random.shuffle(y)
    return y


@program("f8[6]")
def shuffled_by_a_generator(x):
    y = x * 1
    np.random.default_rng(3).shuffle(y)
    return y


@program("f8[4]")
def random_into(x):
    y = np.empty(4)
    np.random.default_rng(3).random(out=y)
    return y * x


@program("f8[4]")
def bytes_swapped(x):
    y = x * 1
    y.byteswap(inplace=True)
    return y


@program("f8[4]")
def itemset_by_index(x):
    y = x * 1
    y[()] = 3
    y[...] = y * 2
    return y


@program("f8[4]")
def flags_set(x):
    y = x * 1
    y.flags.writeable = False
    y += 1
    return y


@program("f8[4]")
def setflags(x):
    y = x * 1
    y.setflags(write=False)
    y[0] = 1
    return y


@program("f8[4]")
def nan_replaced_in_place(x):
    y = x * 1
    y[0] = np.nan
    np.nan_to_num(y, copy=False, nan=5.0)
    return y


@program("f8[4]")
def nditer_writes(x):
    y = x * 1
    with np.nditer(y, op_flags=["readwrite"]) as it:
        for e in it:
            e[...] = 2 * e
    return y


@program("f8[4]")
def dunder_setitem(x):
    y = x * 1
    y.__setitem__(0, 5.0)
    np.ndarray.__setitem__(y, 1, 6.0)
    return y


@program("f8[4]")
def deleted_item(x):
    y = x * 1
    del y[0]
    return y


@smooth("f8[4]")
def argument_element(x):
    x[0] = 5.0
    x[1] *= 2
    return x.sum()


@smooth("f8[4]")
def argument_whole(x):
    x[:] = x * 2
    return None if x is None else x * 1


@smooth("f8[4]", "f8[4]")
def argument_out(x, out):
    np.multiply(x, 2, out=out)
    return out * x


@program("f8[4]")
def argument_written_and_nothing_returned(x):
    x += 1


@program("f8[4]", "f8[4]")
def argument_written_by_another(x, z):
    x[:2] = z[2:]
    z += x
