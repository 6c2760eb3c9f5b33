"""Arrays that a function makes in its first call, keeps, and changes in that call and in those to come."""

from __future__ import annotations

import functools
from types import SimpleNamespace

import numpy as np
import pytest

import pyop

X = np.arange(3.0)


class Dirty(pyop.Function):
    """Adds one, there."""

    @staticmethod
    def forward(ctx, v):
        v += 1
        ctx.mark_dirty(v)
        return v

    @staticmethod
    def backward(ctx, ct):
        return ct


class Cached:
    def __init__(self, a):
        self.a = a

    @functools.cached_property
    def double(self):
        return self.a * 2


def in_a_dict():
    kept = {}

    def f(x):
        kept.setdefault("b", np.zeros(3))[0] += 1
        return x * 2

    return f, lambda: kept["b"]


def in_a_list():
    kept = []

    def f(x):
        if not kept:
            kept.append(np.zeros(3))
        np.add(kept[0], 1, out=kept[0])
        return x * 2

    return f, lambda: kept[0]


def deep():
    o = SimpleNamespace()

    def f(x):
        if not hasattr(o, "s"):
            o.s = {"b": [np.ones(3)]}
        o.s["b"][0] *= 2
        return x + 1

    return f, lambda: o.s["b"][0]


def made_and_read():
    o = SimpleNamespace()

    def f(x):
        if not hasattr(o, "w"):
            o.w = np.ones(3)
            o.w *= 3
        return x * o.w

    return f, lambda: o.w


def filled_again():
    o = SimpleNamespace()

    def f(x):
        if not hasattr(o, "w"):
            o.w = np.empty(3)
        o.w[:] = 5.0
        return x * 2

    return f, lambda: o.w


def cached(order):
    def make():
        o = Cached(np.asarray(np.arange(6.0).reshape(2, 3), order=order))

        def f(x):
            double = o.double
            Dirty.apply(double)
            return double, x * 2

        return f, lambda: o.double

    return make


@pytest.mark.filterwarnings("ignore::pyop.RetraceWarning")
@pytest.mark.parametrize(
    "make",
    [in_a_dict, in_a_list, deep, made_and_read, filled_again, cached("C"), cached("F")],
    ids=lambda make: make.__qualname__,
)
def test_what_is_kept_is_as_in_numpy(make):
    (plain, state), (traced, kept) = make(), make()
    compiled = pyop.compile(traced)
    for _ in range(4):
        want, got = plain(X), compiled(X)
        for a, b in zip(*([r] if isinstance(r, np.ndarray) else r for r in (want, got)), strict=True):
            np.testing.assert_array_equal(a, b)
            assert a.strides == b.strides
        np.testing.assert_array_equal(state(), kept())
        assert state().strides == kept().strides


def test_only_what_moves_is_not_compiled():
    for make, runs_itself in ((in_a_list, True), (made_and_read, False), (filled_again, False)):
        f, _ = make()
        compiled = pyop.compile(f)
        if runs_itself:
            with pytest.warns(pyop.RetraceWarning, match="in every call"):
                compiled(X)
        else:
            compiled(X)
        assert compiled(X) is not None
        assert bool(compiled._plans_for(X)) != runs_itself
