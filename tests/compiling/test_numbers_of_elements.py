"""Python numbers that a function makes of elements: what they are, and their derivatives."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import pyop

X = np.array([0.3, 0.7, 1.1])

OF_ELEMENTS = {
    "item": lambda x: x[0].item() * x.item(1) / x[2:].item(),
    "item of an axis": lambda x: x.reshape(3, 1).item(2, 0) ** 2,
    "float": lambda x: float(x[0]) ** 2 / float(x[1]),
    "exponentials": lambda x: math.exp(x[0]) * math.exp(x[1]) - 2.0,
    "power": lambda x: math.exp(x[0]) ** 2.5,
    "signs": lambda x: -abs(math.sin(x[0]) - 1.0),
    "remainder": lambda x: math.exp(x[0]) % 0.3,
    "rounded": lambda x: round(math.exp(x[0]), 2),
    "larger": lambda x: max(float(x[0]), float(x[1])) * 2.0,
    "complex": lambda x: abs((1j * x[0] + x[1]) * (2 - 1j)),
    "quotient": lambda x: ((2 + 1j) / (x[0] + 1j * x[1])).real,
    "square": lambda x: ((1j * x[0] + 1) ** 2).imag,
}


@pytest.mark.parametrize("name", OF_ELEMENTS)
def test_they_are_recorded_and_have_derivatives(name):
    f = OF_ELEMENTS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # none runs itself
        compiled, gradient = pyop.compile(f), pyop.compile(pyop.grad(f))
        assert repr(compiled(X)) == repr(f(X))
        got = gradient(X)
    step = 1e-6
    moves = np.eye(3) * step
    want = [(f(X + move) - f(X - move)) / (2 * step) for move in moves]
    assert np.allclose(got, want, rtol=1e-6, atol=1e-8)


def test_item_of_ints_looks_up():
    def gathered(x, places):
        total = 0
        for k in range(len(places)):
            total += x[places[k].item()].item() * places.item(k)
        return total

    compiled = pyop.compile(gathered)
    for seed in range(4):
        places = np.random.default_rng(seed).integers(0, 3, 30)
        assert repr(compiled(X, places)) == repr(gathered(X, places))
    assert compiled.cache_info().plans == 1


def test_item_of_more_than_one_element_is_numpys_error():
    with pytest.warns(pyop.RetraceWarning), pytest.raises(ValueError, match="size 1"):
        pyop.compile(lambda x: x.item())(X)


def test_derivatives_by_numbers_that_decide_nothing():
    for f in (lambda x, t: np.where(x > t, x * x, t).sum(), lambda x, t: (np.clip(x, 0.1, t) ** t).sum()):
        for by in (0, 1):
            got = pyop.compile(pyop.grad(f, argnums=by))(X, 0.5)
            assert np.allclose(got, pyop.grad(f, argnums=by)(X, 0.5))


def test_a_copy_lies_as_numpys():
    for made in (np.zeros((3, 4)), np.zeros((3, 4), order="F"), np.zeros((6, 8))[::2, ::-2], np.zeros(())):
        for f in (lambda x: x.copy(), lambda x: np.copy(x), lambda x: x.copy("K"), lambda x: x.copy("F")):
            got, want = pyop.compile(f)(made), f(made)
            assert got.strides == want.strides
            assert got.flags == want.flags
            assert not np.shares_memory(got, made)
