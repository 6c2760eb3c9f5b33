"""State that makes no difference to what a compiled function computes, or that an op keeps: no trace for it."""

from __future__ import annotations

import collections
import itertools
import sys
import types
import warnings
import weakref

import numpy as np
import pytest

import pyop

X = np.arange(1.0, 5.0)


def test_what_is_not_read_does_not_matter():
    """Only what the code names counts: no other attribute, however large or often changed."""

    class Model:
        def __init__(self):
            self.gain, self.log, self.data = 2.0, [], np.ones(1000)

        @pyop.compile
        def run(self, x):
            return x * self.gain

    model = Model()
    for k in range(5):
        model.log.append(k)
        model.data[k] = k
        model.count = k
        np.testing.assert_array_equal(model.run(X), X * 2)
    assert Model.run.cache_info().hits >= 3  # a new attribute may be one that the code has looked for


def test_logs_do_not_trace_anew():
    log, seen = [], set()

    def f(x):
        log.append(x.shape)
        seen.add(len(log))
        return x * 2

    compiled = pyop.compile(f)
    for _ in range(3):
        for n in (2, 3):
            compiled(np.ones(n))
    assert compiled.cache_info().misses == 2


def test_logs_do_not_refuse_loops_and_computed_places():
    log = []

    @pyop.compile
    def f(x, k):
        log.append(len(x))
        total = pyop.scan(lambda c, y: (c + y, c), 0.0, x)[0]
        return x[k] + pyop.while_loop(lambda s: s < 90.0, lambda s: s * 2.0 + x[k], total)

    assert [f(X, 1) for _ in range(2)] == [96.0, 96.0]
    assert log == [4]


def counters():
    """Functions that count in something, and what shows the count."""
    calls, items, named, array, slots = 0, [0, 0], {"n": 0}, np.zeros(2, int), types.SimpleNamespace(n=0)
    buffer, kept, history = bytearray(2), collections.deque([0]), []

    class Layer:
        total = 0

        def __init__(self):
            self.calls, self.even = 0, True

        def forward(self, x):
            self.calls += 1
            return x * 2

        def turn(self, x):
            self.even = not self.even
            return x * 2

        def by_class(self, x):
            Layer.total += len(x)
            return x * 2

    class Slot:
        __slots__ = ("calls",)

        def __init__(self):
            self.calls = 1.5

        def forward(self, x):
            self.calls *= 2
            return x * 2

    def cell(x):
        nonlocal calls
        calls += 1
        return x * 2

    def of_itself(x):
        of_itself.calls = getattr(of_itself, "calls", 0) + 1
        return x * 2

    def by_name(x):
        named["n"] += 1
        return x * 2

    def item(x):
        items[1] -= 1
        return x * 2

    def element(x):
        array[1] += 1
        return x * 2

    def attribute(x):
        slots.n += 1
        return x * 2

    def byte(x):
        buffer[1] += 1
        return x * 2

    def last_two(x):
        nonlocal history
        history = [*history[-1:], len(x)]
        return x * 2

    def end(x):
        kept[-1] += 1
        return x * 2

    layer, slot = Layer(), Slot()
    return {
        "cell": (cell, lambda: calls),
        "last two": (last_two, lambda: history),
        "attribute of itself": (of_itself, lambda: vars(of_itself)),
        "dict": (by_name, lambda: named),
        "list": (item, lambda: items),
        "array": (element, array.tolist),
        "namespace": (attribute, lambda: slots.n),
        "bytes": (byte, lambda: buffer),
        "deque": (end, lambda: kept),
        "instance": (layer.forward, lambda: layer.calls),
        "flag": (layer.turn, lambda: layer.even),
        "class": (layer.by_class, lambda: Layer.total),
        "slot": (slot.forward, lambda: slot.calls),
    }


@pytest.mark.parametrize("name", counters())
def test_a_function_that_counts_its_calls(name):
    (function, shown), (plain, expected) = counters()[name], counters()[name]
    compiled = pyop.compile(function)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        np.testing.assert_array_equal(compiled(X), plain(X))
    for n in (2, 4, 2):
        np.testing.assert_array_equal(compiled(np.ones(n)), plain(np.ones(n)))
    assert repr(shown()) == repr(expected())
    told = {"attribute of itself", "namespace", "bytes", "deque", "class"}
    assert [w.category for w in caught] == [pyop.RetraceWarning] * (name in told)


LEFT: dict[str, object] = {}
COUNT = 0


class Sets:
    """Methods that leave something behind which goes by the shape alone."""

    def attribute(self, x):
        self.left = x.shape
        return x * 2

    def fresh_list(self, x):
        self.left = [f"column {k}" for k in range(len(x))]
        return x * 2

    def table(self, x):
        self.left = np.arange(1000 * len(x))[::1000]
        return x * 2

    def number(self, x):
        self.left = 1000 * len(x)
        return x * 2

    def by_name(self, x):
        setattr(self, "le" + "ft", (len(x),))
        return x * 2

    def function(self, x):
        n = len(x)
        self.left = lambda: n
        return x * 2

    def of_class(self, x):
        type(self).left = x.shape
        return x * 2

    def item(self, x):
        LEFT["left"] = x.shape
        return x * 2

    def items(self, x):
        LEFT.clear()
        LEFT.update((str(k), (k,)) for k in range(len(x)))
        return x * 2

    def of_module(self, x):
        global COUNT
        COUNT = 1000 * len(x)
        return x * 2

    def left_in(self):
        held = getattr(self, "left", None)
        return repr((held() if callable(held) else held, LEFT, COUNT))


@pytest.mark.filterwarnings("ignore::pyop.RetraceWarning")  # calls of many shapes in turn, which each set it anew
@pytest.mark.parametrize("name", [name for name in vars(Sets) if not name.startswith("_") and name != "left_in"])
def test_what_a_function_sets_is_as_after_the_last_call(name, monkeypatch):
    def states(wrap):
        global COUNT
        LEFT.clear()
        COUNT = 0
        monkeypatch.delattr(Sets, "left", raising=False)
        instance = Sets()
        run = wrap(getattr(instance, name))
        for n in (3, 4, 3, 4, 4, 3, 0, 3):
            if n == 0:  # somebody else sets it
                instance.left = LEFT["left"] = COUNT = (7,)
                continue
            np.testing.assert_array_equal(run(np.ones(n)), np.full(n, 2.0))
            yield instance.left_in()

    assert list(states(pyop.compile)) == list(states(lambda method: method))


def test_a_count_of_what_cannot_be_undone_is_refused():
    n, numbers = [0], itertools.count()

    def f(x):
        n[0] += 1
        next(numbers)
        return x * 2

    with pytest.raises(TypeError, match=r"in every call, which a plan does not"):
        pyop.compile(f)(X)
    assert n == [0]


def test_an_op_may_keep_what_it_likes():
    counts = {"n": 0}

    def count(x):
        counts["n"] += 1
        return x * counts["n"]

    op = pyop.op(count, outputs="float64[4]", stateful=True)
    compiled = pyop.compile(lambda x: op(x))
    assert [compiled(X)[0] for _ in range(3)] == [1.0, 2.0, 3.0]
    assert compiled.cache_info().misses == 1


def test_a_large_array_that_is_read_only_is_taken_at_its_word():
    table = np.ones(100_000)
    table.flags.writeable = False
    compiled = pyop.compile(lambda x: x * table[:4])
    np.testing.assert_array_equal(compiled(X), X)
    table.flags.writeable = True
    table[0] = 7
    assert compiled(X)[0] == 1.0


def test_too_many_objects_are_refused():
    table = [[1.0] for _ in range(30_000)]
    with pytest.raises(TypeError, match=r"more than 20,000 objects.*pass those that it reads as arguments"):
        pyop.compile(lambda x: x * table[29_000][0])(X)


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="counts references")
def test_instances_with_slots_are_not_kept_alive():
    class Model:
        __slots__ = ("__weakref__", "gain")

        @pyop.compile
        def run(self, x):
            return x * self.gain

    model = Model()
    model.gain = 2.0
    np.testing.assert_array_equal(model.run(X), X * 2)
    gone = weakref.ref(model)
    del model
    assert gone() is None
