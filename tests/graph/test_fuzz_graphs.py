"""Random graphs of ops and NumPy functions, run in every way, against the same program in plain Python."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pyop


class Pair(NamedTuple):
    low: Any
    high: Any


# Every function takes and gives float64[n] (or trees of it), so that any of them can follow any other.


def _scale(x, *, k=2.0, sign=False):
    return -(x * k) if sign else x * k


def _bounds(x):
    return Pair(np.minimum(x, 0.5), np.maximum(x, 0.5))


def _parts(x, y):
    return {"sum": x + y, "both": [x * 1.0, (y - x,)]}


def _from_tree(pair, z):
    return pair["a"] + pair["b"][0] * z


def _bump(x):
    x += 1
    return x


def _keep(x):
    return x


def _view(x):
    return x[::-1]


class Model:
    def __init__(self, k: float) -> None:
        self.k = k

    def apply(self, x: Any) -> Any:
        return x + self.k


MODELS = [Model(0.5), Model(-0.0)]
V = "float64[n]"
SCALE = pyop.op(_scale, f"{V} -> {V}")
BOUNDS = pyop.op(_bounds, inputs=(V,), outputs=Pair(V, V))
PARTS = pyop.op(_parts, inputs=(V, V), outputs={"sum": V, "both": [V, (V,)]})
FROM_TREE = pyop.op(_from_tree, inputs=({"a": V, "b": [V]}, V), outputs=V)
BUMP = pyop.op(_bump, f"{V} -> {V}", mutates="x")
KEEP = pyop.op(_keep, f"{V} -> {V}")
VIEW = pyop.op(_view, like="x")
DOT = pyop.op(lambda x, y: np.array(x @ y), "(n),(n)->()", name="dot")
ABSTRACT = pyop.op(lambda x: np.stack([x, x * 2]))
ABSTRACT.abstract(lambda x: pyop.Spec(x.dtype, None if x.shape is None else (2, *x.shape)))


class Log:
    """What the stateful functions of one run were called with, in order."""

    def __init__(self) -> None:
        self.entries: list[tuple[int, bytes]] = []

    def op(self, k: int) -> pyop.Op:
        def note(x):
            self.entries.append((k, x.tobytes()))
            return x + k

        return pyop.op(note, f"{V} -> {V}", stateful=True)


def step(random: Any, vs: list[Any], log: Log, plain: bool) -> list[Any]:
    """One random call on random values among `vs`; the same choices for plain arrays as for Values."""
    f = lambda op: op.__wrapped__ if plain else op
    a, b, c = (vs[random.randrange(len(vs))] for _ in range(3))
    which = random.randrange(20)
    number = [0.0, -0.0, 1, True, 2.5, -3][random.randrange(6)]
    if which == 0:
        return [f(SCALE)(a, k=number, sign=bool(random.randrange(2)))]
    if which == 1:
        return list(f(BOUNDS)(a))
    if which == 2:
        out = f(PARTS)(a, b)
        return [out["sum"], out["both"][0], out["both"][1][0]]
    if which == 3:
        return [f(FROM_TREE)({"a": a, "b": [b]}, c)]
    if which == 4:
        return [_bump(a.copy()) if plain else BUMP(a)]
    if which == 5:
        return [f([KEEP, VIEW][random.randrange(2)])(a)]
    if which == 6:
        return [a * f(DOT)(a * 0.01, b * 0.01)]
    if which == 7:
        return [f(ABSTRACT)(a)[random.randrange(2)]]
    if which == 8:
        k = random.randrange(3)
        if plain:
            log.entries.append((k, a.tobytes()))
            return [a + k]
        return [log.op(k)(a)]
    if which == 9:
        apply = MODELS[random.randrange(2)].apply
        return [apply(a) if plain else pyop.op(apply, f"{V} -> {V}")(a)]
    if which == 10:
        return [_keep(a) * 0.5 if plain else pyop.py_func(lambda x: x * 0.5, [a], np.float64, stateful=False)]
    if which == 11:
        i, j = np.divmod(a, 2.0)
        return [i, j]
    if which == 12:
        return [np.sum(np.stack([a, b, c]), axis=0), np.concatenate([a, b])[::2]]
    if which == 13:
        return [np.where(a > b, a, number), np.clip(a, -1, number)]
    if which == 14:
        return [np.add(a, np.full(1, number)), a[random.randrange(-1, 1)] + b]
    if which == 15:
        return [np.sort(a), np.flip(b), np.cumsum(c * 0.1)]
    if which == 16:
        return [a.T.reshape(-1), np.mean(a) + b, (a[None] + b)[0]]
    if which == 18:
        return in_place(a, b, number)
    if which == 17:
        constant = np.arange(1.0, 2.0) * number
        return [constant + a, a - f(SCALE)(constant, k=3) if plain else a - SCALE(pyop_constant(a, constant), k=3)]
    return [[a + b, a - b, a * number, -a, abs(a), np.tanh(a), np.maximum(a, b)][random.randrange(7)]]


def in_place(a: Any, b: Any, number: Any) -> list[Any]:
    """Writes that other names see: the same lines for arrays and for Values."""
    a, b = np.reshape(a, -1), np.reshape(b, -1)  # arrays, whatever is known of a and b
    y, box = a * 1.0, [b + 0.0]
    z, before = y, y - b
    y += b
    box[0] *= number
    z -= number
    total = y.sum()
    kept = total
    total += 1.0
    return [z, y, box[0], before, a * total - kept]


def pyop_constant(value: Any, array: Any) -> Any:
    return value.graph.constant(array)


def program(random: Any, inputs: list[Any], log: Log, plain: bool) -> list[Any]:
    values = list(inputs)
    for _ in range(random.randrange(1, 25)):
        values += step(random, values[-8:], log, plain)
    return values


def same(got: Any, want: Any) -> None:
    assert np.asarray(got).dtype == np.asarray(want).dtype
    np.testing.assert_array_equal(got, want, strict=False)
    assert np.asarray(got).tobytes() == np.asarray(want).tobytes()


def check(seed: Any) -> None:
    import random as r

    size = seed % 4 + 1
    inputs = [np.linspace(-1, 2, size), np.full(size, 0.25)]
    originals = [x.copy() for x in inputs]
    direct, log = Log(), Log()
    with np.errstate(all="ignore"):
        want = program(r.Random(seed), [x.copy() for x in inputs], direct, plain=True)
        g = pyop.Graph()
        values = program(r.Random(seed), [g.input(V, name="x"), g.input(V, name="y")], log, plain=False)
        assert len(values) == len(want)
        chosen = sorted(r.Random(seed + 1).sample(range(len(want)), min(len(want), 6)))
        g.output({"tree": Pair([values[k] for k in chosen], values[-1])})
        feeds = dict(zip(g.inputs, inputs, strict=True))
        expected = [want[k] for k in chosen] + [want[-1]]
        ways = [g.compile(), g.compile(optimize=False), g.compile(threads=2)]
        for way in (*ways, *ways, None):
            log.entries.clear()
            out = g.run(feeds=feeds) if way is None else way(*inputs)
            for got, right in zip([*out["tree"].low, out["tree"].high], expected, strict=True):
                same(got, right)
            if way is not None:
                assert log.entries == direct.entries
            else:  # only what is needed
                assert all(entry in direct.entries for entry in log.entries)
        middle = r.Random(seed + 2).randrange(len(values))
        same(g.run(values[middle], feeds, threads=2), want[middle])
        same(g.run(values[-1], {**feeds, values[middle]: want[middle]} if middle > 1 else feeds), want[-1])
    for x, original in zip(inputs, originals, strict=True):
        same(x, original)  # nobody writes into what the caller gave


@given(st.integers(0, 2**64 - 1))
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
def test_random_graphs(seed: int) -> None:
    check(seed)


@pytest.mark.campaign
@given(st.integers(0, 2**64 - 1))
@settings(max_examples=12_000, deadline=None, suppress_health_check=list(HealthCheck))
def test_random_graphs_campaign(seed: int) -> None:
    check(seed)
