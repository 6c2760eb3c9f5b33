"""What comes back: arguments, views of them, nothing, one array twice, nests; of read-only, strided, empty ones."""

from __future__ import annotations

from collections import OrderedDict, deque, namedtuple

import numpy as np

from ..arguments import overlapping, twice
from . import program, smooth

Point = namedtuple("Point", "x y")


@program("f8[3]")
def the_argument(x):
    return x


@program("f8[3]")
def a_view_of_the_argument(x):
    return x[1:]


@program("f8[2,3]")
def transposed_argument(x):
    return x.T


@program("f8[2,3]")
def reshaped_argument(x):
    return x.reshape(3, 2)


@program("f8[2,3]")
def ravelled_argument(x):
    return x.ravel()


@program("f8[2,3] F")
def ravelled_fortran_argument(x):
    return x.ravel()


@program("f8[3]")
def asarray_of_the_argument(x):
    return np.asarray(x)


@program("f8[3]")
def copy_of_the_argument(x):
    return x.copy()


@program("f8[3]")
def array_of_the_argument(x):
    return np.array(x)


@program("f8[3]")
def astype_of_the_argument(x):
    return x.astype(float), x.astype(float, copy=False)


@program("f8[3]")
def contiguous_of_the_argument(x):
    return np.ascontiguousarray(x)


@program("f8[3] step")
def contiguous_of_a_strided_argument(x):
    return np.ascontiguousarray(x)


@program("f8[3]")
def nothing(x):
    return None


@program("f8[3]")
def one_array_twice(x):
    y = x * 2
    return y, y


@program("f8[3]")
def an_array_and_its_view(x):
    y = x * 2
    return y, y[1:]


@program("f8[2,3]")
def an_array_and_its_transposed(x):
    y = x * 2
    return y, y.T, y.reshape(-1)


@program("f8[3]")
def equal_but_not_the_same(x):
    return x * 2, x * 2


@program("f8[3]")
def the_argument_twice(x):
    return x, x, x[:2]


@program("f8[3]")
def two_views_of_the_argument(x):
    return x[:2], x[1:]


@program(twice)
def the_same_array_given_twice(x, z):
    return x + z, x, z


@program(twice)
def the_same_array_given_twice_and_written(x, z):
    x += 1
    return z


@program(overlapping)
def overlapping_arguments(x, z):
    return x + z


@program(overlapping)
def overlapping_arguments_written(x, z):
    x += z
    return z


@program(overlapping)
def overlapping_arguments_as_out(x, z):
    np.add(x, 1, out=z)
    return x


@program("f8[3] ro")
def read_only(x):
    return x * 2


@program("f8[3] ro")
def read_only_returned(x):
    return x


@program("f8[3] step")
def strided(x):
    return x * 2, x.sum()


@program("f8[3] neg")
def backwards(x):
    return x * 2, x[::-1]


@program("f8[3] step")
def strided_written(x):
    x += 1
    return x.sum()


@program("f8[3] neg")
def backwards_written(x):
    x[0] = 5
    x[1:] *= 2
    return x


@program("f8[3] swap")
def swapped_bytes(x):
    return x * 2, x.sum()


@program("f8[3] swap")
def swapped_bytes_as_they_are(x):
    return x, x[1:], x.copy(), str(x.dtype)


@program("f8[3,2]")
def flattened(x):
    return x.flatten(), x[0].flatten(), x.ravel()


@program("f8[3]")
def flattened_beside_a_view(x):
    y = x * 2
    return y, y.flatten(), y.reshape(-1)


@program("f8[3]")
def text_of_an_array(x):
    return x * 2, f"{x}", str(x[0])


@program("f8[3]")
def text_of_a_type(x):
    return x * 2, str(type(x))


@program("f8[0]")
def empty(x):
    return x * 2, x.sum(), x[1:]


@program("f8[0]")
def empty_written(x):
    x += 1
    x[:] = 5
    return x


@program("f8[0,3]")
def empty_rows(x):
    for row in x:
        row += 1
    return x.sum(axis=0), x.T


@program("f8[3]")
def a_list(x):
    return [x * 2, x + 1]


@program("f8[3]")
def a_dict(x):
    return {"b": x * 2, "a": x + 1, "n": 3, "t": "text", "none": None}


@program("f8[3]")
def an_ordered_dict(x):
    return OrderedDict(b=x * 2, a=x + 1)


@program("f8[3]")
def a_named_tuple(x):
    return Point(x * 2, y=[x + 1])


@program("f8[3]")
def a_nest(x):
    return {"a": [x * 2, (x + 1, {"b": x})], "c": ()}


@program("f8[3]")
def a_set_of_numbers(x):
    return {1, 2, len(x)}


@program("f8[3]")
def a_deque(x):
    return deque([x * 2])


@program("f8[3]")
def a_generator(x):
    return tuple(e * 2 for e in (x, x + 1))


@program("f8[3]")
def a_slice_object(x):
    return slice(0, 2), x * 2


@program("f8[3]")
def a_dtype_and_a_shape(x):
    return x.dtype, x.shape, x.ndim, x.size


@program("f8[3]")
def a_python_number(x):
    return 5, 2.5, True, x.shape[0] * 2


@program("f8[3]")
def a_numpy_scalar(x):
    return np.float32(2.5), np.int8(3), x.sum()


@program("f8[3]")
def constants(x):
    return np.arange(3), np.zeros(2), x * 2


@program("f8[3]")
def a_constant_written_by_the_caller(x):
    z = np.zeros(3)
    z += 1
    return z, x * 2


@program("f8[3]")
def a_list_with_itself_twice(x):
    part = [x * 2]
    return [part, part]


@program("f8[3]")
def an_object_array(x):
    out = np.empty(2, object)
    out[0] = 1.5
    out[1] = "t"
    return out, x * 2


@program("f8[3]")
def strings(x):
    return "a" + str(len(x)), b"b"


@program("f8[3]")
def an_ellipsis_and_types(x):
    return Ellipsis, int, np.float32, x


@smooth("f8[3]", "f8[3]")
def of_two_the_second(x, z):
    return z, x * 2


@program("M8[D][3]", "m8[D][3]")
def dates(d, t):
    return d + t, d - d, d[0]


@program("U5[3]")
def texts(t):
    return t == t[0], np.char.upper(t)


@program("f8[4]")
def flattened_argument(x):
    return x.flatten(), x[None].flatten()[:1]
