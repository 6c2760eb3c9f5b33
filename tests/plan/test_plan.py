"""Compiled graphs: how they are called, what their errors say, re-entry, and what they keep in memory."""

from __future__ import annotations

import functools
import gc
import sys
import tracemalloc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyop


@pyop.op("float64[n] -> float64[n]")
def double(x):
    return x * 2


def fail(x: Any) -> Any:
    raise LookupError("mine")


def line_of(function: Callable[..., Any], offset: int) -> str:
    code = function.__code__
    return f"{code.co_filename}:{code.co_firstlineno + offset}"


@pytest.fixture
def plan() -> pyop.Plan:
    return pyop.trace(lambda x, y, out=None: (double(x), np.add(x, y)), "float64[n]", "float64[n]", name="p").compile()


# --- the call


def test_positions_and_names(plan: pyop.Plan) -> None:
    a, b = np.arange(3.0), np.ones(3)
    for got in (plan(a, b), plan(a, y=b), plan(y=b, x=a), plan([0, 1.0, 2], (1.0, 1.0, 1.0))):
        assert type(got) is tuple
        assert [r.tolist() for r in got] == [[0, 2, 4], [1, 2, 3]]
    assert plan.input_names == ("x", "y")
    assert repr(plan) == "<pyop.Plan of 2 instructions, inputs x, y, 1 thread>"


@pytest.mark.parametrize(
    ("args", "kwargs", "error", "words"),
    [
        (1, {}, TypeError, "input 'y' of the plan is missing; it has inputs x, y"),
        (3, {}, TypeError, r"takes 2 arrays \(inputs x, y\), but got 3"),
        (2, {"x": 1}, TypeError, "input 'x' of the plan is given twice"),
        (2, {"z": 1}, TypeError, "no input 'z'; it has inputs x, y"),
        (0, {"y": 1}, TypeError, "input 'x' of the plan is missing"),
        (2, {"out": np.ones(3)}, pyop.InputError, "one array for each of the plan's 2 outputs, but holds 3"),
        (
            2,
            {"out": (None, np.ones(4))},
            pyop.InputError,
            r"output 1 .* writable ndarray float64\[3\], but is float64\[4\]",
        ),
        (2, {"out": (None, np.ones(3, "f4"))}, pyop.InputError, r"writable ndarray float64\[3\], but is float32\[3\]"),
        (2, {"out": (None, np.broadcast_to(1.0, 3))}, pyop.InputError, r"\(read-only\)"),
        (2, {"out": 3}, TypeError, "iterable|out="),
        (2, {"out": (None, [1, 2, 3])}, pyop.InputError, "writable"),
    ],
)
def test_wrong_calls(plan: pyop.Plan, args: int, kwargs: dict, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        plan(*[np.ones(3)] * args, **kwargs)
    assert plan(np.ones(3), np.ones(3))[1].tolist() == [2, 2, 2]


def test_out(plan: pyop.Plan) -> None:
    a, b, target = np.arange(3.0), np.ones(3), np.empty(6)[::2]
    got = plan(a, b, out=(None, target))
    assert got[1] is target
    assert target.tolist() == [1, 2, 3]
    single = pyop.trace(double, "float64[n]").compile()
    assert single(a, out=target) is target
    assert single(a, out=(target,)) is target
    assert single(a, out=None).tolist() == [0, 2, 4]


def test_out_may_be_an_input(plan: pyop.Plan) -> None:
    a, b = np.arange(3.0), np.ones(3)
    plan(a, b, out=(a, b))
    assert (a.tolist(), b.tolist()) == ([0, 2, 4], [1, 2, 3])
    swap = pyop.trace(lambda x, y: (y, x), "float64[n]", "float64[n]").compile()
    swap(a, b, out=(a, b))
    assert (a.tolist(), b.tolist()) == ([1, 2, 3], [0, 2, 4])


def test_an_input_called_out() -> None:
    g = pyop.Graph()
    g.output(g.input("float64[]", name="out") + 1)
    assert g.compile()(out=2.0) == 3


def test_no_outputs_and_no_inputs() -> None:
    g = pyop.Graph()
    with pytest.raises(pyop.GraphError, match=r"declare outputs with g\.output"):
        g.compile()
    seen = []
    with g:
        pyop.py_func(lambda: seen.append(1), [], [])
    assert g.compile()() is None
    assert seen == [1]
    with pytest.raises(pyop.GraphError, match="has outputs already"):
        for _ in range(2):
            g.output(())
    assert g.compile()() == ()
    for threads in (0, -1, 10**6):
        with pytest.raises(ValueError, match="threads must be between 1 and 1024"):
            g.compile(threads=threads)


# --- errors


def noted(function: Callable[[], Any], kind: type[BaseException] = LookupError) -> str:
    with pytest.raises(kind) as raised:
        function()
    assert type(raised.value) is kind
    (note,) = raised.value.__notes__
    return note


@pytest.mark.parametrize("options", [{}, {"optimize": False}, {"threads": 2}])
def test_an_exception_of_a_function_names_the_node_and_the_users_line(options: dict) -> None:
    op = pyop.op(fail, "float64[n] -> float64[n]")

    def build(x):
        y = double(x)
        return op(
            y,
        )

    note = noted(lambda: pyop.trace(build, "float64[n]").compile(**options)(np.ones(3)))
    assert f"node 'fail' (created at {line_of(build, 2)})" in note
    assert "float64[3]" in note


def test_the_line_is_the_users_through_every_front_door() -> None:
    @functools.lru_cache
    def by_py_func(x):
        return pyop.py_func(fail, [x], np.float64)

    @pyop.numpy_function(Tout=np.float64)
    def decorated(x):
        return fail(x)

    def by_decorator(x):
        return decorated(x)

    def by_numpy(x):
        return np.apply_along_axis(fail, 0, x)

    def by_ufunc(x):
        return np.add(x, x)[7] if False else np.frompyfunc(fail, 1, 1)(x)

    def by_contrib(x):
        return pyop.contrib.py_func(fail, args=(x,), output_types=np.float64)

    cases = [(by_py_func.__wrapped__, 2), (by_decorator, 1), (by_numpy, 1), (by_ufunc, 1), (by_contrib, 1)]
    for build, offset in cases:
        graph = pyop.trace(build, "float64[n]")
        note = noted(lambda graph=graph: graph.compile()(np.ones(3)))
        assert f"(created at {line_of(build, offset)})" in note, build
        assert graph.nodes[-1].origin == line_of(build, offset)


def test_a_wrong_result_names_node_and_line() -> None:
    def build(x):
        return pyop.op(lambda v: v[:1], "float64[n] -> float64[n]", name="cut")(double(x))

    for options in ({}, {"threads": 2}):
        with pytest.raises(
            pyop.OutputError, match=r"by cut is float64\[1\], but expects float64\[n\]\n.* \(n = 3\)"
        ) as raised:
            pyop.trace(build, "float64[n]").compile(**options)(np.ones(3))
        assert line_of(build, 1) in str(raised.value)


def test_a_source_file_with_a_name_that_is_no_text() -> None:
    space = {"pyop": pyop, "fail": fail, "np": np}
    code = compile(
        "def b(x):\n  return pyop.op(fail, 'float64[n] -> float64[n]')(x)\n"
        "def c(x):\n  return np.apply_along_axis(fail, 0, x)\n"
        "def d(x, y):\n  return pyop.py_func(fail, [x, y], 'float64[3]') + x\n",
        "\udcff.py",
        "exec",
    )
    exec(code, space)
    for name in "bc":
        assert "node" in noted(lambda name=name: pyop.trace(space[name], "float64[n]").compile()(np.ones(3)))
    other = pyop.Graph().input("float64[3]")
    with pytest.raises(pyop.GraphError):
        pyop.trace(lambda x: space["d"](x, other), "float64[3]")
    with pytest.raises(pyop.InputError):
        pyop.trace(space["b"], "float32[n]")


def test_errors_leave_the_plan_usable() -> None:
    kept: list[Any] = []

    def picky(x):
        if x[0] < 0:
            kept.append(weakref.ref(x.base if x.base is not None else x))
            raise LookupError(x)
        return x * 1

    plan = pyop.trace(lambda x: double(pyop.op(picky, "float64[n] -> float64[n]")(double(x))), "float64[n]").compile()
    for _ in range(3):
        noted(lambda: plan(-np.ones(2)))
        assert plan(np.ones(2)).tolist() == [4, 4]
    gc.collect()  # the exceptions, by way of their tracebacks
    assert all(ref() is None for ref in kept)
    assert len(kept) == 3


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_is_no_ordinary_exception_passes_through(kind: type[BaseException]) -> None:
    def stop(x):
        raise kind("stop")

    for threads in (1, 2):
        plan = pyop.trace(lambda x: [pyop.op(stop, "float64[n] -> float64[n]")(x), double(x)], "float64[n]").compile(
            threads
        )
        with pytest.raises(kind, match="stop") as raised:
            plan(np.ones(2))
        assert not hasattr(raised.value, "__notes__")


# --- memory


@pytest.mark.parametrize("threads", [1, 2])
def test_values_are_released_at_their_last_use(threads: int) -> None:
    alive: list[int] = []
    refs: list[weakref.ref] = []

    def step(a):
        alive.append(sum(ref() is not None for ref in refs))
        made = a + 1
        refs.append(weakref.ref(made))
        return made

    op = pyop.op(step, "float64[n] -> float64[n]", stateful=True)

    def chain(x):
        for _ in range(60):
            x = op(x)
        return x

    plan = pyop.trace(chain, "float64[n]").compile(threads)
    tracemalloc.start()
    try:
        out = plan(np.zeros(131_072))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert out[0] == 60
    assert max(alive) <= 2
    assert peak < 5 * 2**20
    assert plan.report()["slots"] <= 3 or threads > 1
    before = sys.getrefcount(out)
    del plan
    assert sys.getrefcount(out) == before
