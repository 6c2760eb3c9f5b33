"""Views that a group alone reads are never made: the same bits and layouts, whatever the arrays are."""

from __future__ import annotations

import gc
import sys
import weakref

import numpy as np
import pytest
from native_checks import assert_same, observed, python_calls

import pyop


def parts_of_one_shape(rng, n, ndim):
    """An index that shows `ndim` axes of `n` elements of an array of n + 2 or 2n + 2 along each."""
    key = []
    for _ in range(ndim):
        start = int(rng.integers(0, 3))
        how = rng.integers(0, 4)
        if how == 0:
            key.append(slice(n + start - 1, start - 1 if start else None, -1))
        elif how == 1:
            key.append(slice(start, start + 2 * n - 1, 2))
        else:
            key.append(slice(start, start + n))
    return tuple(key)


def program(rng, n, ndim, arrays):
    """A sum of products of views; some in another order of axes, some repeated along one."""
    terms = []
    for _ in range(int(rng.integers(2, 6))):
        which, key = int(rng.integers(len(arrays))), parts_of_one_shape(rng, n, ndim)
        axes = tuple(rng.permutation(ndim)) if rng.integers(3) == 0 else None
        one = int(rng.integers(0, 6))
        terms.append((which, key, axes, one if one < ndim else None))

    def function(*given):
        found = None
        for k, (which, key, axes, one) in enumerate(terms):
            x = given[which][key]
            if axes is not None:
                x = x.transpose(axes)
            if one is not None:
                x = x[(slice(None),) * one + (slice(0, 1),)]
            found = x if found is None else (found * x if k % 2 else found + x * 0.5)
        return found

    return function


@pytest.mark.parametrize("seed", range(60))
def test_programs_of_views(seed):
    views_of(seed)


@pytest.mark.campaign
def test_many_programs_of_views():
    for seed in range(60, 50_060):
        views_of(seed)


def views_of(seed):
    rng = np.random.default_rng(seed)
    dtype = np.dtype(rng.choice(["f8", "f4", "i8", "c16", "f2"]))
    ndim, n = int(rng.integers(1, 4)), int(rng.choice([1, 2, 3, 9, 20]))
    arrays = []
    for _ in range(2):
        x = (rng.standard_normal((2 * n + 2,) * ndim) * 3).astype(dtype)
        arrays.append(np.asfortranarray(x) if rng.integers(2) else x)
    f = program(rng, n, ndim, arrays)
    made = {"": pyop.compile(f), "threads": pyop.compile(f, threads=2), "views": pyop.compile(f, disable=["views"])}
    for turn in range(3):
        given = [x[::-1] if turn == 2 else x for x in arrays]  # other strides than it was compiled for
        want = observed(f, *given)
        for compiled in made.values():
            assert_same(observed(compiled, *given), want, merged=True)


def steps(u, w):
    w[1:-1, 1:-1] = u[2:, 1:-1] + u[:-2, 1:-1] - 2.0 * u[1:-1, 1:-1]


def test_nothing_is_made_and_nothing_kept():
    compiled = pyop.compile(steps)
    u, w = np.random.default_rng(0).random((2, 12, 12))
    wanted = w.copy()
    steps(u, wanted)
    compiled(u, w)
    np.testing.assert_array_equal(w, wanted)
    counts = sys.getrefcount(u), sys.getrefcount(w)
    for _ in range(100):
        compiled(u, w)
    assert (sys.getrefcount(u), sys.getrefcount(w)) == counts
    gone = weakref.ref(u)
    del u
    gc.collect()
    assert gone() is None


def test_explain_and_profile_name_the_views():
    u, w = np.random.default_rng(0).random((2, 12, 12))
    compiled = pyop.compile(steps)
    compiled(u, w)
    text = str(compiled.plan_for(u, w).explain())
    assert text.count("read through by the group") == 3
    with pyop.profile() as p:
        compiled(u, w)
    assert str(p)


def test_arrays_that_do_not_suit_the_group():
    """The views are made by C++, and the functions called on them."""
    f = pyop.compile(lambda a, b: np.power(a.T, b[1:]) + a.T)
    rng = np.random.default_rng(0)
    a, b = rng.random((4, 5)), rng.random((6, 4))
    np.testing.assert_array_equal(f(a, b), np.power(a.T, b[1:]) + a.T)
    for given in ((a[::2], b[:, ::2]), (a.astype(">f8"), b), (np.asfortranarray(a), b)):
        np.testing.assert_array_equal(f(*given), np.power(given[0].T, given[1][1:]) + given[0].T)


@pytest.mark.parametrize("bad", [np.zeros((3, 4)), np.zeros(5), np.zeros((5, 6, 2))])
def test_an_error_is_that_of_the_function(bad):
    def f(a, b):
        return a[1:, :] * 2.0 + b[1:, ::-1]

    compiled = pyop.compile(f)
    compiled(np.ones((5, 6)), np.ones((5, 6)))
    want = observed(f, np.ones((5, 6)), bad)
    got = observed(compiled, np.ones((5, 6)), bad)
    assert isinstance(want[0], Exception)
    assert isinstance(got[0], type(want[0]))


def test_errors_of_floating_point_are_told_of_the_operation():
    def f(x):
        return x[1:] / x[:-1] + x[1:]

    x = np.array([0.0, 1.0, 0.0, np.inf, 2.0] * 30)
    compiled = pyop.compile(f)
    assert_same(observed(compiled, x), observed(f, x), merged=True)
    with np.errstate(all="raise"):
        want, got = observed(f, x)[0], observed(compiled, x)[0]
        assert type(got) is type(want) is FloatingPointError


def test_the_commoner_order_of_two_needs_no_python():
    """A matrix and its transpose: C order decides for NumPy, and for a plan."""

    def f(a):
        return (a + a.T) * 0.5

    a = np.random.default_rng(0).random((7, 7))
    plan = pyop.compile(f).plan_for(a)
    assert_same(observed(plan, a), observed(f, a))
    assert python_calls(plan, a) == []
    for other in (np.asfortranarray(a), a[::-1], a[:, ::-1], np.asfortranarray(a)[::-1]):
        assert_same(observed(plan, other), observed(f, other))
