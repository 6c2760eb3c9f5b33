"""Loops whose bodies call functions that count with `range` themselves."""

from __future__ import annotations

import numpy as np
import pytest

import pyop

from .compare import equal

X = np.linspace(0.1, 1.0, 10)
THREE = range(3)


def relax(y, rounds):
    old = np.empty_like(y)
    for _ in range(rounds):
        old[:] = y
        y[1:-1] = 0.5 * (old[2:] + old[:-2])
    y[0] = 0


def total_to(y, i):
    s = np.zeros(())
    for j in range(i):
        s += y[j] * (j + i)
    return s


def first_above(y, limit):
    for j in range(len(y)):
        if y[j] > limit:
            return j
    return -1


def is_early(i):
    return i in range(3)


def relaxed(rounds):
    """A program that calls a function with a loop of so many iterations."""

    def f(x, n):
        y = x * 1.0
        for _ in range(n):
            relax(y, rounds)
            y += x
        return y

    f.__name__ = f"relaxed_{rounds}"
    return f


def bound_by_the_loop_around(x, n):
    y = np.zeros(n)
    for i in range(n):
        y[i] = total_to(x, i % 10)
    return y


def leaves_early(x, n):
    y = x * 1.0
    for i in range(n):
        k = first_above(y, 0.5)
        y[k] *= 0.5
        y[0] += 0.001 * i
    return y


def asks_whether_it_is_counted(x, n):
    y = x * 1.0
    for i in range(n):
        y = y * 0.5 + x if is_early(i) else y - 0.1 * x
    return y


def length_and_item(x, n):
    def last(i):
        return len(range(i)) + range(i, i + 9)[4]

    y = x * 1.0
    for i in range(n):
        y = y * 0.5 + last(i)
    return y


def range_that_is_kept(x, n):
    def weighed(y):
        for k in THREE:
            y = y * 0.5 + k
        return y

    y = x * 1.0
    for _ in range(n):
        y = weighed(y)
    return y


def range_that_is_returned(x, n):
    def numbers(k):
        return range(k)

    y, seen = x * 1.0, range(0)
    for i in range(n):
        y = y * 0.5 + i
        seen = numbers(3)
    return y, list(seen)


ONE_NODE = [relaxed(5), relaxed(20)]
ALL = [
    *(*ONE_NODE, bound_by_the_loop_around, leaves_early, asks_whether_it_is_counted, length_and_item),
    *(range_that_is_kept, range_that_is_returned),
]


@pytest.mark.parametrize("options", [{}, {"optimize": False}], ids=str)
@pytest.mark.parametrize("program", ALL, ids=lambda f: f.__name__)
def test_bits_are_those_of_the_function(program, options):
    f = pyop.compile(program, **options)
    for n in (12, 30):
        for x in (X, X[::-1].copy(), X):
            assert equal(f(x, n), program(x.copy(), n))


@pytest.mark.parametrize("program", ONE_NODE, ids=lambda f: f.__name__)
def test_compiling_takes_no_longer_for_more_iterations(program, recorded):
    recorded(program, X, 12)  # what loops carry is foreseen from now on
    assert recorded(program, X, 24) == recorded(program, X, 2_000) != []


def test_an_index_out_of_bounds_in_a_helper_is_numpys_error():
    def beyond(y, i):
        for j in range(4):
            y[i + j] += 1.0

    def f(x):
        y = x * 1.0
        for i in range(9):
            beyond(y, i)
        return y

    with pytest.raises(IndexError, match="index 10 is out of bounds"):
        pyop.compile(f)(X)
