"""A program that writes, held against NumPy: compiled in all ways, on arrays that lie otherwise; its derivatives
against differences."""

from __future__ import annotations

import pickle
import warnings

import numpy as np

import pyop
from pyop._tree import flatten

from .compare import differs

MATRIX = np.random.default_rng(7).standard_normal((4, 5))
LAYOUTS = {
    "rows": lambda x: x.copy(),
    "columns": np.asfortranarray,
    "steps": lambda x: np.repeat(np.repeat(x, 2, 0), 3, 1)[::2, ::3],
    "float32": lambda x: x.astype(np.float32),
    "int64": lambda x: (x * 10).astype(np.int64),
    "complex128": lambda x: x + 1j * x[::-1],
}


def attempt(f, *args):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return f(*args)
        except Exception as error:
            return error


def kind_of(error):
    """What code that catches NumPy's error would name."""
    return next(kind for kind in type(error).__mro__ if kind.__module__ == "builtins")


def check(f, x=MATRIX, layouts=tuple(LAYOUTS), named="[n,m]"):
    """The same results in every way, types and arguments included; where NumPy raises, its error."""
    for name in layouts:
        given = LAYOUTS[name](x)
        kept = given.copy()
        ways = {
            "compiled": lambda x: pyop.compile(f)(x),
            "not optimized": lambda x: pyop.compile(f, optimize=False)(x),
            "by threads": lambda x: pyop.compile(f, threads=2)(x),
            "pickled": lambda x: pickle.loads(pickle.dumps(pyop.trace(f, x))).compile()(x),
        }
        if named:
            ways["named sizes"] = lambda x: pyop.compile(f, f"{x.dtype}{named}")(x)
        want = attempt(f, given.copy(order="K"))
        for way, run in ways.items():
            got = attempt(run, given)
            if isinstance(want, Exception):
                assert isinstance(got, kind_of(want)), (name, way, want, got)
            else:
                assert not isinstance(got, Exception), (name, way, got)
                for a, b in zip(flatten(want)[0], flatten(got)[0], strict=True):
                    assert not differs(a, b), (name, way, differs(a, b))
            assert np.array_equal(given, kept), (name, way)


def check_derivatives(f, x=MATRIX):
    """In reverse and forward mode, and twice, against differences."""
    weights = np.cos(np.arange(100.0))

    def g(x):
        return sum(np.sum(np.sin(part) * weights[: part.size].reshape(part.shape)) for part in flatten(f(x))[0])

    def differences(h, step=1e-6):
        units = np.eye(x.size).reshape(-1, *x.shape)
        return np.stack([(h(x + step * e) - h(x - step * e)) / (2 * step) for e in units])

    want = differences(g).reshape(x.shape)
    first = pyop.compile(pyop.grad(g))
    np.testing.assert_allclose(first(x), want, rtol=1e-6, atol=1e-6)
    tangent = np.cos(np.arange(x.size)).reshape(x.shape)
    forward = pyop.compile(lambda x, t: pyop.jvp(g, (x,), (t,))[1])(x, tangent)
    np.testing.assert_allclose(forward, np.sum(want * tangent), rtol=1e-6, atol=1e-6)
    twice = pyop.compile(pyop.grad(lambda x: np.sum(pyop.grad(g)(x) * tangent)))(x)
    np.testing.assert_allclose(twice, differences(lambda x: np.sum(first(x) * tangent)).reshape(x.shape), 1e-5, 1e-5)
