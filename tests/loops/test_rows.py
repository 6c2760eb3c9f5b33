"""Lists of tuples and of lists that a loop appends to; and ints of the caller that a loop counts on."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import pyop

from .compare import same

X = np.random.default_rng(0).uniform(size=60)
DATA = [X, X[:30] * 0.9, -X, X + 1, X]


def events(x):
    found, t = [], 0.0
    for k in range(len(x)):
        t += x[k]
        if x[k] > 0.5:
            found.append((t, k, x[k] > 0.7, float(x[k])))
    return np.array(found), np.array(found, dtype=np.float64), found


def ints_and_truths(x):
    found = []
    for k in range(len(x)):
        if x[k] > 0.5:
            found.append((k > 30, k, k * k))
    return np.array(found), np.asarray(found).sum()


def samples(x):
    kept, mu, best = [], x[0], []
    for k in range(len(x)):
        if x[k] > 0.3:
            mu = mu + x[k]
        if k >= 20:
            kept.append([mu, x[k]])
        best.append([k, k // 2])
    return np.mean(kept, axis=0), len(kept), best, kept


def small_dtypes(x):
    found, y = [], x.astype(np.float32)
    for k in range(len(x)):
        found.append((y[k], k))
    return np.array(found), found


def turned_round(x):
    rows = []
    for k in range(len(x)):
        rows.append([k, x[k]])
    rows.reverse()
    return rows


def of_what_may_be_pythons(x):
    kept, mu = [], 0.0
    for k in range(len(x)):
        if x[k] > 0.3:
            mu = mu + x[k]
        kept.append([mu, k])
    return np.mean(kept, axis=0)


@pytest.mark.parametrize(
    "f",
    [of_what_may_be_pythons, events, ints_and_truths, samples, small_dtypes, turned_round],
    ids=lambda f: f.__name__,
)
def test_one_plan_does_for_all_data(f):
    compiled = pyop.compile(f)
    with warnings.catch_warnings():
        warnings.simplefilter("error", pyop.RetraceWarning)
        for x in DATA:
            assert same(_plainly(compiled, x), _plainly(f, x))
    assert any(type(node.function).__name__ == "Loop" for node in compiled.plan_for(X).graph.nodes)


def _plainly(f: Any, x: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the mean of none
        return f(x)


def held_elsewhere(x):
    rows, row = [], [0.0, 1.0]
    for k in range(len(x)):
        rows.append(row)
        row[0] = x[k]
    return rows


def changed_later(x):
    rows = []
    for k in range(len(x)):
        rows.append([k, x[k]])
        rows[-1][1] = 3.0
        rows[k // 2][0] += 1
    return rows


def one_list_again(x):
    rows, total = [[1, 2]], 0
    for k in range(len(x)):
        rows.append([k, 1])
        first, second = rows[k // 3]
        total += first * second
        rows[0][1] += 1
    return total, rows


def of_several_lengths(x):
    rows = []
    for k in range(len(x)):
        if x[k] > 0.5:
            rows.append([k])
        else:
            rows.append([k, k])
    return rows


def none_of_ints_replaced(x):
    totals = [0] * 4
    for k in range(len(x)):
        if x[k] > 0.99:
            totals[k % 4] += x[k]
    return np.array(totals), totals


@pytest.mark.filterwarnings("ignore::pyop.RetraceWarning")
@pytest.mark.parametrize(
    "f",
    [held_elsewhere, changed_later, one_list_again, of_several_lengths, none_of_ints_replaced],
    ids=lambda f: f.__name__,
)
def test_all_else_is_pythons(f):
    compiled = pyop.compile(f)
    for x in DATA:
        found, wanted = compiled(x), f(x)
        assert same(found, wanted)
        if f is held_elsewhere:
            assert all(row is found[0] for row in found)


def counted(x, count, pair=(2, 3)):
    a, b = pair
    for k in range(len(x)):
        if x[k] > 0.5:
            count, a = count + 1, a + b
        else:
            b = b - 1
    return count, a, b, count // 3, count / 3, count + 0.5


@pytest.mark.filterwarnings("ignore::pyop.RetraceWarning")
def test_ints_of_the_caller_are_counted_on():
    compiled: Any = pyop.compile(counted)
    numbers = [0, -7, 5, True, 1 << 53, (1 << 53) + 1, (1 << 62) + 3, (1 << 63) - 5, -(1 << 63), 1 << 70, 2.0, 5, 6]
    for count in numbers:
        for pair in ((2, 3), (0, 1 << 61)):
            assert same(compiled(X, count, pair), counted(X, count, pair))
