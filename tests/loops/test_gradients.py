"""Derivatives through loops in graphs: those of the Python loop."""

from __future__ import annotations

import numpy as np
import pytest

import pyop

X = np.array([0.5, -1.25, 2.0, 3.5])


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


def test_what_has_no_rule_says_what_to_do():
    def f(x):
        return pyop.while_loop(lambda y: y.sum() < 9.0, lambda y: y * 2, x * x).sum()

    def g(x):
        return pyop.cond(x.sum() > 0, lambda: x * 2, lambda: x * x).sum()

    with pytest.raises(pyop.NoRule, match="number of iterations"):
        pyop.trace(pyop.grad(f), "float64[4]")
    with pytest.raises(pyop.NoRule, match=r"np\.where"):
        pyop.trace(pyop.grad(g), "float64[4]")
    assert np.allclose(pyop.grad(g)(X), 2.0)
