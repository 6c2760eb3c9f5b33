"""Lists that loops change: recorded as arrays with a length, or left to the function itself; never a wrong item."""

from __future__ import annotations

import heapq
import warnings
from typing import Any

import numpy as np
import pytest

import pyop

from .compare import same

X = np.random.default_rng(0).uniform(size=60)


def above(x):
    kept = []
    for i in range(len(x)):
        if x[i] > 0.5:
            kept.append(i)
    return kept


def as_an_array(x):
    kept = []
    for v in x:
        if v > 0.5:
            kept.append(v * 2)
    return np.array(kept), len(kept)


def peaks(x):
    found = []
    for i in range(1, len(x) - 1):
        if x[i] > x[i - 1] and x[i] > x[i + 1]:
            if found and i - found[-1] < 3:
                if x[i] > x[found[-1]]:
                    found[-1] = i
            else:
                found.append(i)
    return np.array(found, dtype=int)


def histogram(x):
    counts = [0] * 10
    for v in x:
        counts[int(v * 10)] += 1
    return counts


def by_small_ints(x):
    counts = [0] * 256
    for v in (x * 255).astype(np.uint8):
        counts[v] += 1
    return counts


def pairs(x):
    events = []
    for i, v in enumerate(x):
        if v > 0.5:
            events.append((i, float(v), v))
    return {"events": events, "n": len(events)}


def chained(x):
    ys = [0.0]
    for i in range(len(x)):
        ys.append(ys[-1] * 0.5 + float(x[i]))
    return ys


def of_another_kind_first(x):
    ys = [1]
    for v in x:
        if v > 0.5:
            ys.append(v)
    return ys, len(ys)


def stack(x):
    waiting = [0]
    seen = [False] * len(x)
    order = []
    while waiting:
        k = waiting.pop()
        if seen[k]:
            continue
        seen[k] = True
        order.append(k)
        for d in (1, 2):
            if k + d < len(x) and x[k + d] > 0.2:
                waiting.append(k + d)
    return order, seen


def within(x):
    last = []
    for i in range(len(x)):
        larger = []
        for j in range(i):
            if x[j] > x[i]:
                larger.append(j)
        last.append(larger[-1] if larger else -1)
    return last


def gone_through(x):
    kept = []
    for i in range(len(x)):
        if x[i] > 0.5:
            kept.append(i)
    total = 0.0
    for i in kept:
        total += x[i] * 0.5
    return total


def by_two_loops(x):
    kept = []
    for v in x:
        if v > 0.5:
            kept.append(v)
    for v in x:
        if v < 0.2:
            kept.append(v * 2)
    for i in range(len(kept)):
        kept[i] = kept[i] + 1.0
    return kept


def behind_the_loop(x):
    kept = []
    active = False
    for i in range(len(x)):
        if x[i] > 0.9:
            active = not active
            kept.append((i, float(x[i])))
    if active:
        kept.append((len(x), 0.5))
    return kept


def from_behind(x):
    counts = [5, 6, 7]
    total = 0
    for i in range(len(x)):
        k = int(x[i] * 6) - 3
        counts[k] += 1
        total += counts[-k - 1] if k < 0 else counts[k]
    return counts, total


def pairs_carried(x):
    path = [(0, 0.0)]
    for v in x:
        k, w = path[-1]
        if v > 0.5:
            path.append((k + 1, w + float(v)))
        else:
            path[-1] = (k, w * 0.5)
    return path


def told_by_texts(x):
    trades = []
    for i in range(len(x)):
        if x[i] > 0.8:
            trades.append((i, "sell", float(x[i])))
        elif x[i] < 0.2:
            trades.append((i, None, float(x[i])))
    return trades


def texts_that_are_digits(x):
    told = ["1", "2"]
    for v in x:
        told.append("1" if v > 0.5 else "3")
    return told


def read_in_the_same_iteration(x):
    kept = []
    total = 0.0
    for v in x:
        if v > 0.5:
            kept.append(v)
        else:
            kept.append(v * 2)
        total += kept[-1]
    return kept, total


def several_at_once(x):
    above, below = [], []
    for v in x:
        if v > 0.5:
            above.append(v)
        else:
            below.append(float(v))
    above = np.array(above)
    return above * 2, below


def clipped(x):
    keep = [True] * len(x)
    for times in range(10):  # noqa: B007
        total = x[0] * 0.0
        count = 0
        for i in range(len(x)):
            if keep[i]:
                total += x[i]
                count += 1
        mean = total / count
        changed = False
        for i in range(len(x)):
            if keep[i] and abs(x[i] - mean) > 0.3:
                keep[i] = False
                changed = True
        if not changed:
            break
    return mean, times, np.array(keep), sum(keep)


RECORDED = [by_small_ints, told_by_texts, texts_that_are_digits, read_in_the_same_iteration, several_at_once, clipped]
RECORDED += [above, as_an_array, peaks, histogram, pairs, chained, of_another_kind_first, stack, within, gone_through]
RECORDED += [by_two_loops, behind_the_loop, from_behind, pairs_carried]


def items_in_an_arm(x):
    total = 0.0
    for i in range(len(x)):
        box = [0.0, {"k": 1}]
        if x[i] > 0.5:
            box[0] = 1.0
            box[1]["k"] = 2
        total += box[0] * box[1]["k"]
    return total


def under_two_names(x):
    kept = []
    same = kept
    for v in x:
        if v > 0.5:
            kept.append(v)
    return kept, len(same), kept is same


def by_a_closure(x):
    kept = []

    def keep(v):
        kept.append(v)

    for v in x:
        if v > 0.5:
            keep(v)
    return kept


def in_an_object(x):
    class Box:
        pass

    box = Box()
    kept = box.kept = []
    for v in x:
        if v > 0.5:
            kept.append(float(v))
    return box.kept, kept


def a_heap(x):
    heap = []
    for v in x:
        if v > 0.5:
            heapq.heappush(heap, float(v))
        if len(heap) > 5:
            heap.pop()
    return heap


def of_two_kinds(x):
    kept = []
    for v in x:
        if v > 0.5:
            kept.append(float(v))
        elif v > 0.3:
            kept.append(v)
    return kept


def perhaps_a_float(x):
    kept = []
    top = 0.0
    for v in x:
        if v > 0.8:
            top = v
        kept.append(top)
    return kept


def arrays(x):
    kept = []
    for i in range(len(x)):
        if x[i] > 0.5:
            kept.append(x[i : i + 2] * 1.0)
    return kept


def made_anew(x):
    kept = []
    times = 0
    for v in x:
        kept.append(v)
        if len(kept) > 3:
            kept = []
            times += 1
    return kept, times


def beyond_an_int64(x):
    powers = [1]
    for _ in x:
        powers.append(powers[-1] * 3)
    return powers


def asked_for_all(x):
    kept = []
    for v in x:
        if v > 0.5:
            kept.append(v)
    return [v * 2 for v in kept], kept[1:3], sorted(kept)[:2], isinstance(kept, list)


def deleted_from(x):
    kept = [1, 2, 3]
    for v in x:
        if v > 0.9 and kept:
            del kept[0]
    return kept


def a_large_sum(x):
    counts = [1 << 61] * 4
    for i in range(len(x)):
        counts[i % 4] += 1
    return sum(counts)


def longer_than_expected(x):
    kept = []
    i = 0
    while len(kept) < 40_000 and x[i % 30] >= 0:
        kept.append(i)
        i += 1
    return len(kept), kept[-1]


def empty(x):
    kept = []
    for i in range(len(x)):
        if x[i] > 5:
            kept.append(i)
    return np.array(kept), np.array(kept, dtype=float), len(kept), kept, bool(kept)


def a_window(x):
    window, means = [], []
    for v in x:
        window.append(v)
        if len(window) > 5:
            del window[0]
        means.append(v / len(window))
    return np.array(means)


OTHERS = [items_in_an_arm, under_two_names, by_a_closure, in_an_object, a_heap, of_two_kinds, perhaps_a_float, arrays]
OTHERS += [a_large_sum, made_anew, beyond_an_int64, asked_for_all, deleted_from, a_window, longer_than_expected, empty]


def popped_too_often(x):
    kept = [1, 2]
    for v in x:
        if v > 0.5:
            kept.pop()
    return len(kept)


def out_of_bounds(x):
    kept = [0] * 3
    for v in x:
        kept[int(v * 10)] += 1
    return kept


def read_though_empty(x):
    kept = [1.0]
    total = 0.0
    for v in x:
        if v > 0.5:
            kept.pop()
        total += kept[-1]
    return total


def known_to_be_empty(x):
    kept = [1]
    for i in range(20):
        if i % 3 > 5:
            kept.append(i)
    kept.pop()
    kept.pop()
    return kept, x


def _outcome(f: Any, x: Any) -> Any:
    try:
        return f(x)
    except IndexError as error:
        return str(error)


DATA = [X, X[:30] * 0.9, np.concatenate([X, X * 0.1]), X]


@pytest.mark.parametrize("f", RECORDED, ids=lambda f: f.__name__)
def test_lists_are_recorded(f):
    compiled = pyop.compile(f)
    with warnings.catch_warnings():
        warnings.simplefilter("error", pyop.RetraceWarning)
        for x in DATA:
            assert same(compiled(x), f(x))
    assert any("loop" in line for line in str(compiled.plan_for(X).explain()).splitlines())


@pytest.mark.filterwarnings("ignore::pyop.RetraceWarning")
@pytest.mark.parametrize("f", OTHERS, ids=lambda f: f.__name__)
def test_all_other_lists_are_pythons(f):
    compiled = pyop.compile(f)
    for x in DATA:
        assert same(compiled(x), f(x))


@pytest.mark.filterwarnings("ignore::pyop.RetraceWarning")
@pytest.mark.parametrize(
    "f", [popped_too_often, out_of_bounds, read_though_empty, known_to_be_empty], ids=lambda f: f.__name__
)
def test_errors_are_pythons(f):
    compiled = pyop.compile(f)
    for x in (X * 0.0, X, X * 0.0, X):
        assert same(_outcome(compiled, x), _outcome(f, x))


@pytest.mark.filterwarnings("ignore::pyop.RetraceWarning")
def test_a_list_of_the_callers_is_changed():
    def f(x, kept):
        for v in x:
            if v > 0.5:
                kept.append(float(v))
        return len(kept)

    compiled = pyop.compile(f)
    for _ in range(2):
        given: list[float] = []
        plain: list[float] = []
        assert compiled(X, given) == f(X, plain)
        assert same(given, plain)


def test_gradients_go_through_lists():
    def f(x):
        ys = [x[0]]
        for i in range(len(x)):
            ys.append(ys[-1] * 0.5 + x[i] * x[i])
        return ys[-1]

    step = 1e-6
    slopes = [(f(X + step * row) - f(X - step * row)) / (2 * step) for row in np.eye(60)[-5:]]
    np.testing.assert_allclose(pyop.compile(pyop.grad(f))(X)[-5:], slopes, rtol=1e-6)
