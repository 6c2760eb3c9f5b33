"""Loops with branches, dependent bounds and carried numbers: recorded once, and NumPy's to the bit."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import pyop
from pyop.loops import rolled

from .compare import equal


def triangular(x):
    a = np.outer(x, x) + np.eye(len(x))
    for i in range(len(x)):
        for j in range(i):
            s = 0.0
            for k in range(j):
                s += a[i, k] * a[j, k]
            a[i, j] = (a[i, j] - s) / a[j, j]
        a[i, i] += a[i, :i] @ a[i, :i]
    return a


def distance(x):
    n = len(x)
    table = np.zeros((n + 1, n + 1))
    table[0, :] = np.arange(n + 1)
    for i in range(1, n + 1):
        for j in range(1, n + 1):
            cost = 0 if x[i - 1] < x[j - 1] else 1
            table[i, j] = min(table[i - 1, j] + 1, table[i, j - 1] + 1, table[i - 1, j - 1] + cost)
    return table


def counts(x):
    count, last, up = 0, 0, False
    for i in range(len(x)):
        if x[i] > 0.4:
            count += 1
            last = i
            up = not up
        elif x[i] < 0.2:
            continue
        x[i] += count
    return count, last, up


def steps(x):
    t, k = 0.0, 3
    for i in range(9):
        x[i] += t * x[k]
        t += 0.25
        k -= 1 if i % 2 == 0 else 0
    return t, k


def items(x):
    y = np.zeros_like(x)
    total = 0.0
    for i, (a, b) in enumerate(zip(x, x[::-1], strict=True)):
        y[i] = a - b
    for v in x:
        total += v
    for i in reversed(range(9)):
        y[i] += y[i + 1]
    return y, total


def swapped(x):
    a, b = x.copy(), np.zeros_like(x)
    for _ in range(21):
        b[1:-1] = 0.5 * (a[:-2] + a[2:])
        a, b = b, a
    return a, b


def periodic(x):
    n = len(x)
    for i in range(3 * n):
        x[i % n] += x[(i + 1) % n] * 0.5
        if i != n and x[i % n] > 1.0:
            x[i % n] = 1.0


ROLLED = [triangular, distance, counts, steps, items, swapped, periodic]


def counter_bound_anew(x):
    for i in range(9):
        i += 1
        x[i] = i
    return i


def counter_of_two(x):
    for i in range(10):
        for i in range(3):
            x[i] += i
    return i


def weak_or_not(x):
    y = x.astype(np.float32)
    for i in range(9):
        s = 0.0
        for j in range(i):
            s += x[j]
        y = y * s
    return y


def kept(x):
    best = (0.0, 0)
    for i in range(10):
        if x[i] > best[0]:
            best = (x[i], i)
    return best


def grows_fast(x):
    k = 1
    for i in range(40):
        k = k * 7 + (1 if x[i % 10] > 0.5 else 2)
    return k % 1000003, x


def leaves(x):
    for i in range(10):
        if x[i] > 0.5:
            return i
        x[i] = 0.0
    return -1


AS_WRITTEN = [counter_bound_anew, counter_of_two, weak_or_not, kept, grows_fast, leaves]


@pytest.mark.filterwarnings("ignore::pyop.RetraceWarning")  # of a loop that decides in each iteration, as it is
@pytest.mark.parametrize("options", [{}, {"optimize": False}, {"threads": 2}], ids=str)
@pytest.mark.parametrize("f", [*ROLLED, *AS_WRITTEN])
def test_bits(f, options):
    compiled = pyop.compile(f, **options)
    for seed in range(3):
        plain, given = (np.random.default_rng(seed).uniform(size=10) for _ in range(2))
        wanted, found = f(plain), compiled(given)
        assert equal(found, wanted)
        assert given.tobytes() == plain.tobytes()


@pytest.mark.parametrize("f", ROLLED)
def test_the_graph_is_of_one_iteration(f, monkeypatch):
    unrolled = []
    give_up = rolled.Unroll.__init__
    monkeypatch.setattr(rolled.Unroll, "__init__", lambda self, keys: unrolled.append(keys) or give_up(self, keys))
    x = np.linspace(0.0, 1.0, 10)
    if f is swapped and sys.version_info >= (3, 14):
        pytest.skip(
            "a frame of CPython 3.14 holds what a variable was before it was put back: who else does is unknown"
        )
    compiled = pyop.compile(f)
    compiled(x.copy())
    loops = [node for node in compiled.plan_for(x.copy()).graph.nodes if type(node.function).__name__ == "Loop"]
    assert loops
    assert not unrolled


def test_what_one_way_would_not_compute_is_not_computed():
    def f(x):
        y = np.zeros_like(x)
        for i in range(12):
            if i < len(x):
                y[i] = x[i] * 2.0
            if x[i % 10] > 0.5:
                y[i % 10] = np.log(x[i % 10] - 0.5)
        return y

    x = np.linspace(0.0, 1.0, 10)
    assert equal(pyop.compile(f)(x), f(x))
