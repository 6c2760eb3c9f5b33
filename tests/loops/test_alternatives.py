"""Variables of loops that are None or something else, or one of a few texts: recorded once, and NumPy's to the bit."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import pyop


def first(x):
    at, n = None, 0
    for i in range(len(x)):
        if at is None and x[i] > 1.0:
            at = i
        elif at is not None:
            n += i - at
    return at, n


def machine(x):
    mode, k = "idle", 0
    for v in x:
        if mode == "idle":
            if v > 1:
                mode = "up"
            elif v < -1:
                mode = "down"
        elif mode == "up":
            k += 1
            if v < 0:
                mode = "idle"
        else:
            k -= 1
            if v > 0:
                mode = "idle"
    return mode, k


def mean(x):
    m, odd = None, 0
    for i in range(len(x)):
        if x[i] > 0.3:
            r = x[i] * 2
            if m is None:
                m = r
            elif abs(r - m) > 0.5 * m:
                odd += 1
            else:
                m = 0.9 * m + 0.1 * r
    return (1 / m if m else 0.0), odd


def stretches(x):
    begin, total, last = None, 0, 0
    for k in range(len(x)):
        if x[k] > 0:
            if begin is None:
                begin = k
            last = k
        elif begin is not None and k - last > 1:
            total += last - begin + 1
            begin = None
    return total, begin


def nearest(x):
    out, mode, hit = np.zeros(len(x)), None, None
    for i in range(len(x)):
        near = None
        for j in range(len(x)):
            if j != i:
                d = abs(x[i] - x[j])
                if near is None or d < near:
                    near = d
                    hit = j
        out[i] = 0.0 if near is None else near
        if mode is None and near is not None and near > 0.5:
            mode = "far"
        elif mode == "far" and x[i] < 0:
            mode = None
    return out, mode, hit


def why(x):
    found = "none"
    for i in range(len(x)):
        if x[i] > 1.2:
            found = "big"
            break
        if x[i] < -1.2:
            found = "small"
            break
    return found


def pair(x):
    best = (None, "x")
    for i in range(len(x)):
        if x[i] > 0.9:
            best = (i, "y")
    return best


def differences(x):
    last, s = None, 0.0
    for i in range(len(x)):
        if last is not None:
            s += x[i] - last
        last = x[i] if x[i] > 0 else None
    return s, last


STATES = [first, machine, mean, stretches, nearest, why, pair, differences]


@pytest.mark.parametrize("f", STATES)
@pytest.mark.filterwarnings("error")
def test_states(f):
    r = np.random.default_rng(1)
    g = pyop.compile(f)
    for k in range(12):
        x = r.normal(size=20) * (0.2 + k % 3) * (k != 5)
        assert repr(g(x)) == repr(f(x))
    assert any(type(node.function).__name__ == "Loop" for node in g.plan_for(x).graph.nodes)


def compared(x):
    found, hits = None, 0
    for v in x:
        if None is found and v > 0.5:
            found = v
        elif None is not found:
            hits += 1
    return found, hits


def identical(x):
    found, other, hits = None, "a", 0
    for v in x:
        if v > 0.5:
            found = "a"
        hits += found is other
    return found, hits


@pytest.mark.parametrize("f", [compared, identical])
def test_what_is_compared_otherwise_by_is(f):
    r = np.random.default_rng(1)
    g = pyop.compile(f)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pyop.RetraceWarning)
        for _ in range(8):
            x = r.normal(size=20)
            assert repr(g(x)) == repr(f(x))


def test_what_none_cannot_do_raises():
    def f(x):
        found, s = None, 0.0
        for v in x:
            if v > 0.5:
                found = v
            if v < -0.5:
                s += found * 2
        return s

    g = pyop.compile(f)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pyop.RetraceWarning)
        with pytest.raises(TypeError, match="NoneType"):
            g(np.linspace(-1.0, 1.0, 20))
        x = np.linspace(1.0, -1.0, 20)
        assert g(x) == f(x)
