"""Exceptions of NumPy that a compiled function catches: it goes on as it does plainly."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

import pyop

from .test_branches import WAYS, Function, check_same, outcome


def _inverse_or_itself(a):
    try:
        return np.linalg.inv(a)
    except np.linalg.LinAlgError:
        return a * 2


def _is_positive(a):
    try:
        np.linalg.cholesky(a)
    except np.linalg.LinAlgError:
        return False
    return True


def _suppressed(a):
    with contextlib.suppress(np.linalg.LinAlgError):
        a = np.linalg.inv(a)
    return a + 1


def _in_a_helper(a):
    def solve(b):
        return np.linalg.solve(a, b)

    try:
        return solve(a[0])
    except np.linalg.LinAlgError:
        return np.full_like(a[0], np.nan)


def _after_a_branch(a):
    b = a * 2 if a[0, 0] > 1 else a
    try:
        return np.linalg.inv(b)
    except np.linalg.LinAlgError as error:
        raise ValueError("singular") from error
    finally:
        b = None


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("f", [_inverse_or_itself, _is_positive, _suppressed, _in_a_helper, _after_a_branch])
def test_exceptions_that_the_function_catches(f: Function, way: str) -> None:
    compiled = pyop.compile(f, **WAYS[way])
    singular, definite = np.ones((2, 2)), np.array([[2.0, 1.0], [1.0, 3.0]])
    for a in (definite, singular, -definite, singular * 0, singular * 3, definite * 4):
        want, _ = outcome(f, a)
        got, _ = outcome(compiled, a)
        check_same(want, got)


def test_an_error_of_the_trace_that_is_another_one_with_arrays():
    def by_read_only(x):
        try:
            x[7] = 1.0  # an IndexError, but first of all a ValueError of what is read-only
        except ValueError:
            x = x + 1
        return x * 2

    def by_unknown_size(x):
        counts = np.bincount(x % 5)
        try:
            last = counts[9] * 2
        except LookupError:
            last = counts * 0
        return last[0]

    x = np.array(3)
    x.flags.writeable = False
    compiled = pyop.compile(by_read_only)
    assert compiled(x) == compiled(x) == 8
    with pytest.raises(IndexError, match="too many indices"):
        compiled(np.array(3))
    compiled = pyop.compile(by_unknown_size)
    assert compiled(np.arange(3)) == compiled(np.arange(3)) == 0


def test_what_comes_of_a_caught_refusal_is_not_the_functions():
    def f(x, y):
        try:
            y = y + x.tolist()[0]
        except TypeError:
            pass
        else:
            found = y
        return found

    compiled, x = pyop.compile(f), np.arange(3.0)
    with pytest.warns(pyop.RetraceWarning, match="tolist"):
        compiled(x, x)
    assert np.array_equal(compiled(x, x), f(x, x))


def test_a_write_out_of_bounds_asks_first_whether_it_may():
    def f(x):
        try:
            x[7] = 1.0
        except LookupError:
            return x * 0
        return x

    compiled, x, fixed = pyop.compile(f), np.ones(3), np.ones(3)
    fixed.flags.writeable = False
    assert np.array_equal(compiled(x), f(x))
    with pytest.raises(ValueError, match="read-only"):
        compiled(fixed)
    assert np.array_equal(compiled(x), f(x))
