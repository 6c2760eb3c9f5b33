"""B26: steps of stencils, compiled, against numba's explicit loops of the same bits, and against NumPy.

Into an array that is an argument, into a copy that the function makes, and into the array that is read. With two
threads, against one.
"""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import pyop

from .harness import Harness, Row, Statement

LIMIT = 1.5
Array = np.ndarray[Any, Any]


def run(harness: Harness) -> list[Row]:
    """In two and three dimensions, float64 and float32."""
    # The bar of the command line has its own stderr, which might raise for all that a plan knows: it would not compute
    # where an argument lies (csrc/array/loop/error_policy.h).
    with contextlib.redirect_stderr(sys.__stderr__):
        rows = [_row(harness, *case) for case in _cases(harness.quick)]
        in_place = [_in_place(harness, n) for n in ((20,) if harness.quick else (150, 700))]
        return [*rows, *in_place, _small(harness), _threads(harness)]


def _cases(quick: bool) -> Iterator[tuple[str, Callable[..., Any], Callable[..., Any], tuple[Array, ...]]]:
    random = np.random.default_rng(26)
    for dtype in (np.float64, np.float32):
        for n in (20,) if quick else (150, 700):
            a = random.random((n, n)).astype(dtype)
            plane, loops = _plane(dtype(0.1), dtype(4))
            yield f"{dtype.__name__} {n}², into an argument", plane, loops, (a, np.zeros_like(a))
            yield f"{dtype.__name__} {n}², into a copy", _copied(plane), _copied(loops), (a,)
    n = 10 if quick else 60
    a = random.random((n, n, n))
    yield f"float64 {n}³, into an argument", *_space(), (a, np.zeros_like(a))


def _row(
    harness: Harness, what: str, f: Callable[..., Any], loops: Callable[..., Any], given: tuple[Array, ...]
) -> Row:
    budget = f"≤ {LIMIT}× numba's loops"
    names = {"f": f, "c": pyop.compile(f)} | {f"x{k}": x for k, x in enumerate(given)}
    call = f"({', '.join(f'x{k}' for k in range(len(given)))})"
    f(*given)
    want = given[-1].copy()
    names["c"](*given)
    assert (given[-1] == want).all()
    statements = {"NumPy": Statement(f"f{call}", names, 1), "pyop": Statement(f"c{call}", names, 1)}
    if not importlib.util.find_spec("numba"):
        found = harness.compare(statements)
        return Row("B26", what, budget, None, LIMIT, detail=f"needs numba; NumPy {found.ratio('NumPy', 'pyop'):.1f}×")
    names["n"] = _jitted(loops)
    statements["numba"] = Statement(f"n{call}", names, 1)
    names["n"](*given)
    assert (given[-1] == want).all()
    found = harness.compare(statements)
    detail = f"numba {found.ns('numba') / 1e3:.1f} µs; NumPy takes {found.ratio('NumPy', 'pyop'):.1f} times pyop's time"
    return Row("B26", what, budget, found.ratio("pyop", "numba"), LIMIT, detail=detail)


def _small(harness: Harness) -> Row:
    """What is around the loops: an array of which they take a few nanoseconds."""
    step, _ = _plane(0.1, 4.0)
    a = np.random.default_rng(26).random((10, 10))
    names = {"f": step, "c": pyop.compile(step), "a": a, "out": np.zeros_like(a)}
    names["c"](a, names["out"])
    found = harness.compare({"NumPy": Statement("f(a, out)", names, 1), "pyop": Statement("c(a, out)", names, 1)})
    detail = f"{found.ns('pyop') / 1e3:.2f} µs, NumPy {found.ns('NumPy') / 1e3:.1f} µs"
    what = "float64 10², into an argument, over NumPy"
    return Row("B26", what, "≤ 1×", found.ratio("pyop", "NumPy"), 1.0, detail=detail)


def _in_place(harness: Harness, n: int) -> Row:
    step, loops = _plane(0.1, 4.0)
    what, budget = f"float64 {n}², in place", f"≤ {LIMIT}× numba's loops, which keep a copy"
    a = np.random.default_rng(26).random((n, n))
    work = a.copy()
    once = pyop.compile(lambda u: step(u, u))
    given, want = a.copy(), a.copy()
    once(given)
    step(want, want)
    assert (given == want).all()
    names = {"f": step, "c": once, "x": a.copy(), "y": a.copy(), "w": work}
    statements = {"NumPy": Statement("f(x, x)", names, 1), "pyop": Statement("c(y)", names, 1)}
    if not importlib.util.find_spec("numba"):
        found = harness.compare(statements)
        return Row("B26", what, budget, None, LIMIT, detail=f"needs numba; NumPy {found.ratio('NumPy', 'pyop'):.1f}×")
    names |= {"n": _jitted_in_place(loops), "z": a.copy()}
    names["n"](names["z"], work)
    assert (names["z"] == want).all()
    statements["numba"] = Statement("n(z, w)", names, 1)
    found = harness.compare(statements)
    detail = f"numba {found.ns('numba') / 1e3:.1f} µs; NumPy takes {found.ratio('NumPy', 'pyop'):.1f} times pyop's time"
    return Row("B26", what, budget, found.ratio("pyop", "numba"), LIMIT, detail=detail)


def _jitted_in_place(loops: Callable[..., Any]) -> Callable[..., Any]:
    import numba

    step = numba.njit(loops)

    def in_place(u: Array, work: Array) -> None:
        step(u, work)
        u[1:-1, 1:-1] = work[1:-1, 1:-1]

    return numba.njit(in_place)  # type: ignore[no-any-return]


def _threads(harness: Harness) -> Row:
    limit = 0.7
    n = 40 if harness.quick else 700
    step, _ = _plane(0.1, 4.0)
    a = np.random.default_rng(26).random((n, n))
    names = {"one": pyop.compile(step), "two": pyop.compile(step, threads=2), "a": a, "out": np.zeros_like(a)}
    statements = {which: Statement(f"{which}(a, out)", names, 1) for which in ("one", "two")}
    found = harness.compare(statements, clock=time.perf_counter_ns)
    detail = f"one thread {found.ns('one') / 1e3:.1f} µs"
    return Row(
        "B26",
        f"float64 {n}², into an argument, two threads",
        f"≤ {limit}× one",
        found.ratio("two", "one"),
        limit,
        detail=detail,
    )


def _jitted(loops: Callable[..., Any]) -> Callable[..., Any]:
    import numba

    step = getattr(loops, "step", None)
    if step is None:
        return numba.njit(loops)  # type: ignore[no-any-return]
    return numba.njit(_copied_loops(numba.njit(step)))  # type: ignore[no-any-return]


def _copied(step: Callable[..., Any]) -> Callable[[Array], Array]:
    def copied(a: Array) -> Array:
        out = a.copy()
        step(a, out)
        return out

    copied.step = step  # type: ignore[attr-defined]
    return copied


def _copied_loops(step: Callable[..., Any]) -> Callable[[Array], Array]:
    def copied(a: Array) -> Array:
        out = a.copy()
        step(a, out)
        return out

    return copied


def _plane(q: Any, four: Any) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def step(a: Array, out: Array) -> None:
        inner = a[1:-1, 1:-1]
        out[1:-1, 1:-1] = inner + q * (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] - four * inner)

    def loops(a: Array, out: Array) -> None:
        for i in range(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                out[i, j] = a[i, j] + q * (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1] - four * a[i, j])

    return step, loops


def _space() -> tuple[Callable[..., Any], Callable[..., Any]]:
    def step(a: Array, out: Array) -> None:
        inner = a[1:-1, 1:-1, 1:-1]
        around = a[:-2, 1:-1, 1:-1] + a[2:, 1:-1, 1:-1] + a[1:-1, :-2, 1:-1] + a[1:-1, 2:, 1:-1]
        out[1:-1, 1:-1, 1:-1] = inner + 0.1 * (around + a[1:-1, 1:-1, :-2] + a[1:-1, 1:-1, 2:] - 6.0 * inner)

    def loops(a: Array, out: Array) -> None:
        for i in range(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                for k in range(1, a.shape[2] - 1):
                    around = a[i - 1, j, k] + a[i + 1, j, k] + a[i, j - 1, k] + a[i, j + 1, k]
                    around = around + a[i, j, k - 1] + a[i, j, k + 1]
                    out[i, j, k] = a[i, j, k] + 0.1 * (around - 6.0 * a[i, j, k])

    return step, loops
