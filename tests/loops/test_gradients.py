"""Derivatives through loops and branches in graphs: those of the Python loop, without unrolling."""

from __future__ import annotations

import numpy as np
import pytest

import pyop
from tests.loops import writing
from tests.loops.programs import MORE, by_complex_steps, function, program

X = np.array([0.5, -1.25, 2.0, 3.5])
Y = np.array([0.3, -0.7, 0.9, 0.4, -0.2])


def smooth(x):
    return pyop.fori_loop(0, 9, lambda i, y: y * 0.5 + np.sin(x) * i, x * x).sum()


def recurrence(x):
    def body(i, y):
        y[i] = y[i - 1] * x[i]
        return y

    return pyop.fori_loop(1, 4, body, x * 1.0).sum()


def scanned(x):
    def step(carry, part):
        carry = carry * 0.5 + part * part
        return carry, np.sin(carry)

    last, all_of_them = pyop.scan(step, np.float64(0.0), x)
    return last * all_of_them.sum()


def rolled(x):
    y = x * 1.0
    for i in range(12):
        y = np.tanh(y) + x * i
    return y.sum()


def unrolled(x):
    y = x * 1.0
    for i in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11):
        y = np.tanh(y) + x * i
    return y.sum()


def by_differences(f):
    steps = np.eye(len(X)) * 1e-6
    return np.array([(f(X + step) - f(X - step)) / 2e-6 for step in steps])


@pytest.mark.parametrize("f", [smooth, recurrence, scanned, rolled, unrolled])
def test_reverse_and_forward(f):
    wanted = by_differences(f)
    if f is not recurrence:  # Tensors are not written by key
        assert np.allclose(pyop.grad(f)(X), wanted)
    assert np.allclose(pyop.compile(pyop.grad(f))(X), wanted)
    assert np.allclose(pyop.compile(lambda x, t: pyop.jvp(f, (x,), (t,))[1])(X, np.ones(4)), wanted.sum())


@pytest.mark.parametrize("f", [smooth, rolled])
def test_second_order(f):
    wanted = pyop.hessian(unrolled if f is rolled else f)(X)
    assert np.allclose(pyop.compile(pyop.hessian(f))(X), wanted)


def sized(x, n):
    return pyop.fori_loop(0, n, lambda i, y: np.sin(y) + x * 0.1, x * x).sum()


def until(x):
    def go(state):
        y, k = state
        return np.sin(y) + 0.5 * x, k + 1.0

    return pyop.while_loop(lambda state: state[1] < x[2] * 3.2, go, (x * x, np.float64(0.0)))[0].sum()


def chosen(x):
    return pyop.cond(x.sum() > 0.0, lambda: x * x[0], lambda: np.sin(x)).sum()


@pytest.mark.parametrize("f", [until, chosen, lambda x: chosen(-x)])
def test_what_the_arrays_decide(f):
    wanted = by_differences(f)
    assert np.allclose(pyop.compile(pyop.grad(f))(X), wanted)
    assert np.allclose(pyop.compile(lambda x, t: pyop.jvp(f, (x,), (t,))[1])(X, np.ones(4)), wanted.sum())
    assert np.allclose(pyop.grad(f)(X), wanted)
    h = pyop.hessian(f)(X)
    assert np.allclose(pyop.compile(pyop.hessian(f))(X), h)
    forward_of_reverse = pyop.compile(lambda x, t: pyop.jvp(pyop.grad(f), (x,), (t,))[1])
    assert np.allclose(forward_of_reverse(X, np.ones(4)), h.sum(1))


@pytest.mark.parametrize("count", [0, 1, 7, 100])
def test_a_bound_that_is_known_when_it_runs(count):
    compiled = pyop.compile(lambda x, n: pyop.grad(lambda x: sized(x, n[0]))(x))
    graph = pyop.trace(lambda x, n: pyop.grad(lambda x: sized(x, n[0]))(x), "float64[k]", "int64[1]").compile()
    wanted = by_differences(lambda x: sized(x, count))
    for found in (compiled(X, np.array([count])), graph(X, np.array([count]))):
        assert np.allclose(found, wanted)


def test_the_size_of_a_derivative_does_not_depend_on_the_number_of_iterations():
    def of(n, **options):
        def f(x):
            return pyop.fori_loop(0, n, lambda i, y: np.sin(y) * x + y, x * x, **options).sum()

        return len(pyop.trace(pyop.grad(f), "float64[4]"))

    assert of(20) == of(100_000) < 60
    assert of(20, checkpoint=True) == of(100_000, checkpoint=True)


def largest(graph):
    """The number of elements of the largest array of a graph, its loops included."""
    found = 0
    for node in graph.nodes:
        for value in node.outputs:
            sizes = value.shape or ()
            found = max([found, *([int(np.prod(sizes))] if all(type(n) is int for n in sizes) else [])])
        inner = getattr(node.function, "body", None) if node.kind == "py" else None
        found = max(found, largest(inner) if inner is not None else 0)
    return found


@pytest.mark.parametrize("count", [3, 4, 5, 16, 17, 100])
def test_checkpoints(count):
    def of(**options):
        def f(x):
            def step(y, part):
                y = np.sin(y) * x + 0.1 * y * part
                return y, y.sum()

            y = pyop.fori_loop(0, count, lambda i, y: np.sin(y) * x + y * y * 0.1 * i, x * 0.1, **options)
            last, sums = pyop.scan(step, y, np.linspace(0.0, 1.0, count), **options)
            return last.sum() + sums.sum()

        return f

    plain, sparing = pyop.compile(pyop.grad(of())), pyop.compile(pyop.grad(of(checkpoint=True)))
    assert np.allclose(plain(X * 0.1), sparing(X * 0.1), rtol=1e-13)
    assert np.allclose(pyop.compile(pyop.hessian(of(checkpoint=True)))(X * 0.1), pyop.hessian(of())(X * 0.1))


def test_checkpoints_store_little():
    def of(**options):
        def f(x):
            return pyop.fori_loop(0, 10_000, lambda i, y: np.sin(y) * x, x * x, **options).sum()

        return pyop.trace(pyop.grad(f), "float64[4]")

    assert largest(of()) == 4 * 10_000
    assert largest(of(checkpoint=True)) == 4 * 100


def test_elements_that_are_written_are_stored_not_their_array():
    def f(x):
        def body(i, y):
            y[i] = y[i - 1] * x[i]
            return y

        return pyop.fori_loop(1, 1000, body, x * 1.0).sum()

    assert largest(pyop.trace(pyop.grad(f), "float64[1000]")) == 1000


def test_an_array_that_is_written_is_put_back_and_not_stored():
    def f(x):
        def body(i, y):
            y[i] = np.sin(np.dot(y[:i], x[:i])) + y[i]
            return y

        return pyop.fori_loop(1, 1000, body, x * 1.0).sum()

    assert largest(pyop.trace(pyop.grad(f), "float64[1000]")) == 1000


def test_a_body_with_effects_has_no_rule():
    noisy = pyop.op(lambda x: x, "float64[4] -> float64[4]", stateful=True, name="noisy", grad="fd")

    def f(x):
        return pyop.fori_loop(0, 9, lambda i, y: noisy(y), x).sum()

    with pytest.raises(pyop.NoRule, match="effects"):
        pyop.trace(pyop.grad(f), "float64[4]")


def test_through_a_graph_that_was_traced():
    graph = pyop.trace(smooth, "float64[4]")
    assert np.allclose(pyop.grad(graph)(X), by_differences(smooth))
    assert np.allclose(pyop.jvp(graph, (X,), (np.ones(4),))[1], by_differences(smooth).sum())


@pytest.mark.parametrize("seed", range(24))
def test_generated(seed):
    text = program(seed)
    f = function(text)
    wanted = by_complex_steps(f, Y)
    for options in ({}, {"optimize": False}):
        assert np.allclose(pyop.compile(pyop.grad(f), **options)(Y), wanted, rtol=1e-9, atol=1e-10), text
    push = pyop.compile(lambda x, t: pyop.jvp(f, (x,), (t,))[1])
    assert np.allclose([push(Y, unit) for unit in np.eye(len(Y))], wanted, rtol=1e-9, atol=1e-10), text
    if seed < 8:
        text = program(seed, stops=False)
        f = function(text)
        steps = np.eye(len(Y)) * 1e-6
        differences = [(by_complex_steps(f, Y + step) - by_complex_steps(f, Y - step)) / 2e-6 for step in steps]
        assert np.allclose(pyop.compile(pyop.hessian(f))(Y), differences, rtol=1e-5, atol=1e-4), text


@pytest.mark.parametrize("seed", range(60))
def test_loops_that_write(seed):
    assert not writing.differs(seed), writing.made(seed)
    assert seed % 6 or not writing.second_differs(seed), writing.made(seed)


@pytest.mark.parametrize("name", MORE)
def test_as_people_write_them(name):
    f = function(MORE[name])
    wanted = by_complex_steps(f, Y)
    assert np.allclose(pyop.compile(pyop.grad(f))(Y), wanted, rtol=1e-9)
    push = pyop.compile(lambda x, t: pyop.jvp(f, (x,), (t,))[1])
    assert np.allclose(push(Y, np.ones(5)), wanted.sum(), rtol=1e-9)
    steps = np.eye(len(Y)) * 1e-6
    differences = [(by_complex_steps(f, Y + step) - by_complex_steps(f, Y - step)) / 2e-6 for step in steps]
    assert np.allclose(pyop.compile(pyop.hessian(f))(Y), differences, rtol=1e-4, atol=1e-5)
