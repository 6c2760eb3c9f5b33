"""Loops that write into arguments of a compiled function: the caller's arrays are as the loop leaves them."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import pyop
from pyop.loops import rolled


def recurrence(x, y):
    for i in range(1, len(x)):
        x[i] = x[i - 1] * 0.5 + i


def both(x, y):
    for _ in range(20):
        x[1:-1] = (y[:-2] + y[2:]) * 0.5
        y[1:-1] = x[1:-1] * 0.9
    return x.sum()


def by_a_view(x, y):
    v = x[2:]
    for _ in range(9):
        v *= 0.9
        y = y + v[0]
    return y


def swapped(x, y):
    for _ in range(11):
        x, y = y, x
        x += 1
    return x


def nested(x, y):
    for i in range(10):
        for j in range(10):
            x[i] += y[j] * 0.1


def explicit(x, y):
    x[0] = 5.0
    x += pyop.fori_loop(0, 9, lambda i, z: z * 0.5 + y[i], y * 1.0)
    x *= pyop.cond(y.sum() > 0, lambda: y + 1, lambda: y[:1] * y)


@pytest.mark.parametrize("options", [{}, {"optimize": False}, {"threads": 2}], ids=str)
@pytest.mark.parametrize("f", [recurrence, both, by_a_view, swapped, nested, explicit])
def test_arguments_and_results(f, options):
    compiled = pyop.compile(f, **options)
    for _ in range(2):
        plain, given = ([np.linspace(0, 1, 10), np.linspace(1, 2, 10)] for _ in range(2))
        wanted, found = f(*plain), compiled(*given)
        assert (wanted is None) == (found is None)
        assert wanted is None or np.asarray(found).tobytes() == np.asarray(wanted).tobytes()
        assert [x.tobytes() for x in given] == [x.tobytes() for x in plain]


def test_it_is_one_node(monkeypatch):
    made = []
    add = rolled.add_loop
    monkeypatch.setattr(rolled, "add_loop", lambda *args: made.append(1) or add(*args))
    pyop.compile(both)(np.ones(4), np.ones(4))
    assert made


@pytest.mark.parametrize("again", [copy.deepcopy, lambda plan: pickle.loads(pickle.dumps(plan))])
def test_plans_are_copied_with_their_loops(again):
    x, y = np.linspace(0.0, 1.0, 12), np.ones(12)
    wanted, mine = x.copy(), x.copy()
    recurrence(wanted, y)
    again(pyop.compile(recurrence).plan_for(x, y))(mine, y.copy())
    assert mine.tobytes() == wanted.tobytes()
