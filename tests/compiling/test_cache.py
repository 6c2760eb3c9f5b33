"""The cache of plans: its bound, its warning, threads and lifetime."""

from __future__ import annotations

import gc
import sys
import threading
import warnings
import weakref
from typing import Any

import numpy as np
import pytest

import pyop

from .helpers import named, outcome


def test_the_cache_is_bounded_and_forgets_what_was_not_used():
    traced = []
    compiled = pyop.compile(lambda x: traced.append(x.shape[0]) or x + 1, max_plans=2)
    for n in (1, 2, 1, 3, 1, 2):
        compiled(np.ones(n))
    assert traced == [1, 2, 3, 2]
    assert compiled.cache_info() == (2, 4, 2, 2)
    compiled.clear_cache()
    assert compiled.cache_info() == (0, 0, 0, 2)


@pytest.mark.parametrize("max_plans", [3, 16])
def test_shapes_in_turn_find_their_plan_while_what_was_captured_changes(max_plans):
    scale = np.ones(1)
    compiled = pyop.compile(lambda x: x * scale, max_plans=max_plans)
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pyop.RetraceWarning)
        for step in range(400):
            x = rng.random(rng.integers(1, 7)).astype(rng.choice(["f4", "f8"]))
            if step % 50 == 0:
                scale = np.full(1, float(step))
            if step % 90 == 0:
                compiled.clear_cache()
            want = x * scale
            got = compiled(x)
            assert got.dtype == want.dtype
            assert got.tobytes() == want.tobytes()


def warned(compiled: Any, calls: Any) -> str:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for args, kwargs in calls:
            compiled(*args, **kwargs)
    assert caught[0].category is pyop.RetraceWarning
    assert len(caught) == 1
    assert caught[0].filename == __file__
    return str(caught[0].message)


def test_retracing_is_told_with_its_cause():
    x = np.ones(2)
    text = warned(pyop.compile(named(lambda x, y: x + 1)), [((np.ones((n, 3)), x), {}) for n in range(1, 15)])
    assert "f was traced 12 times in 12 calls" in text
    assert "argument 'x' came in 12 shapes (float64[1,3], float64[2,3], float64[3,3], ...)" in text
    assert "pyop.compile(f, 'float64[n,3]')" in text
    assert "'y'" not in text
    text = warned(pyop.compile(lambda x, *, k: x), [((x,), {"k": k}) for k in range(14)])
    assert "static argument 'k' had 12 values (0, 1, 2, ...)" in text
    text = warned(pyop.compile(lambda x, t: x if t > 0 else -x), [((x, t), {}) for t in range(14)])
    assert "needs argument 't', a Python number, while it is traced" in text
    assert "that had 9 values in 9 calls (0, 1, 2, ...)" in text
    assert "static=('t',)" in text
    text = warned(pyop.compile(lambda x: x, max_plans=1), [((np.ones(n % 2),), {}) for n in range(14)])
    assert "came in 2 shapes" in text


@pytest.mark.filterwarnings("ignore:.*was traced:pyop.RetraceWarning")
def test_calls_that_are_all_different_are_not_traced_and_those_that_come_again_are():
    runs = []

    def f(x):
        runs.append(1)
        return np.sqrt(x) * 2

    compiled = pyop.compile(f)
    for n in range(1, 300):
        x = np.arange(float(n))
        assert compiled(x).tobytes() == (np.sqrt(x) * 2).tobytes()
    assert compiled.cache_info().misses < 16
    x, before = np.arange(7.5), None
    for k in range(600):
        assert compiled(x).tobytes() == (np.sqrt(x) * 2).tobytes()
        before = len(runs) if k == 500 else before
    assert len(runs) == before  # there is a plan
    assert compiled.plan_for(np.ones(999))(np.ones(999))[0] == 2
    assert compiled(np.ones(1001), out=(out := np.empty(1001))) is out
    large = np.ones(60_000)
    compiled(large)
    runs.clear()
    compiled(large)
    assert not runs


@pytest.mark.filterwarnings("ignore:.*was traced:pyop.RetraceWarning")
def test_what_changes_in_every_call_is_traced_ever_less():
    scale = np.ones(1)
    compiled = pyop.compile(lambda x: x * scale)
    for step in range(400):
        scale = np.full(1, float(step))
        assert compiled(np.ones(3))[1] == step
    assert compiled.cache_info().misses < 24


@pytest.mark.filterwarnings("ignore:.*was traced:pyop.RetraceWarning")
def test_loops_are_traced_however_often():
    def f(x):
        for k in range(1, len(x)):
            x[k] += x[k - 1]
        return x

    compiled = pyop.compile(f)
    for n in range(10, 60):
        assert compiled(np.ones(n))[-1] == n
    assert compiled.cache_info().misses == 50


def test_many_plans_that_are_used_are_no_reason_to_warn():
    compiled = pyop.compile(lambda x: x + 1)
    for n in range(30):
        for _ in range(40):
            compiled(np.ones(n))


# --- threads and lifetime


def test_threads_may_trace_and_call_at_once():
    compiled = pyop.compile(lambda x, k: x * k + 1.0, max_plans=4)
    wrong, ready = [], threading.Barrier(4)

    def work(seed):
        ready.wait()
        for i in range(300):
            n = (seed + i) % 6
            if not np.array_equal(compiled(np.ones(n), float(i)), np.ones(n) * i + 1.0):
                wrong.append(n)
            if i % 50 == 0:
                compiled.clear_cache()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pyop.RetraceWarning)
        threads = [threading.Thread(target=work, args=(s,)) for s in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not wrong


def test_comparing_may_run_code_that_clears_the_cache():
    class Key:
        def __init__(self, n):
            self.n = n

        def __hash__(self):
            return 0

        def __eq__(self, other):
            compiled.clear_cache()
            gc.collect()
            return isinstance(other, Key) and self.n == other.n

    compiled = pyop.compile(lambda x, *, key: x * key.n)
    for n in (1, 2, 3, 1, 2, 3):
        assert compiled(np.ones(1), key=Key(n)) == n

    class Bad(Key):
        __hash__ = Key.__hash__

        def __eq__(self, other):
            raise ArithmeticError

    compiled = pyop.compile(lambda x, *, key: x)
    compiled(np.ones(1), key=Bad(1))
    with pytest.raises(ArithmeticError):
        compiled(np.ones(1), key=Bad(1))


def test_a_function_that_calls_itself_compiled_at_run_time():
    halve = pyop.op(lambda x: f(x - 1.0) if x > 0 else x, "float64[] -> float64[]", stateful=True)
    f = pyop.compile(lambda x: halve(x))
    assert f(np.array(20.0)) == 0.0


def test_cycles_are_collected():
    def build():
        def f(x):
            return op(x) + table

        table = np.ones(2)
        op = pyop.op(lambda x: x * len([compiled]), "float64[n] -> float64[n]")
        compiled = pyop.compile(f)
        compiled(np.ones(2))
        compiled.me = compiled
        return weakref.ref(f), weakref.ref(compiled), weakref.ref(compiled.plan_for(np.ones(2)))

    gc.collect()
    gc.disable()
    try:
        refs = build()
        assert all(ref() is not None for ref in refs)
        gc.collect()
        assert [ref() for ref in refs] == [None] * 3
    finally:
        gc.enable()


def test_calls_leave_no_references():
    x, d = np.ones(2), {"a": np.ones(3), "b": 1.5}
    compiled = pyop.compile(lambda x, d, *, k: (x + d["b"], d["a"], k))
    key = ("k", 1.5)
    calls = [
        lambda: compiled(x, d, k=key),
        lambda: compiled(x, d, k=("k", 1.5)[:]),
        lambda: outcome(compiled, x, object(), k=key),
    ]
    for call in calls:
        for _ in range(3):
            call()
        before = [sys.getrefcount(o) for o in (x, d, d["a"], d["b"], key, compiled)]
        for _ in range(50):
            call()
        after = [sys.getrefcount(o) for o in (x, d, d["a"], d["b"], key, compiled)]
        assert all(b <= a + 1 for a, b in zip(before, after, strict=True))
