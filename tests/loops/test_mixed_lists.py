"""Lists of Python numbers some of which a loop replaces by scalars of NumPy: each item has its type."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest

import pyop

from .compare import same

X = np.random.default_rng(0).uniform(size=60)
DATA = [X, X[:30] * 0.9, np.concatenate([X, X * 0.1]), -X, X * 0.0, X]


def sums(x):
    totals, counts = [0.0] * 8, [0] * 8
    for v in x:
        b = int(abs(v) * 5)
        totals[b] += v
        counts[b] += 1
    return totals, counts


def sums_of_ints(x):
    totals = [0] * 12
    for k in range(len(x)):
        totals[int(abs(x[k]) * 9)] += x[k]
    return totals


def of_int64(x):
    marks = np.arange(len(x)) % 7
    last = [-1] * 9
    for k in range(len(x)):
        if x[k] > 0.3:
            last[marks[k] + 1] = marks[k] * 2 - last[k % 9]
    return last


def distances(x):
    w = np.abs(np.resize(x, (9, 9)))
    dist, done, before = [math.inf] * 9, [False] * 9, [-1] * 9
    dist[0] = 0.0
    for _ in range(9):
        best = -1
        for v in range(9):
            if not done[v] and (best < 0 or dist[v] < dist[best]):
                best = v
        if dist[best] == math.inf:
            break
        done[best] = True
        for v in range(9):
            if w[best, v] > 0.1 and dist[best] + w[best, v] < dist[v]:
                dist[v] = dist[best] + w[best, v]
                before[v] = best
    return dist, before


def one_to_another(x):
    a, b = [0.5] * 6, [1.5] * 6
    for k in range(len(x)):
        if x[k] > 0.5:
            a[k % 6] = x[k]
        b[k % 5] = a[(k + 1) % 6]
        a[k % 4] = -b[k % 3]
    return a, b, np.array(a), max(b)


def arithmetic_of_both(x):
    a, out = [2.0, 3.0, -0.0, 5.0], np.zeros(len(x))
    for k in range(len(x)):
        out[k] = a[k % 4] * 2 + a[(k + 1) % 4] ** 2 - abs(a[(k + 2) % 4])
        if x[k] > 0.6:
            a[k % 4] = x[k]
        elif x[k] < 0.2:
            a[k % 4] = a[(k + 1) % 4] + 1
        elif x[k] < 0.3:
            a[k % 4] = -0.0
    return a, out


def appended(x):
    a = [0.0]
    for k in range(1, len(x)):
        if x[k] > 0.5:
            a.append(x[k] + a[-1])
        else:
            a.append(float(x[k]))
    return a


def carried_on(x):
    a, best = [1.0] * 5, 0.0
    for k in range(len(x)):
        if x[k] > 0.7:
            a[k % 5] = x[k] * 3
        if a[k % 3] > best:
            best = a[k % 3]
    return a, best


RECORDED = [sums, sums_of_ints, of_int64, distances, one_to_another, arithmetic_of_both, appended]


@pytest.mark.parametrize("f", [*RECORDED, carried_on], ids=lambda f: f.__name__)
def test_each_item_has_its_type(f):
    compiled = pyop.compile(f)
    with warnings.catch_warnings():
        warnings.simplefilter("error" if f is not carried_on else "ignore", pyop.RetraceWarning)
        for x in DATA:
            assert same(compiled(x), f(x))
    assert any(type(node.function).__name__ == "Loop" for node in compiled.plan_for(X).graph.nodes)


def beside_float32(x):
    y, a = x.astype(np.float32), [0.1] * 4
    for k in range(len(x)):
        if x[k] > 0.5:
            a[k % 4] = x[k]
        y[k : k + 1] = y[k : k + 1] * a[(k + 1) % 4]
    return a, y, y[:3] * a[0]


def divided(x):
    a, out = [1.0, 0.0, 2.0], []
    for k in range(len(x)):
        if x[k] > 0.2:
            a[k % 3] = x[k] - x[k]
        out.append(1.0 / a[(k + 1) % 3] if k > 5 else 0.0)
    return out


def as_an_index(x):
    a, total = [0] * 4, 0.0
    for k in range(len(x)):
        total += x[a[k % 4]]
        if k > 40:
            a[k % 4] = x[k]
    return total


def whole_division(x):
    a = [7, 8, 9]
    for k in range(len(x)):
        a[k % 3] = a[(k + 1) % 3] // 2 + x[k]
    return a


def of_floats_and_ints(x):
    a = [0, 0.0, 0]
    for k in range(len(x)):
        a[k % 3] += x[k]
    return a


def asked_for_its_type(x):
    a, n = [0.0] * 4, 0
    for k in range(len(x)):
        if isinstance(a[k % 4], np.floating):
            n += 1
        if x[k] > 0.5:
            a[k % 4] = x[k]
    return a, n


def large_ints(x):
    marks, a = np.full(len(x), 1 << 61), [1 << 61] * 3
    for k in range(len(x)):
        if x[k] > 0.9:
            a[k % 3] = marks[k]
        if k > 50:
            a[k % 3] = a[k % 3] + a[(k + 1) % 3]
    return a


OTHERS = [beside_float32, divided, as_an_index, whole_division, of_floats_and_ints, asked_for_its_type]


@pytest.mark.filterwarnings("ignore::pyop.RetraceWarning")
@pytest.mark.parametrize("f", [*OTHERS, large_ints], ids=lambda f: f.__name__)
def test_where_it_matters_python_says(f):
    compiled: Any = pyop.compile(f)
    for x in DATA:
        assert same(_outcome(compiled, x), _outcome(f, x))


def _outcome(f: Any, x: Any) -> Any:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = f(x)
        except (IndexError, TypeError, ZeroDivisionError) as error:
            found = type(error).__name__
    return found, sorted({str(each.message) for each in caught if each.category is not pyop.RetraceWarning})
