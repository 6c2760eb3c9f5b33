"""What compiled functions return."""

from __future__ import annotations

import collections
import types

import numpy as np
import pytest

import pyop

from .helpers import named, same


def test_results_that_are_no_arrays_or_not_computed():
    table = np.arange(3)

    def f(x, y):
        z = x + 1
        return {"none": None, "text": "a", "pair": (z, z), "same": x, "table": table, "n": np.float32(2)}

    compiled = pyop.compile(f)
    x = np.zeros(2)
    first, second = compiled(x, x), compiled(x, x)
    same(first, f(x, x))
    assert first["same"] is x
    assert first["pair"][0] is first["pair"][1]
    assert first["table"] is second["table"] is table
    first["table"][:] = 9
    same(compiled(x, x)["table"], np.full(3, 9))
    assert pyop.compile(lambda x: None)(x) is None
    assert pyop.compile(lambda x: ())(x) == ()
    assert pyop.compile(lambda: 3)() == 3


def test_results_that_cannot_be_told_apart_are_refused():
    for returns, path in [(lambda x: {1}, ""), (lambda x: {"a": [object()]}, r"\['a'\]\[0\], ")]:
        with pytest.raises(TypeError, match=rf"f returned {path}an object of type (set|object): what is compiled"):
            pyop.compile(named(returns))(np.ones(1))
    held = {"a": [object()]}
    with pytest.warns(pyop.RetraceWarning, match="holds"):
        assert pyop.compile(lambda x: held)(np.ones(1)) is held

    def generator(x):
        yield x

    with pytest.raises(TypeError, match="generator is a generator or coroutine function"):
        pyop.compile(generator)


def test_named_sizes_come_back_as_numbers():
    compiled = pyop.compile(lambda x: (x.sum(), x.shape, {"twice": 2 * x.shape[0]}), "float64[n, 3]")
    for n in (2, 5):
        same(compiled(np.ones((n, 3))), (np.asarray(3.0 * n), (n, 3), {"twice": 2 * n}))
    assert compiled.cache_info().plans == 1


def test_results_are_memory_of_their_own():
    compiled = pyop.compile(lambda x: (x + 1.0, x + 1.0, np.exp(x)))
    a, b, c = compiled(np.zeros(3))
    a[:] = 7
    same(b, np.ones(3))
    d = compiled(np.ones(3))[2]
    same(c, np.ones(3))
    assert not np.shares_memory(c, d)
    assert all(r.flags.writeable for r in (a, b, c, d))


def test_out_goes_to_the_plan():
    x = np.arange(3.0)
    compiled = pyop.compile(lambda x, y, *, k=1: (x + y) * k)
    out = np.empty(3)
    assert compiled(x, x, out=out) is out
    same(out, x * 2)
    assert compiled(x, x, k=3, out=out) is out
    assert compiled(x, out=out, y=x, k=2) is out
    same(out, x * 4)
    with pytest.raises(pyop.InputError, match="out="):
        compiled(x, x, out=np.empty(4))
    both = pyop.compile(lambda x: {"a": x + 1, "b": [x * 2]})
    outs = np.empty(3), np.empty(3)
    got = both(x, out=outs)
    assert got["a"] is outs[0]
    assert got["b"][0] is outs[1]


def test_only_results_that_became_one_array_are_copied():
    merged = pyop.compile(lambda x: (np.exp(x) + 1.0, np.exp(x) * 2.0))
    merged(np.ones(2))
    assert merged.plan_for(np.ones(2)).report()["merged"] == 1
    assert len({after for _, after, _ in merged.plan_for(np.ones(2))._owners()}) == 2
    twice = pyop.compile(lambda x: (x + 1.0, x + 1.0))
    a, b = twice(np.ones(2))
    assert not np.shares_memory(a, b)
    assert len({after for _, after, _ in twice.plan_for(np.ones(2))._owners()}) == 1

    def thrice(x):
        y, z = x + 1.0, x + 1.0
        return y, z, y

    a, b, c = pyop.compile(thrice)(np.ones(2))
    assert a is c
    assert not np.shares_memory(a, b)


def test_views_of_what_became_one_array_are_apart():
    x = np.arange(6.0)
    for f in (
        lambda x: (x + 1.0, (x + 1.0)[::2]),
        lambda x: ((x + 1.0)[1:], (x + 1.0)[::-1]),
        lambda x: (np.reshape(x + 1.0, (2, 3)).T, x + 1.0),
    ):
        compiled = pyop.compile(f)
        for _ in range(2):
            a, b = compiled(x)
            a[...] = -1
            same(b, f(x)[1])
    y, shown = pyop.compile(lambda x: (lambda y: (y, y[1:]))(x * 2.0))(x)
    assert np.shares_memory(y, shown)  # as they do in the function's own result
    both = np.empty((6, 2))
    targets = both[:, 0], both[:, 1]
    got = pyop.compile(lambda x: (x + 1.0, x + 1.0))(x, out=targets)
    assert got[0] is targets[0]
    assert got[1] is targets[1]


def test_what_depends_on_no_argument_is_the_callers_own_every_time():
    twice = pyop.op(lambda x: x * 2, like="x")
    compiled = pyop.compile(lambda x: (x + 1.0, twice(np.ones(3)), np.sin(twice(np.ones(3)))[1:]))
    for _ in range(2):
        _, a, b = compiled(np.zeros(2))
        same(a, np.full(3, 2.0))
        same(b, np.full(2, np.sin(2.0)))
        a[:] = b[:] = 0.0
    target = np.empty(3)
    assert compiled(np.zeros(2), out=(None, target, None))[1] is target


HELD = np.arange(4.0)
X = np.arange(1.0, 5.0)


def shared(results, *others):
    """Which of the results are one object, which show one memory, and which that of others."""
    pairs = [(a, b) for k, a in enumerate(results) for b in results[:k]]
    of_others = [[np.shares_memory(a, b) for a in results] for b in others]
    return [a is b for a, b in pairs], [np.shares_memory(a, b) for a, b in pairs], of_others


@pytest.mark.parametrize("x", [np.arange(8.0)[::2], np.arange(12.0).reshape(3, 4).T, np.arange(4.0)], ids="sfc")
@pytest.mark.parametrize(
    "f",
    [
        lambda x: (x.ravel(), np.ravel(x)),
        lambda x: (x.ravel("F"), x.ravel("F")),
        lambda x: (x.reshape(-1), x.reshape(-1)),
        lambda x: (x.ravel()[1:], np.ravel(x)[:2]),
        lambda x: ((y := x.ravel())[1:], y[:2]),
        lambda x: (x.T.ravel(), np.ravel(x.T), x),
        lambda x: ((y := x * 2).T.ravel(), y.T.ravel(), y),
        lambda x: (HELD, HELD, x * 2),
        lambda x: (HELD[1:], HELD[::2], x * 2),
        lambda x: ((made := np.ones(2)), made, x * 2),
        lambda x: (x, x),
    ],
)
def test_results_share_what_those_of_the_function_share(f, x):
    compiled = pyop.compile(f)
    for _ in range(3):
        assert shared(compiled(x), x, HELD) == shared(f(x), x, HELD)


def test_who_writes_into_what_the_function_holds_changes_it():
    compiled = pyop.compile(lambda x: (HELD, HELD * x))
    before = HELD.copy()
    try:
        compiled(X)[0][0] = 7
        np.testing.assert_array_equal(compiled(X)[1], HELD * X)
        assert HELD[0] == 7
    finally:
        HELD[:] = before


def test_two_made_arrays_of_one_memory_share_it():
    def f(x):
        made = np.ones(3)
        return made, made[1:], x * 2

    def by_python(x):  # of which nobody knows who made them
        made = bytearray(16)
        return np.frombuffer(made), np.frombuffer(made)[1:], x * 2

    compiled = pyop.compile(f)
    kept = []
    for _ in range(2):
        whole, part, _ = compiled(X)
        assert np.shares_memory(whole, part)
        assert not any(np.shares_memory(whole, a) for a in kept)
        part += 1
        np.testing.assert_array_equal(whole, [1, 2, 2])
        kept += [whole, part]
    with pytest.warns(pyop.RetraceWarning, match=r"show one memory: return a copy\(\)"):
        whole, part, _ = pyop.compile(by_python)(X)
    assert np.shares_memory(whole, part)


@pytest.mark.parametrize(
    ("given", "instead"),
    [
        (collections.OrderedDict(a=X), r"dict\(x\)"),
        (collections.defaultdict(list, a=X), r"dict\(x\)"),
        (collections.deque([X]), r"list\(x\)"),
        ({1.0}, r"list\(x\)"),
        (iter([X]), r"list\(x\)"),
        (types.SimpleNamespace(a=X), r"dict\(vars\(x\)\)"),
    ],
)
def test_containers_that_are_none_are_refused_with_what_to_write(given, instead):
    with pytest.raises(TypeError, match=f"arrays are looked for in .* alone: pass {instead}"):
        pyop.compile(lambda d: len(d))(given)
    if isinstance(given, dict):
        with pytest.raises(TypeError, match=r"containers of arrays are .*pass dict\(x\)"):
            pyop.grad(lambda d: np.sum(d["a"]))(given)
