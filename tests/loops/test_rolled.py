"""``for i in range(n)`` of a compiled function: one Loop where that is sure to be the same, else as before."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import pyop
from pyop._tree import flatten
from pyop.loops import rolled
from pyop.loops.node import Loop

from .compare import equal

X = np.linspace(0.1, 1.0, 10)
W = np.linspace(-1.0, 1.0, 100).reshape(10, 10)
SEEN: list[Any] = []


def smooth(x):
    y = np.zeros_like(x)
    for _ in range(100):
        y = y * 0.99 + x
    return y


def by_elements(x):
    y = x * 1.0
    for i in range(1, len(x)):
        y[i] = y[i - 1] * 0.5 + x[i]
    return y


def nested(x):
    y = np.zeros(len(x))
    for i in range(len(x)):
        for j in range(len(x)):
            y[i] += x[j] * 0.5
    return y


def table(x):
    a = np.zeros((len(x), len(x)))
    for i in range(len(x)):
        for j in range(len(x)):
            a[i, j] = x[i] * x[j] + (i + 2 * j)
    return a


def number_that_becomes_a_scalar(x):
    s = 0.0
    for i in range(len(x)):
        s += x[i]
    return s


def aliases_and_views(x):
    y = x * 1.0
    z = y
    v = y[2:]
    for i in range(20):
        y += i * 0.5
        v *= 1.01
    return y, z, v


def previous(x):
    y = x * 1.0
    for _ in range(20):
        prev = y
        y = y * 0.5
        z = prev - y
    return y, z


def rows(x):
    a = np.outer(x, x)
    for i in range(1, 10):
        row = a[i]
        row -= a[i - 1] * 0.1
        row[0] = i
    return a


def captured_array(x):
    y = x
    for _ in range(12):
        y = np.tanh(W @ y + x)
    return y


def helper(y, k):
    z = y * 2.0
    z[0] = k
    return z


def by_a_helper(x):
    y = x * 1.0
    for i in range(12):
        y = helper(y, x[i - 2]) * 0.4
    return y


def two_loops_of_one_counter(x):
    y = x * 1.0
    for i in range(10):
        y[i] += 1
    for i in range(10):
        y[i] *= y[i - 1]
    return y


def two_states(x):
    p, v = x * 1.0, x * 0.0
    dt = 0.125
    for _ in range(30):
        a = -p * 2.0
        v = v + a * dt
        p = p + v * dt
    return p, v


ROLLED = [
    *(smooth, by_elements, nested, table, number_that_becomes_a_scalar, aliases_and_views, previous, rows),
    *(captured_array, by_a_helper, two_loops_of_one_counter, two_states),
]


def swap(x):
    a, b = x * 1.0, np.zeros_like(x)
    for _ in range(51):
        b[1:-1] = (a[:-2] + a[2:]) * 0.5
        a, b = b, a
    return a, b


def appends(x):
    out = []
    for i in range(20):
        out.append(x[0] * i)
    return np.stack(out)


def parity(x):
    y = x * 1.0
    for i in range(20):
        if i % 2:
            y = y + 1
    return y


def python_number(x):
    k = 0
    y = x * 1.0
    for _ in range(20):
        y = y + k
        k += 1  # noqa: SIM113
    return y


def counter_behind(x):
    y = x * 1.0
    for i in range(20):  # noqa: B007
        y = y + x
    return y * i


def breaks(x):
    y = x * 1.0
    for i in range(20):
        if i == 12:
            break
        y = y + x
    return y


def with_else(x):
    y = x * 1.0
    for _ in range(20):
        y = y + x
    else:
        y = y * 2
    return y


def listed(x):
    return np.stack([x[i % 3] * i for i in range(12)])


def enumerated(x):
    y = x * 1.0
    for k, i in enumerate(range(9, -1, -1)):
        y[i] += k
    return y


def math_of_the_counter(x):
    y = x * 1.0
    for i in range(1, 12):
        y = y * math.sqrt(i)
    return y


def kept_elsewhere(x):
    y = x * 1.0
    seen = [y]
    for _ in range(12):
        y += 1
        seen[0] = y
    return seen[0], y


def kept_in_a_tuple(x):
    y = x * 1.0
    both = (y, x)
    for _ in range(12):
        y = y + both[0]
        both = (y, x)
    return both[0], y


def triangular(x):
    a = np.outer(x, x)
    for i in range(9):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[j, :j]
    return a


def remainder(x):
    y = x * 1.0
    for i in range(9, -1, -1):
        y[i] = y[(i + 1) % 10] + i
    return y


def grows(x):
    y = x * 1.0
    for _ in range(9):
        y = np.concatenate([y, x[:1]])
    return y


def changes_kind(x):
    y = np.arange(10)
    for i in range(9):
        y = y + x[i] if i < 5 else y
    return y


def another_variable_has_it(x):
    z = x * 1.0
    y = x * 2.0
    for _ in range(9):
        y = z
        z[0] += 1
    return y, z


def views_of_what_is_swapped(x):
    y, z = x * 1.0, x + 1.0
    v = y[1:]
    for _ in range(9):
        y += z
    for _ in range(9):
        y, z = z, y
    return y, z, v


AS_WRITTEN = [
    views_of_what_is_swapped,
    *(swap, appends, parity, python_number, counter_behind, breaks, with_else, listed, enumerated),
    *(math_of_the_counter, kept_elsewhere, kept_in_a_tuple, triangular, remainder, grows, changes_kind),
    another_variable_has_it,
]
WAYS: dict[str, dict[str, Any]] = {"compiled": {}, "plain": {"optimize": False}, "threads": {"threads": 2}}


def loops_of(plan: Any) -> int:
    return sum(node.kind == "py" and type(node.function) is Loop for node in plan.nodes)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("program", [*ROLLED, *AS_WRITTEN])
def test_bits_of_the_loop(program, way):
    x = X.copy()
    wanted = program(X.copy())
    f = pyop.compile(program, **WAYS[way])
    for _ in range(2):
        found = f(x)
        assert equal(found, wanted)
        assert x.tobytes() == X.tobytes()
    leaves, plain = flatten(found)[0], flatten(wanted)[0]
    for k, a in enumerate(leaves):
        for j in range(k):
            assert np.shares_memory(a, leaves[j]) == np.shares_memory(plain[k], plain[j])


@pytest.mark.parametrize("program", ROLLED)
def test_it_is_one_node(program, monkeypatch):
    made = []
    close = rolled.add_loop
    monkeypatch.setattr(rolled, "add_loop", lambda *args: made.append(1) or close(*args))
    pyop.compile(program)(X)
    assert made


def test_compiling_takes_no_longer_for_more_iterations():
    def of(n):
        def f(x):
            y = x * 1.0
            for _ in range(n):
                y = y * 0.5 + x
            return y

        sizes = []
        add = rolled.add_loop
        rolled.add_loop = lambda recording, *rest: sizes.append(len(recording.graph)) or add(recording, *rest)
        try:
            wanted, found = f(X), pyop.compile(f)(X)
        finally:
            rolled.add_loop = add
        assert equal(found, wanted)
        return sizes

    of(10)  # what it carries is foreseen from now on
    assert of(10) == of(20_000)


def test_an_index_out_of_bounds_is_numpys_error():
    def f(x):
        y = x * 1.0
        for i in range(12):
            y[i] = i
        return y

    with pytest.raises(IndexError, match="index 10 is out of bounds for axis 0 with size 10"):
        pyop.compile(f)(X)


def test_named_sizes():
    def f(x):
        y = x * 1.0
        for _ in range(30):
            y = y * 0.5 + x
        return y

    g = pyop.compile(f, "float64[n]")
    for n in (3, 8, 1):
        x = np.linspace(0, 1, n)
        assert equal(g(x), f(x))


def test_a_gradient_is_that_of_the_loop():
    def f(x):
        return smooth(x).sum()

    found = pyop.compile(pyop.grad(f))(X)
    assert np.allclose(found, sum(0.99**k for k in range(100)))


def test_a_function_that_catches_exceptions():
    """Nothing is pruned in its plan, so that all that may raise does; but not the bodies of loops on their own."""

    def relaxed(x):
        y = x * 1.0
        for _ in range(12):
            y = y * 0.5 + x
        return y

    def f(x):
        try:
            return relaxed(x)
        except ValueError:
            return x

    x = np.ones(3)
    compiled = pyop.compile(f)
    assert compiled(x).tobytes() == relaxed(x).tobytes()
    assert any("loop" in node.name for node in compiled.graph(x).nodes)
    assert compiled.graph(x).compile(disable=["prune"])(x).tobytes() == relaxed(x).tobytes()


def test_rows_are_exchanged():
    def f(a):
        a, n = a.copy(), len(a)
        for k in range(n):
            p = k
            for i in range(k + 1, n):
                if abs(a[i, 0]) > abs(a[p, 0]):
                    p = i
            if p != k:
                a[[k, p]] = a[[p, k]]
                a[:, [0, p]] += 1.0
        return a

    a = np.random.default_rng(0).normal(size=(12, 12))
    g = pyop.compile(f)
    for x in (a, -a[::-1]):
        assert equal(g(x), f(x))
    assert any(type(node.function).__name__ == "Loop" for node in g.plan_for(a).graph.nodes)
