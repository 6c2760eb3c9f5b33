"""``k in table`` and comparisons of tuples in recorded loops: Python's answers, by one plan; or Python's own errors."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import pyop

from .compare import same

X = np.random.default_rng(0).integers(-3, 40, 60)
DATA = [X, X[:30] + 1, -X, X]
SIGNS = {3, 7, 21}
WIDE = [*range(0, 900, 7)]


def in_a_tuple(x):
    n = 0
    for v in x:
        if int(v) in (1, 5, 7) or v in (2, 4):
            n += 1
    return n


def in_a_set(x):
    found = []
    for k in range(len(x)):
        c = x[k]
        if c in {60, 1, 2} or c in SIGNS:
            found.append(k)
        elif c not in frozenset((5, 6)) and c not in WIDE:
            found.append(-k)
    return found


def in_a_dict(x):
    pairs = {1: 10, 5: 50, 7: 0}
    total = misses = 0
    for v in x:
        c = int(v)
        if c in pairs:
            total += pairs[c]
        else:
            misses += 1
    return total, misses


def in_a_range(x):
    n = 0
    for v in x:
        if v in range(0, 20, 3) or v in range(30, 10, -4):
            n += 1
        if v not in range(5, 5) and int(v) in range(8):
            n += 100
    return n


def tuples(x):
    stops, n = {(3, 0, 0), (3, 0, 2), (1, 2, 3)}, 0
    at = None
    for k in range(len(x) - 3):
        codon = (int(x[k]), int(x[k + 1]), int(x[k + 2]))
        if codon in stops or (x[k] % 4, x[k + 1] % 4, 2) in stops:
            n += 1
        if (x[k], k) == (7, 3) or codon == (0, 3, 2) or (k % 5, 1) != (2, 1) or codon == (1, 2):
            n += 10
    return n, at


def small_dtypes(x):
    n = 0
    for v in x.astype(np.uint8):
        if v in (250, 300, 7):
            n += 1
    for b in x > 5:
        if b in (1, 5):
            n += 100
    return n


def of_texts(x):
    n = 0
    for v in x:
        if v in ("a", 3.0, None, 3.5) or int(v) in {"b": 1, 7: 2, 2.0: 1, True: 5}:
            n += 1
    return n


RECORDED = [in_a_tuple, in_a_set, in_a_dict, in_a_range, tuples, small_dtypes, of_texts]


@pytest.mark.parametrize("f", RECORDED, ids=lambda f: f.__name__)
def test_one_plan_does_for_all_data(f):
    compiled = pyop.compile(f)
    with warnings.catch_warnings():
        warnings.simplefilter("error", pyop.RetraceWarning)
        for x in DATA:
            assert same(compiled(x), f(x))
    assert any(type(node.function).__name__ == "Loop" for node in compiled.plan_for(X).graph.nodes)


def grows(x):
    seen, n = set(), 0
    for v in x:
        if int(v) in seen:
            n += 1
        seen.add(int(v))
    return n, len(seen)


def grows_in_an_arm(x):
    seen = {1, 2}
    for v in x:
        if v > 20:
            seen.add(3)
        if v > 30:
            seen.discard(3)
    return sorted(seen)


def of_floats(x):
    n, nan = 0, float("nan")
    for v in x / 2:
        n += (v in (1.5, 3, nan)) + 10 * ((v, 1) == (v, 1)) + 100 * (v in [v])
        n += 1000 * ((v * nan, nan) == (0.5, nan))
    return n


def in_an_array(x):
    n = 0
    for k in range(30):
        n += (k in x) + ((k, 3) == x[:2]).sum()
    return n


@pytest.mark.filterwarnings("ignore::pyop.RetraceWarning")
@pytest.mark.parametrize("f", [grows, grows_in_an_arm, of_floats, in_an_array], ids=lambda f: f.__name__)
def test_all_else_is_pythons(f):
    compiled = pyop.compile(f)
    for x in DATA:
        assert same(compiled(x), f(x))


def test_a_set_is_what_it_holds_now():
    mine = {1, 2}

    def f(x):
        n = 0
        for v in x:
            n += (int(v) in SIGNS) + 100 * (int(v) in mine)
        return n

    compiled = pyop.compile(f)
    for step in (30, 31, 32):
        assert same(compiled(X), f(X))
        SIGNS.add(step)
        assert same(compiled(X), f(X))
        mine.add(step)
        assert same(compiled(X), f(X))
        SIGNS.remove(step)


def test_what_cannot_be_asked_for_is_pythons_error():
    def f(x, where):
        n = 0
        for v in x:
            if int(v) in where:
                n += 1
        return n

    compiled = pyop.compile(f, static=("where",))
    with pytest.raises(TypeError, match="requires string as left operand"):
        compiled(X, "abc")
