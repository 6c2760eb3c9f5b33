"""Loops whose bodies read and write more than arrays and numbers, each written down once."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

import pyop
from pyop.loops import rolled

from .compare import equal

X = np.linspace(0.1, 1.0, 10)


def congruence(x, n):
    """A NumPy scalar that is carried, within a ``with``."""
    out = np.empty(n, np.uint64)
    state = np.uint64(12345)
    with np.errstate(over="ignore"):
        for i in range(n):
            state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
            out[i] = state >> np.uint64(33)
    return out, state, x * 2


def scalar_that_begins_anew(x, n):
    """A NumPy scalar that an iteration may set again."""
    y, largest = x * 1.0, np.float64(0.0)
    for i in range(n):
        largest = np.float64(0.0) if y[i % 10] > 0.7 else largest + y[i % 10]
        y[i % 10] += largest
    return y, largest


def handled_before(x, n):
    """A ``try`` that the loop is not in."""
    y = x * 1.0
    try:
        y = y.reshape(2, 5)
    except ValueError:
        y = y[:5]
    for i in range(n):
        y[0] = y[1] * 0.5 + i
    return y


def within_two(x, n):
    y = x * 1.0
    with contextlib.nullcontext() as nothing, np.errstate(divide="ignore"):
        for i in range(n):
            y[i % 10] = 1.0 / (y[i % 10] + i)
    return y, nothing


ALL = [congruence, scalar_that_begins_anew, handled_before, within_two]


@pytest.mark.parametrize("options", [{}, {"optimize": False}], ids=str)
@pytest.mark.parametrize("program", ALL, ids=lambda f: f.__name__)
def test_bits_are_those_of_the_function(program, options):
    f = pyop.compile(program, **options)
    for n in (9, 12, 30):
        for x in (X, X[::-1].copy(), X - 0.5, X):
            got, wanted = f(x.copy(), n), program(x.copy(), n)
            assert equal(got, wanted), n


@pytest.mark.parametrize("program", ALL, ids=lambda f: f.__name__)
def test_compiling_takes_no_longer_for_more_iterations(program, monkeypatch):
    sizes = []
    add = rolled.add_loop
    monkeypatch.setattr(rolled, "add_loop", lambda made, *rest: sizes.append(len(made.graph)) or add(made, *rest))

    def of(n):
        sizes.clear()
        pyop.compile(program)(X.copy(), n)
        return list(sizes)

    assert of(12) == of(1_000) != []


def test_errors_are_caught_around_a_loop():
    """Where the loop is in a ``try``, it is what it is."""

    def f(x, n):
        y = x * 1.0
        try:
            for i in range(n):
                y[i] = i
        except IndexError:
            y[0] = -1.0
        finally:
            y[1] = 5.0
        return y

    compiled = pyop.compile(f)
    for n in (9, 10, 11, 30):
        assert equal(compiled(X, n), f(X, n))
