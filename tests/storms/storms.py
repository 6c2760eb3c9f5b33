"""The storms: what each thread does once, again and again. It raises where something is wrong."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import pyop
from pyop import autograd

THREADS = 6

Work = Callable[[], None]
STORMS: dict[str, Callable[[], list[Work]]] = {}
"""By name, what makes the objects and gives each thread its work."""


def _storm(name: str) -> Callable[[Callable[[], list[Work]]], Callable[[], list[Work]]]:
    return lambda make: STORMS.setdefault(name, make)


def blow(name: str, seconds: float) -> int:
    """Run a storm; how many times a thread has done its work. Raises what the first thread raised that failed."""
    works = STORMS[name]()
    start, end = threading.Barrier(len(works)), time.monotonic() + seconds
    counts, errors = [0] * len(works), []

    def thread(k: int) -> None:
        start.wait()
        try:
            while time.monotonic() < end and not errors:
                works[k]()
                counts[k] += 1
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=thread, args=(k,)) for k in range(len(works))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if errors:
        raise errors[0]
    return sum(counts)


def _same(got: Any, want: np.ndarray[Any, Any]) -> None:
    if np.asarray(got).tobytes() != want.tobytes():
        raise AssertionError(f"{np.asarray(got).ravel()[:4]} … is not {want.ravel()[:4]} …")


def _arrays(size: int = 9) -> list[np.ndarray[Any, Any]]:
    return [np.linspace(0.1, k + 1, size) for k in range(THREADS)]


@pyop.op("float64[n] -> float64[n]")
def _half(x: Any) -> Any:
    return x / 2


@pyop.op("float64[n], float64[n] -> float64[n]")
def _add(x: Any, y: Any) -> Any:
    return _half(x) + y


def _formula(x: Any) -> Any:
    y = x * 2.0 + 1.0
    y[1:] -= x[:-1] * 0.5
    if y[0] > 2.5:
        y = np.sqrt(y)
    return y / (1.0 + np.abs(y).sum())


@_storm("one op, one array")
def _one_array() -> list[Work]:
    x = np.linspace(0, 1, 9)
    want = x / 2 + x
    return [lambda: _same(_add(x, x), want)] * THREADS


@_storm("one op, own arrays")
def _own_arrays() -> list[Work]:
    return [lambda x=x, want=x / 2 + x: _same(_add(x, x), want) for x in _arrays()]


@_storm("one compiled function")
def _compiled() -> list[Work]:
    compiled = pyop.compile(_formula)

    def work(k: int) -> None:
        for size in (3, 9, 200):
            x = np.linspace(0.1, k + 1, size)
            _same(compiled(x), _formula(x))

    return [partial(work, k) for k in range(THREADS)]


@_storm("clear_cache beside calls")
def _cleared() -> list[Work]:
    compiled = pyop.compile(_formula)

    def clear() -> None:
        time.sleep(0.002)
        compiled.clear_cache()

    def call(x: Any) -> None:
        _same(compiled(x), _formula(x))

    return [clear, *[partial(call, x) for x in _arrays()[1:]]]


@_storm("plans with threads")
def _plans() -> list[Work]:
    def wide(x: Any) -> Any:
        return np.stack([np.sin(_half(x + k)) * k for k in range(8)]).sum(axis=0)

    plan = pyop.trace(wide, "float64[n]").compile(threads=3)
    wanted = [(x, wide(x)) for x in _arrays()]
    return [lambda x=x, want=want: _same(plan(x), want) for x, want in wanted]


class _Square(autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * np.asarray(x) * np.asarray(g)


@_storm("one Tensor and its graph")
def _tensors() -> list[Work]:
    x = autograd.Tensor(np.linspace(0.1, 1, 9), requires_grad=True)
    y = _Square.apply(_Square.apply(x))
    want = 2 * (x.numpy() * x.numpy()) * np.ones(9)
    want = 2 * x.numpy() * want

    def work() -> None:
        (g,) = autograd.grad(y, [x], [np.ones(9)], retain_graph=True)
        _same(g.numpy(), want)

    return [work] * THREADS


@_storm("a profile beside calls")
def _profiled() -> list[Work]:
    def profiled() -> None:
        with pyop.profile(events=500) as p:
            time.sleep(0.002)
        if any(row.calls < 1 for row in p.rows):
            raise AssertionError("a row without calls")

    return [profiled, *_own_arrays()[1:]]


@_storm("several builders of one graph")
def _builders() -> list[Work]:
    g = pyop.Graph()
    x = g.input("float64[n]", name="x")

    def work(k: int) -> None:
        y = x + float(k)
        with g:
            z = _half(y)
        _same(g.run(z, {x: np.full(3, 1.0)}), np.full(3, (1.0 + k) / 2))

    return [partial(work, k) for k in range(THREADS)]


@_storm("parts of many sizes")
def _parts() -> list[Work]:
    median = pyop.compile(lambda x: np.median(x) + 1.0, max_plans=8)
    sizes = iter(range(1, 10**9))

    def work() -> None:
        x = np.arange(next(sizes) % 5_000 + 1.0)
        _same(median(x), np.asarray(np.median(x) + 1.0))

    return [work] * THREADS


@_storm("first calls of one function")
def _first_calls() -> list[Work]:
    compiled = [pyop.compile(_formula)]

    def renew() -> None:
        if (misses := compiled[0].cache_info().misses) > 1:
            raise AssertionError(f"{misses} traces of one function")
        compiled[0] = pyop.compile(lambda x: _formula(x))

    turn = threading.Barrier(THREADS, action=renew)
    x = np.linspace(0.1, 1, 9)
    want = _formula(x)

    def work() -> None:
        with contextlib.suppress(threading.BrokenBarrierError):  # as it is when the time is over
            turn.wait(timeout=10)
        _same(compiled[0](x), want)

    return [work] * THREADS


_factor = 2.0


@_storm("a global that changes beside calls")
def _global() -> list[Work]:
    compiled = pyop.compile(lambda x: x * _factor)
    x = np.linspace(0.1, 1, 9)
    right = {(x * f).tobytes() for f in (2.0, 3.0)}

    def change() -> None:
        global _factor
        time.sleep(0.003)
        _factor = 5.0 - _factor

    def call() -> None:
        if np.asarray(compiled(x)).tobytes() not in right:
            raise AssertionError("a result of neither global")

    return [change, *[call] * (THREADS - 1)]


@_storm("paths of one function")
def _paths() -> list[Work]:
    def branches(x: Any) -> Any:
        if x[0] > 0.5:
            return x * 2.0
        return x + 1.0 if x[1] > 0.5 else x - 1.0

    compiled = pyop.compile(branches)
    given = [np.array([a, b, 1.0]) for a in (0.1, 0.9) for b in (0.2, 0.8)]

    def work(k: int) -> None:
        for x in given[k % 2 :]:
            _same(compiled(x), branches(x))

    return [partial(work, k) for k in range(THREADS)]


@_storm("gradients of one function")
def _gradients() -> list[Work]:
    slope = pyop.grad(lambda x: (x * x * 3.0).sum())
    return [lambda x=x: _same(slope(x), 6.0 * x) for x in _arrays()]


@_storm("a leaf of many graphs")
def _leaf() -> list[Work]:
    x = autograd.Tensor(np.linspace(0.1, 1, 9), requires_grad=True)
    want = 2 * x.numpy()

    def work() -> None:
        y = _Square.apply(x) + x * 0.0
        (g,) = autograd.grad(y, [x], [np.ones(9)])
        _same(g.numpy(), want)

    return [work] * THREADS


@_storm("views of one Value")
def _views() -> list[Work]:
    g = pyop.Graph()
    x = g.input("float64[n]", name="x")
    base = x + 1.0

    def work(k: int) -> None:
        part = base[k : k + 2] * 2.0
        _same(g.run(part, {x: np.arange(9.0)}), (np.arange(9.0)[k : k + 2] + 1.0) * 2.0)

    return [partial(work, k) for k in range(THREADS)]


@_storm("many graphs, many functions")
def _everything() -> list[Work]:
    def work(k: int) -> None:
        x = np.linspace(0.1, k + 1, 5)
        want = _formula(x)
        _same(pyop.compile(lambda a: _formula(a))(x), want)
        with contextlib.suppress(TypeError):
            _half(x.astype(np.int16))
        _same(pyop.trace(lambda a: _half(a) * 3.0, "float64[n]").compile()(x), x / 2 * 3.0)

    return [partial(work, k) for k in range(THREADS)]
