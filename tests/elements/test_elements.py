"""Loops of one operation on elements, compiled, leave behind what the plain function does (compare.py).

The campaign goes through all of them: every dtype with every operation, pairs of dtypes, casts, writes, positions.
"""

from __future__ import annotations

import numpy as np
import pytest

import pyop

from .cases import Case, arguments, cases, function
from .compare import FEW, N, differences

CASES = [*cases()]
EACH = 61  # a prime: all groups, dtypes and operations come in turn


@pytest.mark.parametrize("first", range(8))
def test_one_in_many(first):
    for case in CASES[first * EACH // 8 :: EACH]:
        assert [*differences(case, (N, FEW)[first % 2])] == []


@pytest.mark.campaign
@pytest.mark.parametrize("first", range(40))
def test_all(first):
    assert [text for case in CASES[first::40] for n in (N, FEW) for text in differences(case, n)] == []


# Operations that need no step of Python's for any element.
ON_TAPES = [
    Case("", "x * f", "int64", "", "out[k] = x * f"),
    Case("", "x ** 2", "float32", "", "out[k] = x ** 2"),
    Case("", "x ** 3", "uint8", "", "out[k] = x ** 3"),
    Case("", "x % y", "int16", "int16", "out[k] = x % y"),
    Case("", "divmod", "uint32", "uint32", "out[k], out[k - 1] = divmod(x, y)", "uint32"),
    Case("", "x + y", "int8", "uint16", "out[k] = x + y"),
    Case("", "x < y", "int64", "uint64", "out[k] = x < y"),
    Case("", "x * y", "complex64", "float16", "out[k] = x * y"),
    Case("", "x.imag", "complex64", "", "out[k] = x.imag"),
    Case("", "where", "float16", "complex128", "out[k] = np.where(x > 2, x, y)"),
    Case("", "a cast", "float64", "", "out[k] = x.astype(np.int8)"),
    Case("", "a write", "float64", "", "out[k] = x", "uint16"),
    Case("", "a number's write", "int64", "", "out[k] = x + k; out[k - 1] = 0.1", "float32"),
    Case("", "a position", "bool", "", "out[k] = a[small[k]]", "bool"),
    Case("", "sizes", "float64", "", "out[k] = x / (k + 1) + k / 7"),
    Case("", "np.hypot", "int8", "int32", "out[k] = np.hypot(x, y)"),
    Case("", "np.logaddexp", "float16", "uint8", "out[k] = np.logaddexp(x, y)"),
]


@pytest.mark.parametrize("case", ON_TAPES, ids=lambda case: f"{case.text} {case.a} {case.b}")
def test_every_operation_is_on_the_tape(case):
    given = list(arguments(case, N).values())
    compiled = pyop.compile(function(case))
    compiled(*given)
    assert "a tape of" in str(compiled.plan_for(*given).explain())
    assert [*differences(case)] == []


def test_the_square_of_a_complex_number_is_not_that_of_an_array():
    # NumPy's loop for arrays multiplies and adds in one step.
    rng = np.random.default_rng(0)
    x = rng.normal(size=200) + 1j * rng.normal(size=200)
    compiled = pyop.compile(lambda x: np.square(x[0]))
    assert all(compiled(x[k : k + 2]).tobytes() == np.square(x[k]).tobytes() for k in range(199))
