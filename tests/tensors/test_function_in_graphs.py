"""A Function on the Values of a graph is a node with its own derivatives, whatever its forward computes with."""

import pickle

import numpy as np
import pytest
import scipy.special

import pyop
from pyop import NoRule

X = np.array([0.5, 1.25, 2.0])


class Sine(pyop.Function):
    """With ten times its derivative, to see whose is used."""

    @staticmethod
    def forward(ctx, x, k=2.0):
        ctx.save_for_backward(x)
        ctx.k = k
        return np.sin(x) * k

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 10 * g * np.cos(x) * ctx.k, None

    @staticmethod
    def jvp(ctx, t, k):
        return 10 * t


class Ranked(pyop.Function):
    """In two parts, with a result of integers."""

    @staticmethod
    def forward(a, b):
        return a * b, np.argsort(a)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs, output[1])

    @staticmethod
    def backward(ctx, g, _):
        a, b, _ = ctx.saved_tensors
        return g * b, 3 * g * a


class OfTree(pyop.Function):
    @staticmethod
    def forward(ctx, p, *, shift=0.0):
        ctx.save_for_backward(p["a"])
        return p["a"] * 2 + shift, p["b"][0].sum()

    @staticmethod
    def backward(ctx, g, h):
        (a,) = ctx.saved_tensors
        return {"a": 5 * g, "b": [h * a]}


class Digamma(pyop.Function):
    """Whose forward asks for real arrays."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return np.asarray([scipy.special.digamma(float(v)) for v in x])

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * scipy.special.polygamma(1, x)


PROGRAMS = {
    "keyword": lambda x: np.sum(Sine.apply(x, k=3.0) ** 2),
    "default": lambda x: np.sum(Sine.apply(x * 2) * x),
    "twice": lambda x: np.sum(Sine.apply(Sine.apply(x, 1.0), 1.0)),
    "several": lambda x: np.sum(Ranked.apply(x, x + 1)[0] * X),
    "integers": lambda x: np.sum(x[Ranked.apply(x, X)[1]] * X),
    "constant": lambda x: np.sum(Ranked.apply(X, x)[0]),
    "tree": lambda x: np.sum(OfTree.apply({"a": x, "b": [x * x]}, shift=1.0)[0]) * OfTree.apply({"a": X, "b": [x]})[1],
    "real arrays": lambda x: np.sum(Digamma.apply(x * x)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_gradients_are_those_at_arrays(name):
    f = PROGRAMS[name]
    value, gradient = pyop.value_and_grad(f)(X)
    for way in (
        pyop.compile(pyop.value_and_grad(f)),
        lambda x: pyop.value_and_grad(pyop.trace(f, "float64[3]"))(x),
        lambda x: pyop.value_and_grad(pickle.loads(pickle.dumps(pyop.trace(f, "float64[3]"))))(x),
        lambda x: (pyop.compile(f)(x), pyop.compile(lambda x: pyop.vjp(f, x)[1](np.ones(()))[0])(x)),
    ):
        found = way(X)
        np.testing.assert_allclose(found[0], value, rtol=1e-14)
        np.testing.assert_allclose(found[1], gradient, rtol=1e-14)


@pytest.mark.parametrize("name", ["keyword", "default", "twice"])
def test_tangents_are_those_at_arrays(name):
    f = PROGRAMS[name]
    expected = pyop.jvp(f, (X,), (X,))
    np.testing.assert_allclose(pyop.compile(lambda x: pyop.jvp(f, (x,), (x,)))(X), expected, rtol=1e-14)


def test_equal_calls_are_one_node_and_errors_name_the_function():
    graph = pyop.trace(lambda x: Sine.apply(x, 3.0) + Sine.apply(x, 3.0), "float64[n]")
    assert graph.compile().report()["merged"] >= 1
    with pytest.raises(NoRule, match="second derivative of Sine"):
        pyop.compile(pyop.hessian(PROGRAMS["keyword"]))(X)

    class Pair(pyop.Function):
        @staticmethod
        def forward(ctx, x):
            return np.asarray(float(x[0])), x

        @staticmethod
        def backward(ctx, g, h):
            return h

    with pytest.raises(TypeError, match=r"Pair returned 2 result.*pyop\.op"):
        pyop.compile(lambda x: Pair.apply(x) * 1.0)(X)
    w = pyop.Tensor(X, requires_grad=True)
    with pytest.raises(TypeError, match=r"cannot be part of a graph.*detach"):
        pyop.compile(lambda x: Ranked.apply(w, x)[0])(X)
