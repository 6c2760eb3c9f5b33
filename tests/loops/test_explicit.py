"""`fori_loop`, `while_loop`, `scan` and `cond`: the same bits on arrays, in graphs, in every way of running these."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyop
from pyop._tree import flatten

from .compare import equal

X = np.array([0.5, -1.25, 2.0, 3.5])
M = np.arange(12.0).reshape(3, 4)


def smooth(x):
    return pyop.fori_loop(0, 50, lambda i, y: y * 0.5 + x, np.zeros_like(x))


def by_counter(x):
    return pyop.fori_loop(0, 9, lambda i, y: y + i * x, x * 0.0)


def of_floats(x):
    return pyop.fori_loop(1, 9, lambda i, y: y + (i * 0.5 - 1) * x / i, x * 0.0)


def weak(x):
    return pyop.fori_loop(0, 5, lambda i, y: y + i, x.astype(np.float32))


def recurrence(x):
    def body(i, y):
        y[i] = y[i - 1] * 0.5 + x[i]
        return y

    return pyop.fori_loop(1, x.shape[0], body, x * 1.0)


def from_behind(x):
    n = len(x)

    def body(i, y):
        y[n - 1 - i] += y[-1 - i + 1 - 1] * i
        y[-2] -= 1
        return y

    return pyop.fori_loop(0, n, body, x * 1.0)


def slices(x):
    def body(i, y):
        y[i:] -= y[: y.shape[0] - i] * 0.25
        return y

    return pyop.fori_loop(1, len(x), body, x * 1.0)


def swap(x):
    return pyop.fori_loop(0, 7, lambda i, s: (s[1], s[0] * 1.5), (x, x + 1))


def twice_the_same(x):
    a, b = pyop.fori_loop(0, 3, lambda i, s: (s[0] + 1, s[0] + 1), (x, x))
    a += 1
    return a, b


def no_iteration(x):
    return pyop.fori_loop(3, 3, lambda i, y: y * 2, x)


def unchanged(x):
    return pyop.fori_loop(0, 3, lambda i, y: y, x)


def constant(x):
    return pyop.fori_loop(0, 3, lambda i, y: np.ones(4), x)


def peeled(x):
    return pyop.fori_loop(0, 6, lambda i, s: s * 0.5 + x[1], 1)


def nested(x):
    def row(i, y):
        return pyop.fori_loop(0, 4, lambda j, z: z * 0.5 + x[j] + i, y)

    return pyop.fori_loop(0, 5, row, x * 1.0)


def nested_writes(x):
    def row(i, y):
        def column(j, z):
            z[i, j] = z[i, j - 1] + x[j] * i
            return z

        return pyop.fori_loop(1, 4, column, y)

    return pyop.fori_loop(0, 3, row, np.outer(x[:3], x))


def by_value(x):
    n = (x > 0).sum()
    return pyop.fori_loop(0, n, lambda i, y: y * 2, x)


def root(x):
    def step(s):
        y, _ = s
        return 0.5 * (y + np.abs(x) / y), y

    return pyop.while_loop(lambda s: (np.abs(s[0] - s[1]) > 1e-9).any(), step, (np.abs(x), np.zeros_like(x)))[0]


def never(x):
    return pyop.while_loop(lambda s: s.sum() > 1e9, lambda s: s * 2, x)


def grows(x):
    return pyop.while_loop(lambda s: s[0] < 20.0, lambda s: s * 2, np.abs(x))


def scanned(x):
    def step(carry, part):
        carry = carry * 0.5 + part
        return carry, (carry * 2, np.sqrt(np.abs(carry)))

    return pyop.scan(step, np.float64(0.0), x)


def scanned_rows(x):
    return pyop.scan(lambda c, rows: (c + rows["m"], rows["m"] * c), x, {"m": np.outer(x, x)}, reverse=True)


def without_xs(x):
    return pyop.scan(lambda c, _: (c * 0.5, c.sum()), x, None, length=5)


def branched(x):
    return pyop.cond(x.sum() > 0, lambda a: (a * 2, a), lambda a: (a + 1, a * 0), x)


def branch_in_loop(x):
    return pyop.fori_loop(0, 6, lambda i, y: pyop.cond(y[0] > 3, lambda: y - 3, lambda: y + x[0]), x)


def by_python(x):
    return pyop.fori_loop(0, 4, lambda i, y: np.convolve(y, x, "same") * 0.1, x)


PROGRAMS = [
    *(smooth, by_counter, of_floats, weak, recurrence, from_behind, slices, swap, twice_the_same, no_iteration),
    *(unchanged, constant, peeled, nested, nested_writes, by_value, root, never, grows, scanned, scanned_rows),
    *(without_xs, branched, branch_in_loop, by_python),
]
WAYS: dict[str, Callable[[Any], Any]] = {
    "compiled": pyop.compile,
    "plain": lambda f: pyop.compile(f, optimize=False),
    "threads": lambda f: pyop.compile(f, threads=2),
    "traced": lambda f: pyop.trace(f, pyop.Spec.of(X)).compile(),
    "pickled": lambda f: pickle.loads(pickle.dumps(pyop.trace(f, pyop.Spec.of(X)).compile())),
    "no fusion": lambda f: pyop.compile(f, disable=["fuse", "in-place"]),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_bits_of_the_plain_loop(program, way):
    x = X.copy()
    wanted = program(X.copy())
    made = WAYS[way](program)
    for _ in range(2):
        found = made(x)
        assert equal(found, wanted)
        assert x.tobytes() == X.tobytes()
        leaves = flatten(found)[0]
        assert not any(np.shares_memory(leaf, x) for leaf in leaves)
        assert not any(np.shares_memory(a, b) for k, a in enumerate(leaves) for b in leaves[:k])


def plain_loop(x):
    y = x * 1.0
    for i in range(1, 4):
        y[i] = y[i - 1] * 0.5 + x[i]
    return y


def test_the_plain_run_is_the_python_loop():
    assert equal(recurrence(X), plain_loop(X))


def test_named_sizes():
    f = pyop.compile(recurrence, "float64[n]")
    for n in (4, 1, 9):
        x = np.linspace(0, 1, n)
        assert equal(f(x), recurrence(x))


def test_one_node_whatever_the_number_of_iterations():
    def counted(n):
        return len(pyop.trace(lambda x: pyop.fori_loop(0, n, lambda i, y: y * 0.5, x), "float64[4]"))

    assert counted(10) == counted(100_000)


def test_a_body_runs_without_python():
    plan = pyop.trace(recurrence, "float64[4]").compile()
    assert plan.report()["native"] == plan.report()["instructions"]
    assert "loop of" in str(plan.explain())


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (lambda x: pyop.fori_loop(0, 9, lambda i, y: y * 2 if i % 2 else y, x), "number of the iteration"),
        (lambda x: pyop.fori_loop(0, 9, lambda i, y: y + [1.0, 2.0][i], x), "number of the iteration"),
        (lambda x: pyop.fori_loop(0, 9, lambda i, y: y * float(i), x), "number of the iteration"),
        (lambda x: pyop.fori_loop(0, 9, lambda i, y: np.concatenate([y, y]), x), "one dtype and shape"),
        (lambda x: pyop.fori_loop(0, (x > 0).sum(), lambda i, y: y + x[0], 0), "Python number"),
        (lambda x: pyop.fori_loop(0, 9, lambda i, y: (y, y), x), "same form"),
        (lambda x: pyop.cond(x.sum() > 0, lambda: x, lambda: x[:2]), "true_fn returned"),
        (lambda x: pyop.cond(x > 0, lambda: x, lambda: x), "one truth"),
    ],
)
def test_what_cannot_be_one_node_is_an_error(program, message):
    with pytest.raises(TypeError, match=message):
        pyop.trace(program, "float64[4]")


def test_a_body_that_writes_what_it_was_not_given():
    def program(x):
        y = x * 1.0

        def body(i, s):
            y[0] = s[i]
            return s

        return pyop.fori_loop(0, 3, body, x), y

    with pytest.raises(TypeError, match="make that a part of the state"):
        pyop.trace(program, "float64[4]")
    with pytest.warns(pyop.RetraceWarning, match="make that a part of the state"):
        got = pyop.compile(program)(X)
    assert all(map(np.array_equal, got, program(X)))


def test_an_index_out_of_bounds_names_the_iteration():
    f = pyop.compile(lambda x: pyop.fori_loop(0, 9, lambda i, y: y + x[i], np.float64(0)))
    with pytest.raises(IndexError, match="index 4 is out of bounds for axis 0 with size 4") as caught:
        f(X)
    assert any("iteration 4" in note for note in caught.value.__notes__)


def test_floating_point_warnings_are_numpys():
    def program(x):
        return pyop.fori_loop(0, 3, lambda i, y: y / (x - x), x)

    for f in (program, pyop.compile(program)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            f(X)
        assert {str(w.message) for w in caught} == {
            "divide by zero encountered in divide",
        } | ({"invalid value encountered in divide"} if len(caught) > 3 else set())


def test_effects_happen_in_each_iteration():
    seen: list[float] = []

    @pyop.op("float64[n] -> float64[n]", stateful=True)
    def note(y):
        seen.append(float(y[0]))
        return y * 2

    f = pyop.compile(lambda x: pyop.fori_loop(0, 3, lambda i, y: note(y), x))
    f(np.ones(2))
    assert seen == [1.0, 2.0, 4.0]


def test_state_that_is_an_error_leaves_no_trace():
    f = pyop.compile(recurrence)
    wanted = recurrence(X)
    for _ in range(3):
        first, second = f(X), f(X)
        first += 1
        assert equal(second, wanted)


def test_the_first_state_is_not_written():
    def program(y):
        def body(i, z):
            z[i] = 0.0
            return z

        return pyop.fori_loop(0, 2, body, y)

    for f in (program, pyop.compile(program)):
        x = X.copy()
        assert f(x).tolist() == [0.0, 0.0, 2.0, 3.5]
        assert x.tobytes() == X.tobytes()


def test_tensors_are_recorded():
    x = pyop.Tensor(X, requires_grad=True)
    smooth(x).sum().backward()
    assert np.allclose(x.grad, sum(0.5**k for k in range(50)))


def test_a_loop_with_effects_is_kept_and_not_merged():
    seen = []

    @pyop.op("float64[3] -> float64[3]", stateful=True)
    def noted(x):
        seen.append(1)
        return x + len(seen)

    def twice(x):
        first = pyop.fori_loop(0, 3, lambda i, y: noted(y), x)
        second = pyop.fori_loop(0, 3, lambda i, y: noted(y), x)
        return second - first

    x = np.zeros(3)
    assert pyop.trace(twice, "float64[3]").compile()(x).tolist() == [9.0] * 3
    assert len(seen) == 6


def test_a_scan_that_stacks_nothing():
    def last(x):
        return pyop.scan(lambda c, y: (np.sin(c) * 0.5 + y, None), x[0], x)

    x = np.random.default_rng(0).normal(size=(5, 3))
    wanted, nothing = last(x)
    assert nothing is None
    found, nothing = pyop.compile(last)(x)
    assert nothing is None
    np.testing.assert_array_equal(found, wanted)
    plan = pyop.trace(lambda x: last(x)[0], "float64[5,3]").compile()
    np.testing.assert_array_equal(plan(x), wanted)
    made = pyop.jacobian(lambda x: last(x)[0])(x)
    np.testing.assert_array_equal(pyop.compile(pyop.jacobian(lambda x: last(x)[0]))(x), made)
    with pytest.raises(TypeError, match="to stack in one iteration"):
        pyop.scan(lambda c, y: (c + y, None if c[0] < 0 else y), np.full(3, -1.5), np.ones((5, 3)))
