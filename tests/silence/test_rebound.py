"""What a compiled function reads beside its arguments, and what others change between its calls."""

from __future__ import annotations

import gc
import types
import warnings
import weakref

import numpy as np
import pytest

import pyop

X = np.arange(1.0, 4.0)
GAIN = 2.0
TABLE = {"k": 2.0, "list": [1.0, 2.0]}
WEIGHTS = np.ones(3)


def by_helper(x):
    return x * GAIN


class Model:
    rate = 1.0

    def __init__(self, gain):
        self.gain = gain
        self.weights = np.ones(3)
        self.calls = 0

    def __call__(self, x):
        return x * self.gain * self.rate + self.weights

    @pyop.compile
    def method(self, x):
        return x * self.gain + self.weights


def rebind(name, value):
    globals()[name] = value


def write(array, value):
    array[0] = value


@pytest.fixture(autouse=True)
def as_before():
    yield
    rebind("GAIN", 2.0)
    TABLE.update(k=2.0, list=[1.0, 2.0])
    WEIGHTS[:] = 1
    Model.rate = 1.0


def closure():
    gain = 2.0

    def f(x):
        return x * gain

    def change():
        nonlocal gain
        gain = 5.0

    return f, change


def changes():
    def case(f, change, id):
        return pytest.param(f, change, id=id)

    yield case(lambda x: x * GAIN, lambda: rebind("GAIN", 5.0), "global")
    yield case(by_helper, lambda: rebind("GAIN", 5.0), "global of a helper")
    yield case(lambda x: by_helper(x) + 1, lambda: rebind("GAIN", 5.0), "helper called")
    yield case(*closure(), "closure")
    yield case(lambda x: x * TABLE["k"], lambda: TABLE.update(k=7.0), "item of a dict")
    yield case(lambda x: x * TABLE["list"][1], lambda: TABLE["list"].__setitem__(1, 7.0), "item of a list in a dict")
    yield case(lambda x: x * len(TABLE["list"]), lambda: TABLE["list"].append(7.0), "length of a list")
    yield case(lambda x: x * WEIGHTS, lambda: write(WEIGHTS, 7.0), "elements of an array")
    yield case(lambda x: x * WEIGHTS[1:].sum(), lambda: write(WEIGHTS[2:], 7.0), "elements, by a view")
    held = np.ones(3)
    yield case(lambda x, w=held: x * w, lambda: write(held, 7.0), "default")
    model = Model(2.0)
    yield case(lambda x: model(x), lambda: setattr(model, "gain", 7.0), "attribute")
    yield case(Model(3.0), lambda: setattr(Model, "rate", 7.0), "attribute of a class")
    other = Model(3.0)
    yield case(other, lambda: write(other.weights, 7.0), "elements of an attribute")
    space = types.SimpleNamespace(k=2.0)
    yield case(lambda x: x * space.k, lambda: setattr(space, "k", 9.0), "namespace")


@pytest.mark.parametrize(("f", "change"), [*changes()])
def test_what_others_change_is_seen(f, change):
    compiled = pyop.compile(f)
    before = f(X)
    assert np.array_equal(compiled(X), before)
    assert np.array_equal(compiled(X), before)
    assert compiled.cache_info().hits == 1
    change()
    assert not np.array_equal(f(X), before)
    assert np.array_equal(compiled(X), f(X))
    assert np.array_equal(compiled(X[:3].copy()), f(X))
    assert compiled.cache_info().plans == 1


def test_each_plan_is_of_what_was_read_then():
    f = pyop.compile(lambda x: x * GAIN)
    wide = X.astype(np.float32)
    f(X), f(wide)
    rebind("GAIN", 5.0)
    assert np.array_equal(f(wide), wide * 5.0)
    assert np.array_equal(f(X), X * 5.0)


def test_methods_and_their_instances():
    a, b = Model(2.0), Model(3.0)
    assert np.array_equal(a.method(X), X * 2 + 1)
    assert np.array_equal(b.method(X), X * 3 + 1)
    a.gain = 5.0
    assert np.array_equal(a.method(X), X * 5 + 1)
    assert np.array_equal(b.method(X), X * 3 + 1)
    a.calls += 1  # not read
    hits = Model.method.cache_info().hits
    a.method(X)
    assert Model.method.cache_info().hits == hits + 1
    gone = weakref.ref(a)
    del a
    gc.collect()
    assert gone() is None


def test_what_changes_every_time_is_traced_every_time_with_a_warning():
    f = pyop.compile(lambda x: x * GAIN)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for k in range(20):
            rebind("GAIN", float(k))
            assert np.array_equal(f(X), X * k)
    assert any(issubclass(w.category, pyop.RetraceWarning) and "'GAIN'" in str(w.message) for w in caught)


def test_a_variable_that_has_the_name_of_an_attribute_is_not_read():
    f = pyop.compile(lambda x: x.sum() + x.mean())
    for k in range(3):
        globals()["mean"] = f(X + k)
    assert f.cache_info().plans == 1
    assert f.cache_info().hits == 2
    del globals()["mean"]
