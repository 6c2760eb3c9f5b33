"""Lists that loops take from the front, deques, and lists turned round: recorded, or left to the function itself."""

from __future__ import annotations

import math
import warnings
from collections import deque
from typing import Any

import numpy as np
import pytest

import pyop

from .compare import same

X = np.random.default_rng(0).uniform(size=60)
DATA = [X, X[:30] * 0.9, np.concatenate([X, X * 0.1]), X]


def moving_mean(x):
    window, means, total = [], [], 0.0
    for v in x:
        window.append(v)
        total += v
        if len(window) > 5:
            total -= window.pop(0)
        means.append(total / len(window))
    return np.array(means), len(window)


def flood(x):
    n = len(x) // 5
    grid = (x[: 5 * n].reshape(5, n) < 0.7).astype(int)
    queue, far = [(0, 0)], 0
    while queue:
        i, j = queue.pop(0)
        for a, b in ((i + 1, j), (i - 1, j), (i, j + 1), (i, j - 1)):
            if 0 <= a < 5 and 0 <= b < n and grid[a, b] == 1:
                grid[a, b] = 2
                queue.append((a, b))
        far = max(far, i + j)
    return grid, far


def flood_by_a_deque(x):
    seen, steps = np.zeros(len(x), int), 0
    queue = deque([0])
    while len(queue) > 0:
        k = queue.popleft()
        steps += 1
        for step in (3, 7):
            j = (k + step) % len(x)
            if seen[j] == 0 and x[j] < 0.9:
                seen[j] = seen[k] + 1
                queue.append(j)
    return seen, steps


def at_both_ends(x):
    line, out = deque(), np.zeros(len(x))
    for k in range(len(x)):
        if x[k] > 0.5:
            line.append(x[k])
        else:
            line.appendleft(x[k])
        if len(line) > 4:
            out[k] = line.pop() - line.popleft()
        out[k] += line[0] + line[-1] * 2 + len(line)
    return out, np.array(line)


def around_the_end(x):
    queue, total = deque([1, 2, 3]), 0
    for k in range(40_000):
        queue.append(k)
        total = (total * 31 + queue.popleft()) % 65_537
        if x[k % len(x)] > 0.9 and len(queue) > 2:
            total += queue.pop() + queue[1]
            queue.appendleft(total)
    return total, len(queue), queue[0], queue[-1]


def goes_round_its_array(x):
    queue, total, k = deque([1, 2, 3]), 0, 0
    while k < 40_000 or x[0] > 2:
        queue.append(k)
        if k % 3 or len(queue) > 5000:
            total = (total * 31 + queue.popleft()) % 65_537
        k += 1
    return total, len(queue), queue[0], queue[-1], np.array(queue)


def taken_behind_a_loop(x):
    queue = []
    for k in range(len(x)):
        if x[k] > 0.3:
            queue.append(k)
        if len(queue) > 10:
            queue.pop(0)
    a = queue.pop(0)
    queue.append(-5)
    for k in range(20):
        queue.append(queue.pop(0) + k)
    return a, queue, queue[::-1]


def in_an_inner_loop(x):
    group, sizes = [-1] * len(x), []
    for seed in range(len(x)):
        if group[seed] >= 0:
            continue
        queue, size = [seed], 0
        group[seed] = seed
        while len(queue) > 0:
            i = queue.pop(0)
            size += 1
            for j in range(len(x)):
                if group[j] < 0 and abs(x[i] - x[j]) < 0.01:
                    group[j] = seed
                    queue.append(j)
        sizes.append(size)
    return np.array(group), sizes, max(sizes), min(sizes)


def turned(x):
    found, pairs = [], []
    for k in range(len(x)):
        if x[k] > 0.5:
            found.append(k)
            pairs.append((x[k], k))
    found.reverse()
    return found, found[::-1], pairs[::-1], np.array(found[::-1])


def extremes(x):
    ints, floats, scalars = [3], [0.5], []
    for k in range(len(x)):
        ints.append(k * (x[k] > 0.4))
        floats.append(float(x[k]))
        scalars.append(x[k] if k % 7 else 1e-9)
    return len(ints), max(floats), min(floats), floats


def extremes_inside(x):
    out = np.zeros(len(x))
    last = [0] * 8
    for k in range(len(x)):
        last[k % 8] = int(x[k] * 50)
        out[k] = max(last) - min(last) + sum(last) / 100
    return out, last, max(last)


def row_by_row(x):
    total = 0
    for i in range(10):
        row = [i]
        for j in range(1, 9):
            row.append(1 + row[j - 1] if x[i] > x[j] else 1)
        total += max(row) * 10 + sum(row)
    return total


RECORDED = [
    moving_mean,
    flood,
    flood_by_a_deque,
    at_both_ends,
    around_the_end,
    goes_round_its_array,
    taken_behind_a_loop,
    in_an_inner_loop,
]
RECORDED += [taken_behind_a_loop, in_an_inner_loop, turned, extremes_inside, row_by_row]


@pytest.mark.parametrize("f", RECORDED, ids=lambda f: f.__name__)
def test_one_plan_does_for_all_data(f):
    compiled = pyop.compile(f)
    with warnings.catch_warnings():
        warnings.simplefilter("error", pyop.RetraceWarning)
        for x in DATA:
            assert same(compiled(x), f(x))
    assert any(type(node.function).__name__ == "Loop" for node in compiled.plan_for(X).graph.nodes)


def of_a_length(x):
    line = deque(maxlen=3)
    for v in x:
        line.append(v)
    return np.array(line)


def wrong_methods(x):
    items, line = [1, 2], deque([1, 2])
    for v in x:
        if v > 0.5:
            try:
                items.popleft()
            except AttributeError as error:
                items.append(len(str(error)))
        line.append(1)
    return items, len(line)


def held_twice(x):
    items = [1, 2, 3]
    other = items
    for _ in range(len(x)):
        items.append(items.pop(0))
    other.reverse()
    return items


def made_and_changed_in_an_arm(x):
    n = 0
    for v in x:
        line = deque()
        if v > 0.5:
            line.append(1)
        n += len(line)
    return n


def nan_among_them(x):
    items, out = [0.5] * 4, []
    for k in range(len(x)):
        items[k % 4] = float(x[k]) if k % 9 else math.nan
        out.append(max(items))
    return out, min(items)


def zeros_of_both_signs(x):
    items = [0.0] * 6
    for k in range(len(x)):
        items[k % 6] = -0.0 if x[k] > 0.5 else 0.0
    return max(items), min(items), items


def outgrows_its_array(x):
    queue, k = [1], 0
    while k < 30_000 or x[0] > 2:
        queue.append(k)
        queue.append(-k)
        if k % 2:
            queue.pop(0)
        k += 1
    return queue


def middle_removed(x):
    items = [1, 2, 3, 4]
    for k in range(len(x)):
        items.append(items.pop(1) + k)
    return items


OTHERS = [of_a_length, wrong_methods, held_twice, made_and_changed_in_an_arm, nan_among_them]
OTHERS += [zeros_of_both_signs, middle_removed, extremes, outgrows_its_array]


@pytest.mark.filterwarnings("ignore::pyop.RetraceWarning")
@pytest.mark.parametrize("f", OTHERS, ids=lambda f: f.__name__)
def test_all_else_is_pythons(f):
    compiled = pyop.compile(f)
    for x in DATA:
        assert same(compiled(x), f(x))


def popped_too_often(x):
    items = [1, 2]
    for v in x:
        if v > 0.5:
            items.pop(0)
    return len(items)


def deque_popped_too_often(x):
    line = deque([1, 2])
    for v in x:
        if v > 0.5:
            line.popleft()
    return len(line)


def least_of_none(x):
    total = 0
    for v in x:
        items = []
        for k in range(10):
            if v > 0.5 + k / 10:
                items.append(k)
        total += min(items)
    return total


@pytest.mark.filterwarnings("ignore::pyop.RetraceWarning")
@pytest.mark.parametrize("f", [popped_too_often, deque_popped_too_often, least_of_none], ids=lambda f: f.__name__)
def test_errors_are_pythons(f):
    compiled: Any = pyop.compile(f)
    for x in (X * 0.0, X, X * 0.0 + 0.6, X):
        assert same(_outcome(compiled, x), _outcome(f, x))


def _outcome(f: Any, x: Any) -> Any:
    try:
        return f(x)
    except (IndexError, ValueError) as error:
        return str(error)
