"""Functions whose first argument is an instance of a class of the user's."""

from collections import deque

import numpy as np
import pytest

import pyop


class Tracker:
    def __init__(self, alpha):
        self.alpha = alpha
        self.level = None
        self.alarms = 0
        self.seen = np.zeros(3)

    def feed(self, values, tolerance):
        for v in values:
            if self.level is None:
                self.level = float(v)
            elif abs(v - self.level) > tolerance:
                self.alarms += 1
            else:
                self.level = float(self.level + self.alpha * (v - self.level))
        return self.level


def follow(tracker, values, tolerance=0.5):
    level = tracker.feed(values, tolerance)
    return level, tracker.alarms


def weighted(tracker, values):
    tracker.seen += values[:3]
    return values * tracker.alpha, tracker.seen


def rises(tracker, values):
    tracker.alpha += 1.0
    if values[0] > 0:
        raise ValueError("positive")
    return values * tracker.alpha


def bound(tracker, values):
    tracker.seen = values
    return values[0]


def told(f, tracker, values):
    try:
        result = f(tracker, values)
    except ValueError as error:
        result = str(error)
    return repr(result), repr(vars(tracker)), values.tobytes(), tracker.seen is values


@pytest.mark.parametrize("f", [follow, weighted, rises, bound])
def test_instances_as_first_argument(f):
    compiled = pyop.compile(f)
    r = np.random.default_rng(0)
    for k in range(12):
        if k % 3 == 0:
            a, b = Tracker(0.25 + k), Tracker(0.25 + k)
        if k == 7:
            a.seen, b.seen = np.ones(3), np.ones(3)
        x = r.normal(size=20 if k < 9 else 25)
        assert told(f, a, x.copy()) == told(compiled, b, x.copy())


def test_instances_share_plans():
    traced = []

    def scaled(tracker, x):
        traced.append(1)
        return x * tracker.alpha + tracker.seen[0]

    compiled = pyop.compile(scaled)
    for k in range(20):
        assert compiled(Tracker(float(k)), np.arange(4.0))[1] == k
    assert len(traced) < 8


def test_what_is_still_refused():
    compiled = pyop.compile(lambda x, tracker: x)
    with pytest.raises(TypeError, match="neither array nor number"):
        compiled(np.ones(2), Tracker(1.0))
    with pytest.raises(TypeError, match="neither array nor number"):
        pyop.compile(lambda tracker: 1)(object())
    for base in (list, dict, set, deque):
        with pytest.raises(TypeError, match="Own"):
            pyop.compile(lambda items, x: x * len(items))(type("Own", (base,), {})(), np.ones(2))
    with pytest.raises(TypeError, match="returned an object of type Tracker"):
        pyop.compile(lambda tracker: tracker)(Tracker(1.0))
