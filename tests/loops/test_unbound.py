"""Variables that are first bound within a recorded loop, or within a loop in it."""
# ruff: noqa: F821, F841  # variables that are not bound are what is tested

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import pyop

from .compare import same

X = np.random.default_rng(0).uniform(size=60)
DATA = [X, X[:30] * 0.9, -X, X]


def within_a_loop(x):
    total = 0.0
    for i in range(len(x)):
        for j in range(9):
            y = x[i] * j
        total += y
    return total, y


def left_early(x):
    steps = 0
    for i in range(len(x)):
        for _ in range(30):
            for j in range(9):
                last = x[i] * j + steps
            steps += 1
            if last + steps > 5:
                break
        steps += last > 3
    return steps, last


def of_the_iteration_before(x):
    total = 0.0
    for i in range(len(x)):
        if i > 0:
            total += before
        for j in range(9):
            before = x[i] + j
    return total


def read_before_it_is_bound(x):
    total = 0.0
    for i in range(len(x)):
        for j in range(9):
            if x[i] > 2 or j > 0:
                total += y
            y = x[i] * j
    return total, y


def never_bound(x):
    total = 0.0
    for i in range(len(x)):
        for _ in range(int(x[0] < -9)):
            y = x[i]
        total += y
    return total


def in_one_arm(x):
    total = 0.0
    for i in range(len(x)):
        if x[i] > 0.5:
            y = x[i]
        if x[i] > 0.6:
            total += y
    return total


def perhaps_behind(x):
    for i in range(len(x)):
        for _ in range(9):
            y = x[i] * 2
        if y > 1.5:
            z = i
            break
    return y, z


ALL = [within_a_loop, left_early, of_the_iteration_before, read_before_it_is_bound, never_bound, in_one_arm]


@pytest.mark.filterwarnings("ignore::pyop.RetraceWarning")
@pytest.mark.parametrize("f", [*ALL, perhaps_behind], ids=lambda f: f.__name__)
def test_they_are_what_python_binds(f):
    compiled: Any = pyop.compile(f)
    for x in DATA:
        assert same(_outcome(compiled, x), _outcome(f, x))


@pytest.mark.parametrize("f", [within_a_loop, left_early], ids=lambda f: f.__name__)
def test_loops_that_bind_them_are_recorded(f):
    compiled = pyop.compile(f)
    with warnings.catch_warnings():
        warnings.simplefilter("error", pyop.RetraceWarning)
        for x in DATA:
            assert same(compiled(x), f(x))
    assert any(type(node.function).__name__ == "Loop" for node in compiled.plan_for(X).graph.nodes)


def _outcome(f: Any, x: Any) -> Any:
    try:
        return f(x)
    except UnboundLocalError as error:
        return str(error).replace("'", "")
