"""Plans on several threads, and several threads on plans."""

from __future__ import annotations

import contextvars
import gc
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import pyop


@pyop.op("float64[n] -> float64[n]")
def double(x):
    return x * 2


def declared(f: Any, **options: Any) -> pyop.Op:
    return pyop.op(f, "float64[n] -> float64[n]", **options)


def wide(x: Any, rows: int = 24) -> Any:
    """Sixteen branches of different lengths that meet again, with Python and NumPy nodes."""
    branches = []
    for k in range(16):
        y = x + k
        for _ in range(k % 5):
            y = np.sin(double(y))
        branches.append(y)
    return np.sum(np.stack(branches), axis=0), branches[3], branches[-1]


def test_two_blocking_functions_overlap() -> None:
    meet = threading.Barrier(2, timeout=20)
    op = declared(lambda x: meet.wait() * 0 + x)
    plan = pyop.trace(lambda x: op(x) + op(x + 1), "float64[n]").compile(threads=2)
    for _ in range(20):
        assert plan(np.ones(2)).tolist() == [3, 3]


def test_more_threads_than_idle_helpers_meet() -> None:
    meet = threading.Barrier(20, timeout=30)
    op = declared(lambda x: meet.wait() * 0 + x)
    plan = pyop.trace(lambda x: [op(x + k) for k in range(20)], "float64[n]").compile(threads=20)
    for _ in range(3):
        assert [float(y[0]) for y in plan(np.zeros(1))] == list(range(20))


def test_nested_runs_overlap_too() -> None:
    meet = threading.Barrier(4, timeout=20)
    leaf = declared(lambda x: meet.wait() * 0 + x)
    inner = pyop.trace(lambda x: leaf(x) + leaf(x + 1), "float64[n]").compile(threads=2)
    outer = pyop.trace(lambda x: (declared(inner)(x), declared(inner)(x + 1)), "float64[n]").compile(threads=2)
    for _ in range(5):
        assert [y.tolist() for y in outer(np.ones(1))] == [[3], [5]]


def test_a_wide_graph_gives_equal_results_every_time() -> None:
    graph = pyop.trace(wide, "float64[n]")
    x = np.linspace(-1, 1, 33)
    want = wide(x)
    plan = graph.compile(threads=8)
    for _ in range(200):
        for got, expected in zip(plan(x), want, strict=True):
            assert got.tobytes() == expected.tobytes()


def test_stateful_nodes_keep_their_order() -> None:
    log: list[int] = []

    def note(k: int) -> pyop.Op:
        def body(x):
            time.sleep(0.0005 * (k % 3))
            log.append(k)
            return x * 1

        return declared(body, stateful=True)

    plan = pyop.trace(lambda x: [note(k)(double(x + k)) for k in range(12)], "float64[n]").compile(threads=6)
    for _ in range(5):
        log.clear()
        plan(np.ones(1))
        assert log == list(range(12))


@pytest.mark.parametrize("where", range(4))
def test_errors_leave_the_plan_usable(where: int) -> None:
    state = {"fail": True}
    ran: list[int] = []
    alive: list[weakref.ref] = []

    def branch(k: int) -> pyop.Op:
        def body(x):
            ran.append(k)
            time.sleep(0.001)
            if state["fail"] and k == where:
                raise LookupError(k)
            made = x + k
            alive.append(weakref.ref(made))
            return made

        return declared(body)

    plan = pyop.trace(lambda x: [double(branch(k)(x)) for k in range(4)], "float64[n]").compile(threads=3)
    for _ in range(5):
        state["fail"] = True
        with pytest.raises(LookupError) as raised:
            plan(np.ones(1))
        assert raised.value.args == (where,)
        assert len(raised.value.__notes__) == 1
        frames = [entry.name for entry in raised.traceback]
        assert frames[-1] == "body"  # with the traceback of the helper
        state["fail"] = False
        assert [float(y[0]) for y in plan(np.ones(1))] == [2, 4, 6, 8]
    del raised
    gc.collect()
    assert all(ref() is None for ref in alive)


def test_every_branch_fails() -> None:
    def fail(x):
        time.sleep(0.001)
        raise LookupError(float(x[0]))

    plan = pyop.trace(lambda x: [declared(fail)(x + k) for k in range(6)], "float64[n]").compile(threads=6)
    for _ in range(10):
        with pytest.raises(LookupError) as raised:
            plan(np.zeros(1))
        assert raised.value.args[0] in range(6)
        assert len(raised.value.__notes__) == 1


def test_many_callers_of_one_plan() -> None:
    graph = pyop.trace(wide, "float64[n]")
    plans = [graph.compile(), graph.compile(threads=2), graph.compile(threads=4)]
    inputs = [np.full(n + 1, 0.1 * n) for n in range(8)]
    want = [wide(x) for x in inputs]

    def work(k: int) -> None:
        for repeat in range(12):
            n = (k + repeat) % len(inputs)
            for got, expected in zip(plans[k % 3](inputs[n]), want[n], strict=True):
                assert got.tobytes() == expected.tobytes()

    with ThreadPoolExecutor(9) as pool:
        for done in [pool.submit(work, k) for k in range(9)]:
            done.result(timeout=60)


def test_many_threads_run_and_build_one_graph() -> None:
    calls: list[int] = []
    g = pyop.Graph()
    x = g.input("float64[n]", name="x")
    with g:
        k = declared(lambda a: calls.append(1) or a)(g.constant([2.0]))

    def work(j: int) -> None:
        for i in range(30):
            y = (x + float(j)) * k
            assert g.run(y, {x: np.full(1, float(i))}, threads=1 + j % 3) == (i + j) * 2
            with g:
                assert isinstance(double(np.ones(1)), pyop.Value)
            assert isinstance(double(np.ones(1)), np.ndarray)

    with ThreadPoolExecutor(6) as pool:
        for done in [pool.submit(work, j) for j in range(6)]:
            done.result(timeout=60)
    assert len({node.name for node in g.nodes}) == len(g)
    assert len(calls) <= 6  # two may fold the same at the same time; nobody does afterwards


def test_a_graph_is_built_on_the_thread_that_says_so() -> None:
    with pyop.Graph():
        with ThreadPoolExecutor(1) as pool:
            assert type(pool.submit(double, np.ones(1)).result(timeout=20)) is np.ndarray
        assert isinstance(double(np.ones(1)), pyop.Value)


def test_helpers_see_the_callers_context() -> None:
    level = contextvars.ContextVar("level", default=0)
    meet = threading.Barrier(3, timeout=20)

    def look(x):
        meet.wait()
        seen = level.get()
        level.set(99)  # stays in this function's copy, or with the caller
        with np.errstate(**np.geterr()):
            bad = float(np.divide(np.ones(1), np.zeros(1))[0])
        return x * 0 + (seen if bad == np.inf else -1)

    plan = pyop.trace(
        lambda x: [declared(look)(x), declared(lambda v: look(v))(x), declared(lambda v: 1 * look(v))(x)], "float64[n]"
    ).compile(threads=3)
    for k in (5, 6):
        level.set(k)
        with np.errstate(divide="ignore"):
            assert [float(y[0]) for y in plan(np.ones(1))] == [k, k, k]
    meet = threading.Barrier(3, timeout=20)
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
        plan(np.ones(1))


def test_native_nodes_on_helpers_see_errstate() -> None:
    plan = pyop.trace(lambda x: [1.0 / (x - k) for k in range(8)], "float64[n]").compile(threads=4)
    with np.errstate(divide="ignore"):
        assert np.isinf([float(y[0]) for y in plan(np.full(1, 3.0))]).sum() == 1
    for _ in range(10):
        with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
            plan(np.full(1, 3.0))


def test_helpers_are_ordinary_threads_and_few_stay() -> None:
    names: set[str] = set()
    meet = threading.Barrier(12, timeout=30)

    def look(x):
        meet.wait()
        names.add(threading.current_thread().name)
        return x

    plan = pyop.trace(lambda x: [declared(look)(x + k) for k in range(12)], "float64[n]").compile(threads=12)
    for _ in range(4):
        plan(np.ones(1))
    assert names == {"pyop-helper", threading.current_thread().name}
    deadline = time.monotonic() + 10
    while (n := sum(t.name == "pyop-helper" for t in threading.enumerate())) > 8 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert n <= 8


@pytest.mark.parametrize("pause", [0.0, 0.05])
def test_a_helper_whose_start_is_interrupted_does_not_stay(monkeypatch: pytest.MonkeyPatch, pause: float) -> None:
    started: list[threading.Thread] = []
    start = threading.Thread.start

    def interrupted(self: threading.Thread) -> None:
        start(self)
        started.append(self)
        time.sleep(pause)
        raise KeyboardInterrupt

    # More than the spare helpers of other tests can do, so that one is started.
    nap = declared(lambda v: time.sleep(0.02) or v)
    plan = pyop.trace(lambda x: [nap(x + k) for k in range(12)], "float64[n]").compile(threads=12)
    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        plan(np.ones(1))
    monkeypatch.undo()
    assert started
    for thread in started:
        thread.join(timeout=10)
        assert not thread.is_alive()
    np.testing.assert_array_equal(plan(np.ones(1))[3], [4.0])


def test_when_no_thread_can_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Any) -> None:
        raise RuntimeError("can't start new thread")

    plan = pyop.trace(lambda x: [double(x + k) for k in range(16)], "float64[n]").compile(threads=16)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert [float(y[0]) for y in plan(np.zeros(1))] == [2.0 * k for k in range(16)]

    def interrupt(self: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupt)
    sleepy = pyop.trace(lambda x: [declared(lambda v: time.sleep(0.01) or v)(x + k) for k in range(16)], "float64[n]")
    with pytest.raises(KeyboardInterrupt):
        sleepy.compile(threads=16)(np.zeros(1))
    monkeypatch.undo()
    assert len(sleepy.compile(threads=16)(np.zeros(1))) == 16
