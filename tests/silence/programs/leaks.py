"""A number leaves the array: what becomes of it is the program's, and is not to be lost without a word."""

from __future__ import annotations

import cmath
import copy
import ctypes
import decimal
import fractions
import itertools
import json
import math
import pickle
import statistics
import struct

import numpy as np

from . import program, smooth


@smooth("f8[2] unit")
def exp_of_math(y):
    return math.exp(y[0]) * y[1]


@smooth("f8[2] pos")
def sqrt_of_math(y):
    return math.sqrt(y[0]) + y[1]


@smooth("f8[3]")
def hypot_of_math(y):
    return math.hypot(y[0], y[1]) + math.fsum(y)


@smooth("f8[2]")
def float_of_an_element(y):
    return float(y[0]) * y[1]


@smooth("f8[2]")
def float_of_a_sum(y):
    return float(np.sum(y**2)) + y[0]


@smooth("f8[2]")
def complex_of_an_element(y):
    return complex(y[0]).real * y[1]


@smooth("f8[2]")
def sqrt_of_cmath(y):
    return cmath.exp(y[0]).real * y[1]


@program("f8[3]")
def int_of_an_element(y):
    return int(y[0] * 10) + y[1]


@program("i8[3] pos")
def index_of_a_list(k):
    return [10, 20, 30, 40, 50, 60, 70][k[0]]


@program("i8[3] pos", "f8[8]")
def index_by_an_element(k, x):
    return x[k[0]]


@program("i8[2] pos")
def range_of_an_element(k):
    total = 0
    for j in range(k[0]):
        total += j
    return total


@program("i8[2] pos")
def shape_of_an_element(k):
    return np.zeros(k[0])


@program("f8[3]")
def bool_of_an_element(y):
    return 1.0 if y[0] > 0 else 2.0


@program("f8[3]")
def bool_of_any(y):
    if (y > 1).any():
        return y * 2
    return y * 3


@smooth("f8[3]")
def item(y):
    return y[0].item() * y[1]


@smooth("f8[3]")
def item_by_place(y):
    return y.item(2) * y[1]


@smooth("f8[3]")
def tolist(y):
    a, b, c = y.tolist()
    return a * b + c


@smooth("f8[3]")
def list_of(y):
    a, b, c = list(y)
    return a * b + c


@smooth("f8[3]")
def numpy_scalar(y):
    return np.float64(y[0]) * y[1]


@smooth("f8[3]")
def array_of_elements(y):
    return np.array([y[0], y[1] * y[2]]) * 2


@smooth("f8[3]")
def asarray_of_elements(y):
    return np.asarray([y[0] ** 2, 1.0]).sum()


@smooth("f8[3]")
def array_of_rows(y):
    return np.array([y, y * 2]).sum(axis=0)


@smooth("f8[3]")
def asarray_of_all(y):
    return np.asarray(y) * 2


@smooth("f8[3]")
def fromiter(y):
    return np.fromiter((e * e for e in y), float)


@smooth("f8[3]")
def fromiter_of_all(y):
    return np.fromiter(y, float, 3).sum()


@smooth("f8[3]")
def into_a_real_array(y):
    out = np.zeros(3)
    for k in range(3):
        out[k] = y[k] ** 2
    return out


@smooth("f8[3]")
def slice_into_a_real_array(y):
    out = np.ones((2, 3))
    out[0] = y
    return out


@smooth("f8[3]")
def into_a_captured_like(y):
    out = np.full(3, 2.0)
    out += y
    return out


@program("f8[3]")
def formatted(y):
    return f"{y[0]:.3f}"


@program("f8[3]")
def formatted_and_read(y):
    return float(f"{y[0]:.3f}") * y[1]


@program("f8[3]")
def percent_formatted(y):
    return "%.2f" % y[0]  # noqa: UP031


@program("f8[3]")
def array_to_text(y):
    return np.array2string(y, precision=3)


@program("f8[3]")
def through_json(y):
    return np.array(json.loads(json.dumps(y.tolist()))) * 2


@program("f8[3]")
def through_struct(y):
    return struct.unpack("d", struct.pack("d", y[0]))[0] * y[1]


@program("f8[3]")
def through_decimal(y):
    return float(decimal.Decimal(float(y[0]))) + y[1]


@program("f8[3]")
def through_decimal_directly(y):
    return float(decimal.Decimal(y[0])) + y[1]


@program("f8[3]")
def through_fractions(y):
    return float(fractions.Fraction(y[0])) + y[1]


@program("f8[3]")
def as_integer_ratio(y):
    return y[0].as_integer_ratio()[0] > 0


@smooth("f8[3]")
def rounded_by_python(y):
    return round(y[0], 1) * 0 + y[1]


@program("f8[3]")
def rounded_array(y):
    return round(y, 2)


@program("f8[3]")
def rounded_element(y):
    return round(y[0], 1), round(y[1])


@smooth("f8[4]")
def sorted_by_python(y):
    a = sorted(y)
    return a[0] * a[3]


@smooth("f8[4]")
def list_sorted(y):
    a = list(y)
    a.sort()
    return a[0] + 2 * a[1]


@smooth("f8[4]")
def min_and_max_of_python(y):
    return min(y) * max(y)


@smooth("f8[4]")
def sum_of_python(y):
    return sum(y) * sum(y, 1.0)


@smooth("f8[4]")
def mean_of_statistics(y):
    return statistics.mean(y) * y[0]


@smooth("f8[4]")
def mean_of_a_list_in_statistics(y):
    return statistics.fmean(list(y)) * y[0]


@smooth("f8[4]")
def accumulate_of_itertools(y):
    return list(itertools.accumulate(y))[-1] * y[0]


@smooth("f8[4]")
def product_of_math(y):
    return math.prod(y) + math.dist(y[:2], y[2:])


@program("f8[4]")
def is_in(y):
    return y[0] in y, 100.0 in y


@program("f8[4]")
def is_in_a_list(y):
    return 2 * y if y[0] in [1.0, 2.0] else 3 * y


@program("f8[4]")
def key_of_a_dict(y):
    d = {y[0]: 1, y[1]: 2}
    return d[y[0]]


@program("i8[4]")
def key_of_a_table(k):
    return {0: "zero", 1: "one"}.get(k[0], "many")


@program("i8[4]")
def set_of_elements(k):
    return len(set(k)), sorted(set(k.tolist()))


@program("f8[4]")
def hashed(y):
    return hash(y[0]) == hash(float(y[0]))


@smooth("f8[4]")
def memory_view(y):
    m = memoryview(y)
    return m[0] * y[1]


@smooth("f8[4]")
def memory_view_written(y):
    z = y * 1
    memoryview(z)[0] = 5.0
    return z


@program("f8[4]")
def bytes_of(y):
    return np.frombuffer(y.tobytes()) * 2


@program("f8[4]")
def data_of(y):
    return np.frombuffer(y.data) * 2


@program("f8[4]")
def pointer_of_ctypes(y):
    z = y * 1
    p = z.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
    p[0] = 3.0
    return z


@program("f8[4]")
def through_pickle(y):
    return pickle.loads(pickle.dumps(y)) * 2


@smooth("f8[4]")
def copied(y):
    z = copy.copy(y)
    z += 1
    return y * z


@smooth("f8[4]")
def copied_deeply(y):
    d = copy.deepcopy({"a": y})
    d["a"] *= 2
    return y * d["a"]


@smooth("f8[4]")
def interpolated(y):
    return np.interp(y, [0.0, 1.0, 2.0], [0.0, 10.0, 40.0])


@smooth("f8[3]")
def polynomial(y):
    return np.polyval([1.0, 2.0, 3.0], y) + np.polyval(y, 2.0)


@smooth("f8[3]")
def vectorized(y):
    return np.vectorize(lambda e: e * e + 1.0)(y)


@smooth("f8[3]")
def frompyfunc(y):
    return np.frompyfunc(lambda e: e * e, 1, 1)(y).astype(float)


@smooth("f8[3]")
def along_an_axis(y):
    return np.apply_along_axis(lambda row: row * row[0], 0, y)


@smooth("f8[3]")
def nested_lists(y):
    return np.array([[y[0], 1.0], [0.0, y[1]]]) @ np.array([1.0, 2.0])


@smooth("f8[3]")
def stacked_in_r(y):
    return np.r_[y, 1.0, y[0]] * 2


@smooth("f8[3]")
def stacked_in_c(y):
    return np.c_[y, y * y].sum(axis=1)


@smooth("f8[3]")
def block(y):
    return np.block([y, y * 2])


@smooth("f8[3]")
def full_of(y):
    return np.full(3, y[0]) + np.full_like(y, y[1])


@smooth("f8[3] unit")
def linspace_between(y):
    return np.linspace(y[0], y[1], 4)


@smooth("f8[3]")
def object_array(y):
    o = np.array([y[0], None], dtype=object)
    return o[0] * 2


@smooth("f8[3]")
def array_made_of_float_attribute(y):
    return y[0].real * y[1] + y[2].imag


@program("f8[3]")
def float_is_integer(y):
    return y[0].is_integer(), y[0].hex()


@program("f8[3]")
def comparison_chain(y):
    return 1 if -1 < y[0] < 1 else 2


@program("f8[3]")
def assertion(y):
    assert y[0] < 100, "too large"
    return y


@program("f8[3]")
def assertion_of_testing(y):
    np.testing.assert_allclose(y, y)
    return y * 2


@program("f8[3]")
def all_close(y):
    return y * 2 if np.allclose(y, y + 1) else y * 3


@program("f8[3]")
def while_loop(y):
    n = 0
    while y.sum() < 100:
        y = y + 5
        n += 1
    return y, n


@program("f8[3]")
def argmin_of_python(y):
    return min(range(3), key=lambda k: y[k])


@program("f8[3]")
def filtered(y):
    return [e for e in y if e > 0]
