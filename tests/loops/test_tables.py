"""Lists, tuples and dicts of numbers, looked up by what a recorded loop computes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import pyop

X = np.random.default_rng(0).uniform(size=60)


def crc32(x):
    data = (x * 255).astype(np.uint8)
    table = []
    for n in range(256):
        c = n
        for _ in range(8):
            c = (0xEDB88320 ^ (c >> 1)) if c & 1 else c >> 1
        table.append(c)
    c = 0xFFFFFFFF
    for byte in data:
        c = table[(c ^ int(byte)) & 0xFF] ^ (c >> 8)
    return c ^ 0xFFFFFFFF


def moves(x):
    directions = (x * 6).astype(int) - 3
    steps = [(0, 1.5), (1, 0.5), (0, -1.0)]
    i, f = 0, 0.0
    for k in range(len(directions)):
        a, b = steps[directions[k]]
        i += a
        f += b
    return i, f


def by_keys(x):
    weights = {4: 0.5, 8: 0.25, -2: 1.5}
    s = 0.0
    for v in x:
        k = 4 if v > 0.5 else 8 if v > 0.2 else -2
        s += weights[k] * float(v)
    return s


def pairs_by_keys(x):
    table = {0: (1, 2.0), 1: (2, 4.0)}
    a, b = 0, 0.0
    for i in range(len(x)):
        p, q = table[int(x[i] * 2)]
        a += p
        b += q
    return a, b


def of_two_kinds(x):
    table = {0: 1, 1: 2.0}
    s = 0
    for i in range(len(x)):
        s += table[int(x[i] * 2)]
    return s


def changed_meanwhile(x):
    table = {0: 1.0, 1: 2.0}
    for i in range(len(x)):
        table[i % 2] = table[int(x[i] * 2)] + 1.0
    return table


@pytest.mark.parametrize("f", [crc32, moves, by_keys, pairs_by_keys], ids=lambda f: f.__name__)
def test_tables_are_recorded(f):
    compiled = pyop.compile(f)
    with warnings.catch_warnings():
        warnings.simplefilter("error", pyop.RetraceWarning)
        for x in (X, X[::-1].copy(), X * 0.5):
            assert repr(compiled(x)) == repr(f(x))


@pytest.mark.filterwarnings("ignore::pyop.RetraceWarning")
@pytest.mark.parametrize("f", [of_two_kinds, changed_meanwhile], ids=lambda f: f.__name__)
def test_other_tables_are_pythons(f):
    compiled = pyop.compile(f)
    for x in (X, X[::-1].copy(), X * 0.5):
        assert repr(compiled(x)) == repr(f(x))


@pytest.mark.filterwarnings("ignore::pyop.RetraceWarning")
def test_a_key_that_is_none_raises():
    def f(x):
        table = {0: 1, 1: 2}
        s = 0
        for i in range(len(x)):
            s += table[int(x[i] * 4)]
        return s

    compiled = pyop.compile(f)
    assert compiled(X * 0.4) == f(X * 0.4)
    with pytest.raises(KeyError, match="2"):
        compiled(np.full(60, 0.6))
    assert compiled(X * 0.3) == f(X * 0.3)
