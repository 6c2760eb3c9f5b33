"""``array ** number`` in plans: what NumPy's operator does for that number, as a native step."""

from __future__ import annotations

import numpy as np
import pytest

import pyop
from pyop.graph.powers import power_of

NUMBERS = [
    2.0,
    1.0,
    0.0,
    -0.0,
    -1.0,
    0.5,
    2,
    1,
    0,
    -1,
    -2,
    3.0,
    2.5,
    1e300,
    True,
    2 + 0j,
    np.float64(2),
    np.float32(0.5),
]


def outcome(f, *args):
    try:
        with np.errstate(all="ignore"):
            return f(*args)
    except (TypeError, ValueError, OverflowError) as error:
        return type(error)


@pytest.mark.parametrize("number", NUMBERS, ids=repr)
def test_powers_by_a_number_are_numpys(number):
    rng = np.random.default_rng(0)
    for code in "?bBhilLefdgFD":
        compiled = pyop.compile(lambda v: v**number)
        for shape in ((1,), (3,), (64,), (1000,), (7, 5), (0,), (40, 30), ()):
            a = np.asarray(rng.uniform(0.1, 6.0, shape) * (1 + 0.5j if code in "FD" else 1)).astype(code)
            if a.size > 2 and code in "efdg":
                a.flat[:4] = [0.0, -0.0, np.nan, np.inf]
            for v in (a, a[::-1] if shape else a, a.T):
                want, got = outcome(lambda v: v**number, v), outcome(compiled, v)
                if isinstance(want, type):
                    assert got is want
                    continue
                assert got.dtype == want.dtype
                assert np.array_equal(got, want, equal_nan=True)
                assert np.array_equal(np.signbit(got.real), np.signbit(want.real))


@pytest.mark.parametrize("number", [2.0, 1.0, 0.0, -1.0, 0.5, 2, -1])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_powers_by_the_commonest_numbers_are_native(number, dtype):
    plan = pyop.compile(lambda v: v**number).plan_for(np.ones(4, dtype))
    assert plan.report()["native"] == plan.report()["instructions"] == 1


def test_the_operator_is_believed_where_it_cannot_be_listened_to():
    def f(v):
        return v**2.0

    # An operator whose ufunc is of another dtype than the array, as older releases of NumPy had it for integers.
    assert power_of(np.dtype("f8"), 2.0) is not None
    assert power_of(np.dtype("i8"), -1) is None
    x = np.arange(5)
    assert np.array_equal(pyop.compile(f)(x), f(x))
