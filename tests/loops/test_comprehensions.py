"""Comprehensions beside recorded loops: they read what the loop carries, which they share with the function."""

# ruff: noqa: F821  # a variable that is not bound is what is tested
from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import pyop

from .compare import same

X = np.random.default_rng(0).uniform(size=60)
DATA = [X, X[:30] * 0.9, -X, X]


def smoothed(x, m=6):
    level = float(np.mean(x[:m]))
    season = [float(x[i]) - level for i in range(m)]
    for i in range(m, len(x)):
        s = season[i % m]
        before = level
        level = 0.3 * (x[i] - s) + 0.7 * level
        season[i % m] = 0.1 * (x[i] - before) + 0.9 * s
    return level, season, [level + v for v in x[:3]], sum(v * level for v in x[:3])


def of_all_kinds(x):
    scale, n, names = 2.0, 0, ["a", "b"]
    table = dict.fromkeys(names, scale)
    firsts = {k * n for k in range(3)}
    pairs = [(i, j, scale) for i in range(2) for j in range(i + 1) if i + j >= n]
    for k in range(len(x)):
        if x[k] > 0.5:
            scale = scale + x[k]
            n += 1
    return scale, n, table, sorted(firsts), pairs, max(k * scale for k in range(3))


def of_a_name_of_its_own(x):
    k, total = 3, 0.0
    numbers = [k + 1 for k in range(k)]
    for k in range(len(x)):
        total += x[k] * len(numbers)
    return total, [k + i for i in range(2)], numbers


def later(x):
    scale = 1.0
    lazily = (v * scale for v in (1, 2))
    calls = [lambda: scale for _ in range(2)]
    for k in range(len(x)):
        scale = scale + x[k]
    return list(lazily), calls[0]()


def unbound(x):
    for k in range(3):
        values = [late for _ in range(k - 5)]
    late = 0.0
    for k in range(len(x)):
        late = late + x[k]
    return late, values


def deleted(x):
    scale, other = 2.0, 1
    del other
    total = 0.0
    for k in range(len(x)):
        scale = scale * 0.5 + x[k]
        total += scale
    try:
        return [other for _ in range(2)]
    except NameError as error:
        return str(error), [scale for _ in range(2)], total


def by_eval(x):
    level = 1.0
    found = [eval("1 + 1") for _ in range(2)]
    for k in range(len(x)):
        level = level + x[k]
    return level, found


ALL = [smoothed, of_all_kinds, of_a_name_of_its_own, later, unbound, deleted, by_eval]


@pytest.mark.filterwarnings("ignore::pyop.RetraceWarning")
@pytest.mark.parametrize("f", ALL, ids=lambda f: f.__name__)
def test_they_are_what_python_makes(f):
    compiled: Any = pyop.compile(f)
    for x in DATA:
        assert same(compiled(x), f(x))


@pytest.mark.parametrize("f", [smoothed, of_all_kinds], ids=lambda f: f.__name__)
def test_loops_beside_them_are_recorded(f):
    compiled = pyop.compile(f)
    with warnings.catch_warnings():
        warnings.simplefilter("error", pyop.RetraceWarning)
        for x in DATA:
            compiled(x)
    assert any(type(node.function).__name__ == "Loop" for node in compiled.plan_for(X).graph.nodes)
