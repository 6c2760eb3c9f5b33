"""Checks of types: a program that looks at what it was given goes the way it goes with arrays."""

from __future__ import annotations

import collections.abc
import functools
import numbers
import operator
import typing

import numpy as np

from . import program, smooth


@smooth("f8[3]")
def is_ndarray(x):
    return x * 2 if isinstance(x, np.ndarray) else x * 3


@smooth("f8[3]")
def is_ndarray_of_a_result(x):
    y = x + 1
    if not isinstance(y, np.ndarray):
        y = np.zeros(3)
    return y


@smooth("f8[3]")
def is_not_ndarray_then_wrapped(x):
    if not isinstance(x, np.ndarray):
        x = np.array([x])
    return x * 2


@smooth("f8[3]")
def type_is_ndarray(x):
    return x * 2 if type(x) is np.ndarray else x * 3


@smooth("f8[3]")
def type_equals_ndarray(x):
    return x * 2 if type(x) == np.ndarray else x * 3  # noqa: E721


@smooth("f8[3]")
def class_of(x):
    return x * 2 if x.__class__ is np.ndarray else x * 3


@smooth("f8[3]")
def name_of_the_class(x):
    return x * 2 if type(x).__name__ == "ndarray" else x * 3


@smooth("f8[3]")
def subclass_check(x):
    return x * 2 if issubclass(type(x), np.ndarray) else x * 3


@smooth("f8[3]")
def element_is_generic(x):
    e = x[0]
    return e * 2 if isinstance(e, np.generic) else e * 3


@smooth("f8[3]")
def element_is_floating(x):
    e = x[0]
    return e * 2 if isinstance(e, np.floating) else e * 3


@smooth("f8[3]")
def element_is_float(x):
    e = x[0]
    return e * 2 if isinstance(e, float) else e * 3


@smooth("f8[3]")
def element_is_number(x):
    e = x[0]
    return e * 2 if isinstance(e, numbers.Number) else e * 3


@smooth("f8[3]")
def element_is_real(x):
    e = x.sum()
    return e * 2 if isinstance(e, numbers.Real) else e * 3


@program("i8[3]")
def element_is_integer(k):
    e = k[0]
    return (1 if isinstance(e, int) else 2), (1 if isinstance(e, numbers.Integral | np.integer) else 2)


@smooth("f8[3]")
def element_is_not_an_array(x):
    e = x[0]
    return e * 2 if isinstance(e, np.ndarray) else e * 3


@smooth("f8[3]")
def element_type_is_float64(x):
    e = x[0]
    return e * 2 if type(e) is np.float64 else e * 3


@smooth("f8[3]")
def sum_type_is_float64(x):
    e = np.sum(x)
    return e * 2 if type(e) is np.float64 else e * 3


@smooth("f8[3]")
def is_iterable(x):
    return x * 2 if isinstance(x, collections.abc.Iterable) else x * 3


@smooth("f8[3]")
def element_is_iterable(x):
    e = x[0]
    return e * 2 if isinstance(e, collections.abc.Iterable) else e * 3


@smooth("f8[3]")
def is_sized_or_sequence(x):
    sized = isinstance(x, collections.abc.Sized)
    sequence = isinstance(x, collections.abc.Sequence)
    return x * (1 + sized + 4 * sequence)


@smooth("f8[3]")
def is_hashable(x):
    return x * (2 if isinstance(x, collections.abc.Hashable) else 3)


@smooth("f8[3]")
def is_supports_float(x):
    return x * (2 if isinstance(x, typing.SupportsFloat) else 3) * (2 if isinstance(x, typing.SupportsIndex) else 3)


@smooth("f8[3]")
def is_list_or_tuple(x):
    if isinstance(x, list | tuple):
        return x
    return x * 2


@smooth("f8[3]")
def has_flags(x):
    return x * 2 if hasattr(x, "flags") else x * 3


@smooth("f8[3]")
def has_array_attributes(x):
    names = ("shape", "dtype", "strides", "ctypes", "data", "base", "__array_interface__", "tolist", "nonzero")
    return x * sum(hasattr(x, name) for name in names)


@smooth("f8[3]")
def has_length(x):
    return x * 2 if hasattr(x, "__len__") else x * 3


@smooth("f8[3]")
def element_has_length(x):
    e = x[0]
    return e * 2 if hasattr(e, "__len__") else e * 3


@smooth("f8[3]")
def element_has_array_protocol(x):
    e = x[0]
    return e * 2 if hasattr(e, "__array__") and not hasattr(e, "__setitem__") else e * 3


@smooth("f8[3]")
def has_attribute_by_getattr(x):
    return x * 2 if getattr(x, "strides", None) is not None else x * 3


@smooth("f8[3]", without=("op",))  # what an op is lent is not writeable
def writeable(x):
    return x * 2 if x.flags.writeable else x * 3


@smooth("f8[3]")
def contiguous(x):
    y = x * 1
    return y * 2 if y.flags["C_CONTIGUOUS"] else y * 3


@smooth("f8[3]")
def owns_data(x):
    y = x * 1
    v = y[1:]
    return y.sum() * (2 if y.flags.owndata else 3) + (1 if v.base is y else 5)


@smooth("f8[3]")
def shares_memory(x):
    y = x * 1
    return y * (2 if np.shares_memory(y, y[1:]) else 3) * (5 if np.may_share_memory(x, y) else 7)


@smooth("f8[3]")
def is_the_same_object(x):
    y = np.asarray(x)
    z = np.asarray(y, dtype=float)
    return x * (2 if y is x else 3) * (5 if z is y else 7)


@smooth("f8[3]")
def is_callable(x):
    return x * 3 if callable(x) else x * 2


@smooth("f8[3]")
def is_scalar(x):
    return x * (3 if np.isscalar(x) else 2)


@smooth("f8[3]")
def element_is_scalar(x):
    e = x[0]
    return e * (3 if np.isscalar(e) else 2)


@smooth("f8[3]")
def dimensions(x):
    return x * (1 + np.ndim(x)) + np.ndim(x[0]) + np.ndim(np.sum(x)) + np.size(x) + np.shape(x)[0]


@smooth("f8[3]")
def length(x):
    return x * len(x)


@program("f8[3]")
def length_of_an_element(x):
    try:
        return x * len(x[0])
    except TypeError:
        return x * 2


@smooth("f8[3]")
def matched_by_type(x):
    match x:
        case np.ndarray():
            return x * 2
        case _:
            return x * 3


@smooth("f8[3]")
def matched_as_a_sequence(x):
    match x:
        case [a, b, c]:
            return a * b * c
        case _:
            return x.sum() * 3


@smooth("f8[3]")
def matched_by_an_attribute(x):
    match x:
        case object(ndim=1):
            return x * 2
        case object(ndim=2):
            return x * 3


@program("i8[3] pos")
def matched_by_a_value(k):
    match k[0]:
        case 0:
            return "none"
        case 1 | 2 | 3:
            return "few"
        case _:
            return "many"


@functools.singledispatch
def kind(x):
    return 3.0


@kind.register
def _(x: np.ndarray):
    return 2.0


@kind.register
def _(x: float):
    return 5.0


@kind.register
def _(x: np.generic):
    return 7.0


@smooth("f8[3]")
def dispatched(x):
    return x * kind(x)


@smooth("f8[3]")
def element_dispatched(x):
    return x[0] * kind(x[0]) + kind(np.float32(1))


@smooth("f8[3]")
def converted_if_possible(x):
    try:
        return float(x) * 2.0
    except TypeError:
        return x.sum() * 3


@smooth("f8[3]")
def element_converted_if_possible(x):
    try:
        return float(x[0]) * 2 + x[1]
    except TypeError:
        return x[0] * 3


@program("f8[3]")
def index_if_possible(x):
    try:
        return operator.index(x[0])
    except TypeError:
        return -1.0


@program("i8[3] pos")
def integer_index_if_possible(k):
    try:
        return operator.index(k[0])
    except TypeError:
        return -1


@smooth("f8[3]")
def iterated_if_possible(x):
    try:
        return sum(iter(x[0]))
    except TypeError:
        return x[0] * 2


@smooth("f8[3]")
def truth_if_possible(x):
    try:
        if x:
            return x * 2
    except ValueError:
        return x * 3
    return x * 5


@smooth("f8[1]")
def truth_of_one(x):
    return x * 2 if x is not None and (x == x) else x * 3


@smooth("f8[3]")
def compared_with_none(x):
    a = x == None  # noqa: E711
    return x * (2 if isinstance(a, np.ndarray) else 3)


@program("f8[3]")
def equals_a_text(x):
    return (x == "text").any()


@smooth("f8[3]")
def dtype_checks(x):
    f = np.issubdtype(x.dtype, np.floating)
    same = x.dtype == np.float64 and x.dtype == float and x.dtype == "f8"
    return x * (1 + f + 2 * same + 4 * (x.dtype.kind == "f") + x.itemsize + x.nbytes)


@smooth("f8[3]")
def real_checks(x):
    return x * (1 + np.isrealobj(x) + 2 * np.iscomplexobj(x))


@smooth("f8[3]")
def types_of_results(x):
    t = np.result_type(x, np.float32)
    c = np.can_cast(x.dtype, np.float32)
    m = np.min_scalar_type(3)
    return x.astype(t) * (1 + c) + m.itemsize


@smooth("f8[3]")
def identity_of_arguments(x):
    def same(a, b):
        return a is b

    return x * (2 if same(x, x) else 3) * (2 if x is x.T else 3)


@smooth("f8[3]")
def module_of_the_type(x):
    return x * (2 if type(x).__module__ == "numpy" else 3)


@smooth("f8[3]")
def method_resolution(x):
    return x * (2 if np.ndarray in type(x).__mro__ else 3)


@program("f8[3]")
def directory_of(x):
    return "sum" in dir(x), "strides" in dir(x)


@program("f8[3] ro")
def writeable_of_a_read_only(x):
    return x * 2 if x.flags.writeable else x * 3
