"""The exact types of what stands for numbers, lists and ranges of Python, in loops and outside of them."""

import numpy as np
import pytest

import pyop

pytestmark = pytest.mark.filterwarnings("ignore::pyop.RetraceWarning")


def number_of_a_range(x):
    y = x * 1.0
    for i in range(20):
        y = y + (1 if type(i) is int else 2)
    return y


def int_in_a_loop(x):
    y = x * 1.0
    for i in range(20):
        k = int(x[i % 3])
        y = y + (1 if type(k) is int else 2)
    return y


def float_in_a_loop(x):
    s = 0.0
    for i in range(20):
        s = s + x[i % 3]
        if type(s) is float:
            s = s + 100
    return s


def table_of_types(x):
    y = x * 1.0
    for i in range(20):
        y = y + {int: 1.0, float: 2.0}[type(i)]
    return y


def by_attribute(x):
    y = x * 1.0
    for i in range(20):
        y = y + (1.0 if i.__class__ is int else 2.0)
    return y


def float_of_a_call(x):
    f = float(x.sum())
    return x * (1.0 if type(f) is float else 2.0)


def float_of_an_element(x):
    y = x * 1.0
    for i in range(20):
        f = float(x[i % 3])
        y = y + (1.0 if type(f) is float else 2.0)
    return y


def type_by_another_name(x):
    y = x * 1.0
    kind = type
    for i in range(20):
        y = y + (1.0 if kind(i) is int else 2.0)
    return y


def subclass(x):
    y = x * 1.0
    for i in range(20):
        y = y + (1.0 if issubclass(type(i), int) else 2.0)
    return y


def name_of_the_type(x):
    y = x * 1.0
    for i in range(20):
        y = y + (1.0 if type(i).__name__ == "int" else 2.0)
    return y


def list_that_grows(x):
    out = []
    s = 0.0
    for i in range(20):
        if x[i % 3] > 0.5:
            out.append(x[i % 3])
        s = s + (1.0 if type(out) is list else 2.0)
    return s, out


def range_by_a_name(x):
    r = range(20)
    s = 0.0
    for i in r:
        s = s + x[i % 3] * (1.0 if type(r) is range else 2.0)
    return s


def none_or_int(x):
    found = None
    s = 0.0
    for i in range(20):
        if found is None and x[i % 3] > 0.5:
            found = i
        s = s + x[i % 3] * (1.0 if type(found) is int else 2.0)
    return s, found


def attributes_of_an_int(x):
    s = 0.0
    for i in range(20):
        k = int(x[i % 3])
        s = s + x[0] * (1.0 if hasattr(k, "number") else 2.0) + getattr(k, "_size", 3.0)
    return s


def attributes_of_a_call(x):
    n = int(x.sum())
    return hasattr(n, "number"), getattr(n, "_graph", None), type(n), n.__class__


def type_of_a_call(x):
    n = int(x.sum())
    return (
        x * {int: 1.0, float: 2.0}[type(n)],
        isinstance(n, (float,)),
        issubclass(type(n), int),
        type(n)(3.5),
        type(n) in (int,),
    )


def truths(x):
    n = int(x.sum())
    return n is True, n is False, n is None, isinstance(n, bool)


PROGRAMS = [
    number_of_a_range,
    int_in_a_loop,
    float_in_a_loop,
    table_of_types,
    by_attribute,
    float_of_a_call,
    float_of_an_element,
    type_by_another_name,
    subclass,
    name_of_the_type,
    list_that_grows,
    range_by_a_name,
    none_or_int,
    attributes_of_an_int,
    attributes_of_a_call,
    type_of_a_call,
    truths,
]


@pytest.mark.parametrize("f", PROGRAMS)
def test_types_are_pythons(f):
    compiled = pyop.compile(f)
    for x in (np.arange(3.0), np.arange(3.0) + 1.0, np.arange(3.0)):
        assert repr(compiled(x)) == repr(f(x))
