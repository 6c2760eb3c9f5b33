"""Functions in which floating-point errors are raised, and warnings recorded: they run themselves."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import pyop


def raised(x):
    with np.errstate(divide="raise"):
        return 1.0 / x


def caught(x):
    try:
        with np.errstate(divide="raise"):
            return 1.0 / x
    except FloatingPointError:
        return x * 0.0


def recorded(x):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        y = 1.0 / x
    return y, float(len(told))


def outcome(f, x):
    try:
        return f(x)
    except FloatingPointError as error:
        return str(error)


@pytest.mark.parametrize("fallback", [False, True])
@pytest.mark.parametrize("f", [raised, caught, recorded])
def test_the_function_itself_runs(f, fallback):
    compiled = pyop.compile(f, fallback=fallback)
    with pytest.warns(pyop.RetraceWarning, match=rf"{f.__name__} .*acts while the function is traced") as told:
        found = [outcome(compiled, x) for x in (np.ones(3), np.zeros(3), np.ones(3))]
    assert len(told) == 1
    for a, b in zip(found, [outcome(f, x) for x in (np.ones(3), np.zeros(3), np.ones(3))], strict=True):
        np.testing.assert_equal(a, b)


@pytest.mark.parametrize("f", [raised, caught])
def test_derivatives_of_it_are_refused(f):
    with pytest.raises(TypeError, match="acts while the function is traced"):
        pyop.compile(pyop.grad(lambda x: np.sum(f(x))))(np.ones(3))
