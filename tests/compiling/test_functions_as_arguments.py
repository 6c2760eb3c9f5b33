"""Functions, classes and dtypes among the arguments: static by themselves, and looked at in every call."""

from __future__ import annotations

import functools
import math
import warnings

import numpy as np
import pytest

import pyop

from .helpers import same

X = np.array([0.5, 1.0, 2.0])
factor = 2.0


def scaled(x):
    return x * factor


def made(x):
    a = np.zeros(3)
    a[0] = x[1]
    return a


FUNCTIONS = {
    "ufunc": np.sin,
    "function of NumPy": np.cumsum,
    "of this module": scaled,
    "that makes arrays": made,
    "partial": functools.partial(np.multiply, 3.0),
    "compiled": pyop.compile(np.exp),
    "class": np.float32,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_static(name):
    f = FUNCTIONS[name]

    def apply(f, x):
        return (x.astype(f) if isinstance(f, type) else f(x)) + 1

    compiled = pyop.compile(apply)
    for other in (f, np.sqrt, f):
        same(compiled(other, X), apply(other, X))
    assert compiled.cache_info()[:3] == (1, 2, 2)


def test_functions_lie_in_containers_and_get_numbers():
    def apply(layers, x, t):
        for layer in layers:
            x = layer["f"](x) * layer["w"]
        return x + math.exp(t)

    compiled = pyop.compile(apply)
    layers = [{"f": np.tanh, "w": 2.0}, {"f": scaled, "w": X}]
    for t in (0.5, 1.5):
        same(compiled(layers, X, t), apply(layers, X, t))
    assert compiled.cache_info().plans == 1


@pytest.mark.parametrize("dtype", [np.dtype("f4"), np.int64, float, np.dtype(">i2"), np.dtype("c8")])
def test_a_dtype_is_static(dtype):
    compiled = pyop.compile(lambda x, d: (x * 3).astype(d))
    for d in (dtype, np.dtype("f8"), dtype):
        same(compiled(X, d), (X * 3).astype(d))
    assert compiled.cache_info()[:3] == (1, 2, 2)


def test_what_a_function_reads_is_looked_at_in_every_call(monkeypatch):
    class Settings:
        scale = 1.0

    weights, items = np.ones(3), [1.0]
    settings = Settings()
    cases = [
        lambda x: x * weights,
        functools.partial(lambda items, x: x * items[0], items),
        lambda x: x + settings.scale,
        lambda x: scaled(x),
    ]
    compiled = pyop.compile(lambda f, x: f(x))
    for f in cases:
        same(compiled(f, X), f(X))
    weights[0] = items[0] = settings.scale = 7.0
    monkeypatch.setitem(globals(), "factor", 5.0)
    for f in cases:
        same(compiled(f, X), f(X))
    by_class = pyop.compile(lambda x, kind: x * kind.scale)
    for scale in (2.0, 3.0):
        Settings.scale = scale
        same(by_class(X, Settings), X * scale)


def test_a_function_made_anew_in_each_call_is_not_traced_each_time():
    compiled = pyop.compile(lambda f, x: f(x))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for k in range(200):
            same(compiled(lambda x, k=k: x * k, X), X * k)
    assert compiled.cache_info().misses < 30
    assert "make it once" in str(caught[0].message)


def test_what_belongs_to_an_object_is_none():
    compiled = pyop.compile(lambda f, x: f(x))
    for f in (X.dot, [].append, factor.__add__):
        with pytest.raises(TypeError, match="neither array nor number"):
            compiled(f, X)
