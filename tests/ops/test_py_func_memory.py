"""py_func and memory: arguments are lent and may be kept, results never written into, functions live as their graph."""

import gc
import weakref

import numpy as np
import pytest
from py_func_ways import WAYS

import pyop

f32 = np.float32


@pytest.fixture(params=list(WAYS))
def call(request):
    return WAYS[request.param]


def test_arguments_are_the_callers_memory_read_only(call, request):
    x = np.arange(100_000, dtype=f32)
    seen = []

    def look(a):
        seen.append((a.flags.writeable, np.shares_memory(a, x), a.flags.c_contiguous, type(a)))
        return a.sum(dtype=f32)

    call(look, [x], "float32")
    copied = request.node.callspec.params["call"] == "constants"  # a constant is the graph's own from the start
    assert seen == [(False, not copied, True, np.ndarray)]
    assert x.flags.writeable


def test_an_argument_may_be_kept(call):
    kept = []
    for k in range(10):
        call(lambda a: (kept.append(a), a.sum())[1], [np.full(1000, float(k))], "float64")
    gc.collect()
    junk = [np.full(1000, -1.0) for _ in range(10)]
    assert [a[0] for a in kept] == [a[-1] for a in kept] == list(range(10))
    assert not any(a.flags.writeable for a in kept)
    del junk


def test_an_intermediate_argument_may_be_kept():
    kept = []
    g = pyop.Graph()
    p = g.input("float64")
    t = p
    for _ in range(5):
        t = pyop.py_func(lambda a: (kept.append(a), a + 1.0)[1], [t], "float64")
    g.output(t)
    plan = g.compile()
    for k in range(3):
        plan(np.full(500, 10.0 * k))
    assert [(a[0], a[-1]) for a in kept] == [(10.0 * k + i, 10.0 * k + i) for k in range(3) for i in range(5)]


def test_views_of_an_argument_can_be_returned(call):
    x = np.arange(12.0).reshape(3, 4)
    parts = call(lambda a: (a[1], a.T, a[::-1, 1:2], a, a.reshape(-1)), [x], ["float64"] * 5)
    for got, want in zip(parts, (x[1], x.T, x[::-1, 1:2], x, x.reshape(-1)), strict=True):
        np.testing.assert_array_equal(got, want)


def test_nothing_writes_into_a_returned_array():
    mine = f32([1, 2, 3])
    g = pyop.Graph()
    with g:
        y = pyop.py_func(lambda: mine, [], "float32")
        doubled = pyop.py_func(lambda a: a + a, [y], "float32")
    assert g.run([y + f32(5), doubled])[0].tolist() == [6, 7, 8]
    assert mine.tolist() == [1, 2, 3]
    assert mine.flags.writeable


def test_a_folded_result_is_safe_from_the_function_that_made_it():
    mine = f32([1, 2, 3])
    g = pyop.Graph()
    with g:
        y = pyop.py_func(lambda: mine, [], "float32", stateful=False)
    first = g.run(y)
    mine[:] = 0
    assert g.run(y).tolist() == [1, 2, 3] == first.tolist()


def test_a_constant_is_a_copy_and_cannot_be_scribbled_on():
    x = np.zeros(2)

    def scribble(a):
        with pytest.raises(ValueError, match="read-only"):
            a[0] = 1
        return a + 1

    g = pyop.Graph()
    with g:
        y = pyop.py_func(scribble, [x], "float64")
    x[:] = 100
    assert [g.run(y).tolist() for _ in range(3)] == [[1, 1]] * 3


class Fn:
    def __call__(self, *args):
        return f32(1)

    def method(self, *args):
        return f32(1)


@pytest.mark.parametrize("stateful", [True, False])
@pytest.mark.parametrize("bound", [False, True])
def test_the_graph_owns_the_function(stateful, bound):
    fn = Fn()
    gone = weakref.ref(fn)
    g = pyop.Graph()
    with g:
        y = pyop.py_func(fn.method if bound else fn, [], "float32", stateful=stateful)
    del fn
    gc.collect()
    assert gone() is not None
    assert g.run(y) == 1
    plan = (g.output(y), g.compile())[1]
    del g, y
    gc.collect()
    assert plan() == 1
    del plan
    gc.collect()
    assert gone() is None


def test_a_cycle_of_function_and_graph_is_collected():
    def build():
        g = pyop.Graph()
        p = g.input("float32")
        payload = Fn()

        def again(x):
            return (g, y, payload) and x

        y = pyop.py_func(again, [p], "float32")
        g.output(y)
        again.plan = g.compile()
        assert again.plan(f32(2)) == g.run(y, {p: f32(2)}) == 2
        return weakref.ref(payload), weakref.ref(g)

    refs = build()
    gc.collect()
    assert [ref() for ref in refs] == [None, None]


def test_immediate_calls_keep_nothing(call):
    fn, x = Fn(), np.zeros(10)
    result = np.ones(3)
    refs = [weakref.ref(fn), weakref.ref(x), weakref.ref(result)]
    call(lambda a, fn=fn: fn(a), [x], "float32")
    call(lambda a, result=result: result, [x], "float64")
    with pytest.raises(ZeroDivisionError):
        call(lambda a, fn=fn: 1 / 0, [x], "float64")
    del fn, x, result
    gc.collect()
    pyop.debug.collect()
    assert [ref() for ref in refs] == [None] * 3
