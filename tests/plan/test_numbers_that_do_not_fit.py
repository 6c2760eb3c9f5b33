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


@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda ufunc: ufunc.__name__)
def test_as_in_numpy(ufunc):
    for dtype in DTYPES:
        x = np.array([1, 0, 1], dtype)
        for number in NUMBERS[:8] if ufunc is np.logical_or else NUMBERS:
            for call in (lambda x: ufunc(x, number), lambda x: ufunc(number, x), lambda x: ufunc(x[0], number)):

                def unread(x, call=call):
                    call(x)
                    return x + x

                for f in (call, unread):
                    assert said(pyop.compile(f), x) == said(f, x), (dtype, number)
