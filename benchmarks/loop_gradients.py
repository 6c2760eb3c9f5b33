"""B45: gradients of loops that write, over the same loops compiled, and the memory that they hold more at once."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import pyop

from .harness import Harness, Row, Statement

LIMIT = 3.0
Array = np.ndarray[Any, Any]


def run(harness: Harness) -> list[Row]:
    """Five programs, and the geometric mean."""
    rows = [_row(harness, *case) for case in _cases(harness.quick)]
    mean = math.exp(sum(math.log(row.value or 1.0) for row in rows) / len(rows))
    return [*rows, Row("B45", "geometric mean", f"≤ {LIMIT:.0f}× the forward", mean, LIMIT)]


def _row(harness: Harness, what: str, f: Callable[..., Any], given: tuple[Array, ...], argnums: tuple[int, ...]) -> Row:
    forward, gradient = pyop.compile(f), pyop.compile(pyop.grad(f, argnums))
    names = {"f": forward, "g": gradient} | {f"x{k}": x for k, x in enumerate(given)}
    call = f"({', '.join(f'x{k}' for k in range(len(given)))})"
    _check(f, given, argnums, gradient(*given))
    found = harness.compare({"f": Statement(f"f{call}", names, 1), "g": Statement(f"g{call}", names, 1)}, warm=3)
    peaks = [_peak(lambda c=c: c(*given)) for c in (forward, gradient)]
    detail = f"forward {found.ns('f') / 1e3:.1f} µs; memory {peaks[0] / 1024:.0f} and {peaks[1] / 1024:.0f} KiB"
    return Row("B45", what, f"≤ {LIMIT:.0f}× the forward", found.ratio("g", "f"), LIMIT, detail=detail)


def _check(f: Callable[..., Any], given: tuple[Array, ...], argnums: tuple[int, ...], found: Any) -> None:
    """Hold a gradient against a complex step in a random direction."""
    random = np.random.default_rng(45)
    step = 1e-30
    moved = [np.asarray(x, complex) for x in given]
    slope = 0.0
    for k, part in zip(argnums, found, strict=True):
        direction = random.standard_normal(np.shape(given[k]))
        moved[k] = moved[k] + 1j * step * direction
        slope += float(np.sum(direction * part))
    want = f(*moved).imag / step
    assert np.isclose(slope, want, rtol=1e-9), (slope, want)


def _peak(call: Callable[[], Any]) -> int:
    call()
    tracemalloc.start()
    call()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def _cases(quick: bool) -> Iterator[tuple[str, Callable[..., Any], tuple[Array, ...], tuple[int, ...]]]:
    random = np.random.default_rng(45)
    n, times = (20, 10) if quick else (1000, 100)
    yield f"heat equation {n}×{times} in place", _heat(times), (random.random(n),), (0,)
    n = 8 if quick else 40
    a = random.random((n, n))
    yield f"Cholesky by rows {n}²", _cholesky, (a @ a.T + n * np.eye(n),), (0,)
    n, times = (8, 3) if quick else (30, 10)
    yield f"Seidel {n}²×{times}", _seidel(times), (random.random((n, n)),), (0,)
    n, times = (8, 5) if quick else (32, 100)
    w = random.standard_normal((n, n)) / np.sqrt(n)
    yield f"RNN {n}×{times}", _rnn, (w, random.standard_normal((times, n)), random.standard_normal(n)), (0, 2)
    steps = 20 if quick else 500
    yield f"RK4 of 3 variables, {steps} steps", _runge_kutta(steps), (np.array([1.0, 0.9, 1.1]),), (0,)


def _heat(times: int) -> Callable[[Array], Any]:
    def heat(u: Array) -> Any:
        u = u.copy()
        for _ in range(times):
            u[1:-1] = u[1:-1] + 0.1 * (u[:-2] - 2.0 * u[1:-1] + u[2:])
        return np.sum(u * u)

    return heat


def _cholesky(a: Array) -> Any:
    n = a.shape[0]
    a = a.copy()
    for i in range(n):
        for j in range(i):
            a[i, j] -= np.dot(a[i, :j], a[j, :j])
            a[i, j] /= a[j, j]
        a[i, i] -= np.dot(a[i, :i], a[i, :i])
        a[i, i] = np.sqrt(a[i, i])
    return np.sum(np.log(np.diag(a)))


def _seidel(times: int) -> Callable[[Array], Any]:
    def seidel(a: Array) -> Any:
        n = a.shape[0]
        a = a.copy()
        for _ in range(times):
            for i in range(1, n - 1):
                for j in range(1, n - 1):
                    a[i, j] = (
                        a[i - 1, j - 1] + a[i - 1, j] + a[i - 1, j + 1] + a[i, j - 1] + a[i, j]
                        + a[i, j + 1] + a[i + 1, j - 1] + a[i + 1, j] + a[i + 1, j + 1]
                    ) / 9.0  # fmt: skip
        return np.sum(a * a)

    return seidel


def _rnn(w: Array, xs: Array, h: Array) -> Any:
    for t in range(xs.shape[0]):
        h = np.tanh(w @ h + xs[t])
    return np.sum(h * h)


def _runge_kutta(steps: int) -> Callable[[Array], Any]:
    def slope(y: Array) -> Array:
        return np.array([10.0 * (y[1] - y[0]), y[0] * (28.0 - y[2]) - y[1], y[0] * y[1] - 8.0 / 3.0 * y[2]])

    def solve(y: Array) -> Any:
        h = 0.001
        for _ in range(steps):
            k1 = slope(y)
            k2 = slope(y + 0.5 * h * k1)
            k3 = slope(y + 0.5 * h * k2)
            k4 = slope(y + h * k3)
            y = y + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        return np.sum(y * y)

    return solve
