"""Results in containers, with numbers, constants and arrays of the plan's among them: as NumPy has them, by every way
of a call.
"""

from __future__ import annotations

import gc
import sys
import weakref
from collections import namedtuple
from dataclasses import dataclass

import numpy as np
import pytest

import pyop
from pyop._core import ResultForms
from pyop._tree import flatten

Pair = namedtuple("Pair", "energy x")
HELD = np.arange(3.0)
WORDS = {"a", "b"}


@dataclass
class Told:
    energy: object
    x: object


def exactly(got, expected):
    """Compare types, dtypes, bits, order of keys, and what can be written."""
    assert type(got) is type(expected)
    if isinstance(expected, dict):
        assert list(got) == list(expected)
        exactly([*got.values()], [*expected.values()])
    elif isinstance(expected, tuple | list):
        assert len(got) == len(expected)
        for a, b in zip(got, expected, strict=True):
            exactly(a, b)
    elif isinstance(expected, Told):
        exactly(vars(got), vars(expected))
    elif isinstance(expected, np.ndarray | np.generic):
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
        assert got.tobytes() == expected.tobytes()
        assert got.flags.writeable == expected.flags.writeable
    else:
        assert got == expected


X, N, Z = np.linspace(0.5, 2.0, 6), np.array([3, 5], np.int32), np.array([1 + 2j, 3 - 4j])
RESULTS = {
    "a list of scalars": (lambda a: [a[0] * 2, a[1] + 1.0], X),
    "a tuple of them": (lambda a: (a[0] * 2, a[1] + 1.0), X),
    "of other dtypes": (lambda a: [a[0] * a[1], a[0] / a[1], a[0] > a[1], a.astype(np.float16)[1]], N),
    "of complex numbers": (lambda z: (z[0] * z[1], z[0].real, abs(z[1])), Z),
    "a dict": (lambda x: {"energy": np.sum(x * x), "x": x * 2}, X),
    "nested": (lambda x: {"a": [np.sum(x), x * 2], "b": (x[0], {"c": x[1:]})}, X),
    "named": (lambda x: Pair(np.sum(x), x + 1), X),
    "a dataclass": (lambda x: [Told(np.sum(x), x + 1), x[0]], X),
    "constants": (lambda x: (x * 2, 3, "text", None, 2.5, True), X),
    "of one array and no other": (lambda x: [x * 2], X),
    "arrays of nothing": (lambda x: [np.zeros(3), x * 2, np.zeros_like(x), np.broadcast_to(1.5, (2, 3))], X),
    "repeated": (lambda x: (np.broadcast_to(np.arange(3.0), (2, 3)), x[0], np.full((2, 2), 7)), X),
    "what is held": (lambda x: {"held": HELD, "s": x.sum()}, X),
    "by a set": (lambda x: [x.sum() * len(WORDS), x], X),
    "the argument": (lambda x: [x, x.sum(), x[2:]], X),
    "an array of no dimension": (lambda x: [x.sum(keepdims=True).reshape(()), x.sum()], X),
    "Python's numbers": (lambda a, b: (a + b, a - b, a > b), 1.5, 2.5),
    "of ints": (lambda a, b: [a + b, {"less": a < b}, a * 1.0], 3, 2),
    "of complex ones": (lambda a, b: [a + b, a * b], 1 + 2j, 2.5),
    "with constants": (lambda a, b: {"sum": a + b, "name": "sum", "none": None}, 1.5, 2.5),
    "arguments": (lambda a, b: (b, a, a + b), 1.5, np.float64(2.5)),
    "NumPy's numbers": (lambda a, b: (a + b, np.sqrt(a)), np.float32(1.5), 2.5),
    "equal ones": (lambda a, b: (a + b, a + b), 1.5, 2.5),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_are_those_of_the_function(name):
    f, *args = RESULTS[name]
    compiled = pyop.compile(f)
    for _ in range(4):  # traced, by its guard, and quickly
        exactly(compiled(*args), f(*args))
    exactly(compiled(*[np.copy(x) if type(x) is np.ndarray else x for x in args]), f(*args))
    assert compiled.cache_info().misses == 1


@pytest.mark.parametrize("name", RESULTS)
def test_nothing_is_left_behind(name):
    f, *args = RESULTS[name]
    compiled = pyop.compile(f)
    for _ in range(5):
        compiled(*args)
    watched = (*args, HELD, "text")
    gc.collect()
    objects, counts = len(gc.get_objects()), [sys.getrefcount(x) for x in watched]
    for _ in range(1000):
        compiled(*args)
    assert all(sys.getrefcount(x) < n + 500 for x, n in zip(watched, counts, strict=True))
    gc.collect()
    assert len(gc.get_objects()) < objects + 500


def test_who_is_who_among_the_results():
    def f(x):
        y, table = x * 2, np.arange(3)
        return [y, y, x.sum(), table, table, (y[1:], x)]

    compiled = pyop.compile(f)
    for _ in range(4):
        y, again, _, table, same_table, (shown, x) = compiled(X)
        assert y is again
        assert table is same_table
        assert x is X
        assert np.shares_memory(y, shown)
        table[:] = 9
        y[:] = 0


def test_what_the_plan_holds_stays_its_own():
    def f(x):
        made, view = np.zeros_like(x), np.broadcast_to(np.ones(1), x.shape)
        return {"made": made, "view": view, "again": view, "more": [x + 1]}

    compiled = pyop.compile(f)
    for _ in range(4):
        got = compiled(X)
        exactly(got, f(X))
        assert got["view"] is got["again"]
        got["made"][:] = 5


def test_a_single_constant_is_copied_each_time():
    for f in (np.zeros_like, lambda x: np.zeros_like(x), lambda x: [np.zeros_like(x)]):
        compiled = pyop.compile(f)
        for _ in range(3):
            got = compiled(X)
            exactly(got, f(X))
            (got[0] if type(got) is list else got)[...] = 3


def test_out_takes_arrays_in_the_place_of_scalars():
    compiled = pyop.compile(lambda x: [x.sum(), x * 2, "text"])
    for _ in range(3):
        total, twice = np.empty(()), np.empty(6)
        got = compiled(X, out=(total, twice))
        assert got[0] is total
        assert got[1] is twice
        assert got[2] == "text"
        assert total == X.sum()
    exactly(compiled(X), [X.sum(), X * 2, "text"])


@pytest.mark.parametrize("name", RESULTS)
def test_plans_that_are_forgotten_in_a_call_finish_it(name):
    f, *args = RESULTS[name]
    compiled = pyop.compile(f)

    class Clears:
        def __del__(self):
            cleared.append(compiled.clear_cache())

    cleared = []
    before = gc.get_threshold()
    for _ in range(6):
        for _ in range(4):
            exactly(compiled(*args), f(*args))
        gc.collect()  # also the memory of containers that are gone
        clears = Clears()
        clears.itself = clears
        del clears
        gc.set_threshold(1)  # the next container that is made runs the collector
        try:
            got = compiled(*args)
        finally:
            gc.set_threshold(*before)
        exactly(got, f(*args))
    assert cleared


def test_forms_go_with_their_function():
    def make():
        class Own:
            pass

        Own.function = compiled = pyop.compile(lambda a, b: (a + b, Own))
        for _ in range(3):
            assert compiled(1.5, 2.5) == (4.0, Own)
        return weakref.ref(compiled)

    gone = make()
    gc.collect()
    assert gone() is None


def test_lists_of_leaves_are_checked():
    one = flatten(0)[1]
    for row in (("x", "-", 0, 0, None), ("c", "-", 0, 0, None), ("f", "-", 0, 0, 1.0)):
        with pytest.raises(ValueError, match="not a leaf of a result"):
            ResultForms((row,), one, None)
    with pytest.raises(ValueError, match="one behind it"):
        ResultForms((("r", "-", 0, 0, None),), one, None)
    forms = ResultForms((("n", "-", 0, 0, None),), one, None)
    assert forms((np.array(2.5),)) == 2.5
    for wrong in ((), [np.array(2.5)], None):
        with pytest.raises(RuntimeError, match="not a tuple of 1"):
            forms(wrong)
