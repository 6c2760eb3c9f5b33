"""Python ints that an array of integers cannot hold: NumPy's error for most ufuncs, though nobody reads the result."""

import numpy as np
import pytest

import pyop

NUMBERS = (0, 127, 128, 255, 256, 65536, 2**31, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**400)
NUMBERS += (-(2**63) - 1, -(2**63), -32769, -129, -1)
DTYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32")
UFUNCS = (np.add, np.subtract, np.maximum, np.true_divide, np.less, np.equal, np.bitwise_and, np.logical_or, np.hypot)
UFUNCS += (np.power,)  # of bools and ints beyond 64 bits np.logical_or raises, which is taken for a true one here


def said(function, x):
    try:
        with np.errstate(all="ignore"):
            return function(x).tobytes()
    except (OverflowError, TypeError, ValueError) as error:
        return type(error), str(error).split("\n")[0]


def forms(ufunc, number):
    def of_an_array(x):
        return ufunc(x, number)

    def in_front(x):
        return ufunc(number, x)

    def of_an_element(x):
        return ufunc(x[0], number)

    def unread(form):
        def f(x):
            form(x)
            return x + x

        return f

    calls = of_an_array, in_front, of_an_element
    return [*calls, *map(unread, calls)]


@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda ufunc: ufunc.__name__)
def test_as_in_numpy(ufunc):
    for dtype in DTYPES:
        x = np.array([1, 0, 1], dtype)
        for number in NUMBERS[:8] if ufunc is np.logical_or else NUMBERS:
            for f in forms(ufunc, number):
                assert said(pyop.compile(f), x) == said(f, x), (dtype, number)
