"""Variables that a loop binds to a list that an iteration has made: ``row = new``."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import pyop

from .compare import same

X = np.random.default_rng(0).uniform(size=60)
DATA = [X, X[:30] * 0.9, -X, X + 1, X]


def common(x):
    a, b = (x * 4).astype(int), (x[::-1] * 4).astype(int)
    before = [0] * (len(b) + 1)
    for i in range(len(a)):
        now = [0] * (len(b) + 1)
        for j in range(len(b)):
            if a[i] == b[j]:
                now[j + 1] = before[j] + 1
            else:
                now[j + 1] = max(now[j], before[j + 1])
        before = now
    return before[len(b)], before


def pascal(x):
    row, total = [1], 0
    for i in range(1, 30):
        new = [1]
        for j in range(1, i):
            new.append((row[j - 1] + row[j]) % 10_007 if x[i % len(x)] > 0.2 else 1)
        new.append(1)
        total += len(row)
        row = new
    return row, total


def road(x):
    cars = [-1] * 20
    for k in range(0, 20, 3):
        cars[k] = 1
    for t in range(30):
        moved = [-1] * 20
        for k in range(20):
            if cars[k] >= 0:
                v = 1 if x[(t + k) % len(x)] > 0.5 else 0
                moved[(k + v) % 20] = v
        cars = moved
    return cars, np.array(cars)


def of_scalars(x):
    u = [x[0]] * 12
    for t in range(20):
        new = [x[t]] * 12
        for k in range(1, 11):
            new[k] = 0.5 * u[k] + 0.25 * (u[k - 1] + u[k + 1])
        u = new
    return u, np.array(u).sum()


def given_up_early(x):
    a, b = (x * 4).astype(int), (x[::-1] * 4).astype(int)
    before = list(range(len(b) + 1))
    for i in range(1, len(a) + 1):
        now = [i]
        for j in range(1, len(b) + 1):
            if a[i - 1] == b[j - 1]:
                now.append(before[j - 1])
            else:
                now.append(1 + min(before[j - 1], before[j], now[j - 1]))
        if min(now) > 30:
            return -1
        before = now
    return before[-1]


RECORDED = [common, pascal, road, of_scalars, given_up_early]


@pytest.mark.parametrize("f", RECORDED, ids=lambda f: f.__name__)
def test_one_plan_does_for_all_data(f):
    compiled = pyop.compile(f)
    with warnings.catch_warnings():
        warnings.simplefilter("error", pyop.RetraceWarning)
        for x in DATA:
            assert same(compiled(x), f(x))
    assert any(type(node.function).__name__ == "Loop" for node in compiled.plan_for(X).graph.nodes)


def both_are_read(x):
    row = [0] * 10
    for i in range(20):
        new = [i] * 10
        for k in range(10):
            new[k] += row[k] + (x[i] > 0.5)
        row = new
        row[i % 10] = 7
        new[(i + 1) % 10] += 1
    return row, new, row is new


def in_an_arm(x):
    row, count = [0] * 10, 0
    for i in range(20):
        new = [i] * 10
        for k in range(10):
            new[k] += row[9 - k]
        if x[i] > 0.5:
            row = new
            count += 1
    return row, count


def one_of_two(x):
    a, b = [1] * 10, [2] * 10
    for i in range(20):
        for k in range(10):
            a[k] += b[k] if x[i] > 0.3 else 1
        c = a
        a = b
        b = c
    return a, b


def kept_in_another(x):
    row, first = [0] * 10, None
    for i in range(20):
        new = [i] * 10
        for k in range(10):
            new[k] += row[k] % 5
        if i == 3:
            first = new
        row = new
    row.append(-1)
    return row, first


def read_behind_the_arm(x):
    row, total = [0] * 10, 0
    for i in range(20):
        new = [i] * 10
        for k in range(10):
            new[k] += row[9 - k]
        if x[i] > 0.5:
            row = new
        new[3] += 5
        total += row[3] + new[3]
    return row, total


def in_both_arms(x):
    row = [0] * 10
    for i in range(20):
        new, other = [i] * 10, [1] * 10
        for k in range(10):
            new[k] += row[9 - k]
            other[k] -= row[k]
        if x[i] > 0.5:
            row = new
            row[i % 10] += 3
        elif x[i] > 0.2:
            row = other
    return row


def of_another_kind(x):
    row = [0] * 10
    for i in range(20):
        new = [0.5] * 10
        for k in range(10):
            new[k] = row[k] + x[i]
        row = new
    return row


def longer_each_time(x):
    row = [1]
    for i in range(12):
        new = []
        for k in range(len(row)):
            new.append(row[k] + (x[i] > 0.5))
            new.append(row[k])
        if len(new) > 300:
            break
        row = new
    return row, len(row)


def same_list_again(x):
    row = [1] * 9
    keep = row
    for i in range(20):
        for k in range(9):
            row[k] += k if x[i] > 0.5 else 1
        row = keep
    return row, keep, row is keep


def none_at_all(x):
    row = [1] * 9
    old = row
    for _ in range(int(x[0] * 0)):
        new = [2] * 9
        for k in range(9):
            new[k] += row[k]
        row = new
    return row is old, row


OTHERS = [
    both_are_read,
    in_an_arm,
    read_behind_the_arm,
    in_both_arms,
    one_of_two,
    kept_in_another,
    of_another_kind,
    longer_each_time,
    same_list_again,
]


@pytest.mark.filterwarnings("ignore::pyop.RetraceWarning")
@pytest.mark.parametrize("f", [*OTHERS, none_at_all], ids=lambda f: f.__name__)
def test_all_else_is_pythons(f):
    compiled = pyop.compile(f)
    for x in DATA:
        assert same(compiled(x), f(x))
