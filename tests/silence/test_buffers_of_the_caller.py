"""Arrays that are not differentiated by, and are written into again before the backward pass."""

import re

import numpy as np
import pytest

import pyop

WANT = np.array([2.0, 4.0, 6.0])


def index_array(w, step):
    index = step(np.zeros(1, int))
    return sum((2 * (k + 1)) * w[index(k, k)].sum() for k in range(3))


def filled(buffer):
    """The buffer, filled anew at each use."""

    def use(k, value):
        buffer[...] = value
        return buffer

    return use


def one_hot(buffer):
    def use(k, _):
        buffer[...] = 0
        buffer[..., k] = 1
        return buffer

    return use


def outcome(run, *errors):
    """What comes back, or the text of a refusal."""
    try:
        return run()
    except errors as error:
        return "\n".join([str(error), *getattr(error, "__notes__", ())])


PROGRAMS = {
    "an index": lambda w: index_array(w, filled),
    "a choice": lambda w, m=None: sum(
        (2 * (k + 1)) * np.where(use(k, 0), w, 0.0).sum() for use in [one_hot(np.zeros(3, bool))] for k in range(3)
    ),
    "where=": lambda w: sum(
        (2 * (k + 1)) * np.sum(w, where=use(k, 0)) for use in [one_hot(np.zeros(3, bool))] for k in range(3)
    ),
    "einsum": lambda w: sum(
        (2 * (k + 1)) * np.einsum("i,i", w, use(k, 0)) for use in [one_hot(np.zeros(3))] for k in range(3)
    ),
    "a factor": lambda w: sum(
        (2 * (k + 1)) * (w * use(k, 0)).sum() for use in [one_hot(np.zeros(3))] for k in range(3)
    ),
    "a strided factor": lambda w: sum(
        (2 * (k + 1)) * (w * use(k, 0)).sum() for use in [one_hot(np.zeros((3, 2))[:, 0])] for k in range(3)
    ),
    "a matrix": lambda w: sum((2 * (k + 1)) * (use(k, 0) @ w) for use in [one_hot(np.zeros(3))] for k in range(3)),
}
WAYS = {
    "reverse": pyop.grad,
    "forward": lambda f: pyop.jacobian(f, mode="forward"),
    "compiled": lambda f: pyop.compile(pyop.grad(f)),
    "twice": lambda f: lambda x: pyop.hvp(lambda w: 0.5 * f(w) ** 2, (x,), (np.array([1.0, 0.0, 0.0]),)) / 2,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_buffer_that_is_filled_again_is_no_constant(program, way):
    got = outcome(lambda: WAYS[way](PROGRAMS[program])(np.array([0.5, -1.0, 2.0])), RuntimeError, TypeError)
    if isinstance(got, str):
        assert re.search("copy|argument|pyop.op", got)
    else:
        np.testing.assert_allclose(got, WANT)


@pytest.mark.parametrize("name", ["index", "choice", "where=", "einsum"])
def test_small_ones_are_right(name):
    program = next(PROGRAMS[key] for key in PROGRAMS if name in key)
    np.testing.assert_allclose(pyop.grad(program)(np.ones(3)), WANT)


@pytest.mark.parametrize("size", [1000, 20000])
@pytest.mark.parametrize("use", [lambda w, b: (w * b).sum(), lambda w, b: np.einsum("i,i", w, b)])
def test_large_ones_are_noticed(size, use):
    def f(w):
        buffer, total = np.empty(size), 0.0
        for k in range(3):
            buffer[:] = k
            total = total + use(w, buffer)
        return total

    got = outcome(lambda: pyop.grad(f)(np.ones(size)), RuntimeError)
    if isinstance(got, str):
        assert "copy" in got
    else:
        np.testing.assert_allclose(got, 3.0)


@pyop.op("float64[n] -> float64[n]")
def doubled(x):
    return x * 2


@doubled.vjp
def _(ct, x):
    ct *= 2
    return ct


class Doubled(pyop.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        g *= 2
        return g


@pytest.mark.parametrize("way", [lambda f: f, pyop.compile])
@pytest.mark.parametrize("double", [doubled, Doubled.apply])
def test_a_rule_does_not_write_into_the_cotangent_of_others(double, way):
    def f(a):
        y = a * 1.0
        return np.sum(double(y) + y)

    got = outcome(lambda: way(pyop.grad(f))(np.ones(3)), ValueError)
    if isinstance(got, str):
        assert "read-only" in got
        assert "makes a new array" in got
    else:
        np.testing.assert_allclose(got, 3.0)
