"""State that makes no difference to what a compiled function computes, or that an op keeps: no trace for it."""

from __future__ import annotations

import sys
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


def test_counts_and_logs_do_not_trace_anew():
    log = []

    def f(x):
        log.append(x.shape)
        f.calls = getattr(f, "calls", 0) + 1
        return x * 2

    compiled = pyop.compile(f)
    for _ in range(3):
        for n in (2, 3):
            compiled(np.ones(n))
    assert compiled.cache_info().misses == 2


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
