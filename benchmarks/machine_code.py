"""B43: loops over single elements: Python, the interpreter of tapes, machine code, and numba where it is installed.

Each program is as one writes it for Python; numba gets the same source. All results are compared bit for bit first
(numba's only to a few last places: it promises no bits).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import pyop

from .harness import Harness, Row, Statement

Function = Callable[..., Any]


def edit_distance(a, b):
    n, m = len(a), len(b)
    d = np.zeros((n + 1, m + 1))
    for i in range(n + 1):
        d[i, 0] = i
    for j in range(m + 1):
        d[0, j] = j
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            c = 0.0 if a[i - 1] == b[j - 1] else 1.0
            d[i, j] = min(d[i - 1, j] + 1.0, d[i, j - 1] + 1.0, d[i - 1, j - 1] + c)
    return d[n, m]


def floyd_warshall(d):
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                s = d[i, k] + d[k, j]
                if s < d[i, j]:
                    d[i, j] = s
    return d


def cholesky(a):
    n = a.shape[0]
    low = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            s = a[i, j]
            for k in range(j):
                s -= low[i, k] * low[j, k]
            if i == j:
                low[i, j] = np.sqrt(s)
            else:
                low[i, j] = s / low[j, j]
    return low


def smith_waterman(a, b):
    n, m = len(a), len(b)
    h = np.zeros((n + 1, m + 1))
    best = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            s = 3.0 if a[i - 1] == b[j - 1] else -3.0
            score = max(0.0, h[i - 1, j - 1] + s, h[i - 1, j] - 2.0, h[i, j - 1] - 2.0)
            h[i, j] = score
            if score > best:
                best = score
    return best


def crc(data, table):
    value = 0xFFFFFFFF
    for k in range(len(data)):
        value = table[(value ^ data[k]) & 0xFF] ^ (value >> 8)
    return value ^ 0xFFFFFFFF


def mandelbrot(xs, ys, limit):
    counts = np.zeros((len(ys), len(xs)), dtype=np.int64)
    for i in range(len(ys)):
        for j in range(len(xs)):
            x = 0.0
            y = 0.0
            n = 0
            while n < limit and x * x + y * y <= 4.0:
                t = x * x - y * y + xs[j]
                y = 2.0 * x * y + ys[i]
                x = t
                n += 1
            counts[i, j] = n
    return counts


def _crc_table() -> np.ndarray:
    table = []
    for n in range(256):
        for _ in range(8):
            n = 0xEDB88320 ^ (n >> 1) if n & 1 else n >> 1
        table.append(n)
    return np.array(table)


def programs(quick: bool) -> dict[str, tuple[Function, tuple[Any, ...]]]:
    """Name to program and arguments."""
    rng = np.random.default_rng(0)
    n = 24 if quick else 60
    letters = 60 if quick else 200
    a, b = (rng.integers(0, 4, letters) for _ in range(2))
    square = rng.random((n, n))
    xs, ys = np.linspace(-2.0, 0.5, n), np.linspace(-1.2, 1.2, n)
    return {
        "edit distance": (edit_distance, (a, b)),
        "Floyd-Warshall": (floyd_warshall, (square,)),
        "Cholesky": (cholesky, (square @ square.T + n * np.eye(n),)),
        "Smith-Waterman": (smith_waterman, (a, b)),
        "CRC": (crc, (rng.integers(0, 256, 100 * letters), _crc_table())),
        "Mandelbrot": (mandelbrot, (xs, ys, 50)),
    }


def _numba(function: Function) -> Function | None:
    try:
        import numba
    except ImportError:
        return None
    compiled: Function = numba.njit(function)
    return compiled


def _ways(function: Function) -> dict[str, Function]:
    ways = {
        "python": function,
        "interpreter": pyop.compile(function, machine_code="off"),
        "machine code": pyop.compile(function, machine_code="now"),
    }
    if numba := _numba(function):
        ways["numba"] = numba
    return ways


def _first(f: Function, given: tuple[Any, ...]) -> tuple[float, Any]:
    given = tuple(x.copy() if isinstance(x, np.ndarray) else x for x in given)
    begin = time.perf_counter()
    result = f(*given)
    return time.perf_counter() - begin, result


def run(harness: Harness) -> list[Row]:
    """Ratios of one interleaved run; first calls, with what is compiled in them, in brackets."""
    rows = []
    for name, (function, given) in programs(harness.quick).items():
        ways = _ways(function)
        firsts = {}
        want = function(*(x.copy() if isinstance(x, np.ndarray) else x for x in given))
        for way, f in ways.items():
            firsts[way], result = _first(f, given)
            if way == "numba":
                np.testing.assert_allclose(result, want, rtol=1e-12)
            elif np.asarray(result).tobytes() != np.asarray(want).tobytes():
                raise AssertionError(f"{name}: {way} has other bits than Python")
            for _ in range(8):  # a plan whose trace took long is on trial in its first calls
                _first(f, given)
        found = harness.compare(
            {way: Statement("f(*given)", {"f": f, "given": given}, unroll=1) for way, f in ways.items()}
        )
        ms = ", ".join(f"{way} {found.ns(way) / 1e6:.3g} ms (first {firsts[way] * 1e3:.0f})" for way in ways)
        ratios = ", ".join(
            f"{way} takes {found.ratio(way, 'machine code'):.1f}×" for way in ways if way != "machine code"
        )
        ratio = found.ratio("machine code", "numba") if "numba" in ways else None
        rows.append(Row("B43", f"{name}, machine code over numba", "≤ 1.3×", ratio, 1.3, detail=f"{ratios}; {ms}"))
    return rows
