"""Gradients where formulas are easily wrong: zeros, masks, arguments that a rule may overlook, tangents of tangents."""

from __future__ import annotations

import numpy as np
import pytest

import pyop

rng = np.random.default_rng(8)
X = rng.standard_normal((3, 4))
ZEROS = np.array([[0.0, 2.0, -1.0, 3.0], [0.0, 0.0, 4.0, 1.0], [1.0, -2.0, 0.5, 0.0]])
MASK = np.array([[True, False, True, True], [True, True, False, False], [True, False, False, True]])
COLUMN = np.full((3, 1), 0.7)


def slope(f, x, t, step=1e-5):
    return (np.asarray(f(x + step * t)) - np.asarray(f(x - step * t))) / (2 * step)


FUNCTIONS = {
    "prod of zeros": (lambda x: np.prod(x, axis=1), ZEROS),
    "prod of zeros, all": (lambda x: np.prod(x[:2], axis=(0, -1), keepdims=True), ZEROS),
    "prod, where and initial": (lambda x: np.prod(x, axis=0, where=MASK, initial=2.0), ZEROS),
    "cumprod of zeros": (lambda x: np.cumprod(x, axis=1), ZEROS),
    "var of a mean": (lambda x: np.var(x, axis=1, mean=COLUMN), X),
    "std of a mean, where": (lambda x: np.std(x, axis=1, mean=COLUMN, where=MASK, ddof=0.5), X),
    "logaddexp.reduce, where": (lambda x: np.logaddexp.reduce(x, axis=1, where=MASK, initial=-3.0), X),
    "maximum.reduce, where": (lambda x: np.maximum.reduce(x, axis=1, where=MASK, initial=-9.0), X),
    "quantiles in two dimensions": (lambda x: np.quantile(x, [[0.1, 0.2], [0.5, 1.0]], axis=0), X),
    "sinc beside zero": (np.sinc, np.array([0.0, 1e-9, -1e-3, 0.049, 0.051, 1.0])),
    "power of zeros": (lambda x: np.power(x, np.array([1.0, 2.0, 3.0, 4.0])), ZEROS),
    "interp in lists": (lambda x: np.interp(x, [-1.0, 0.5, 2.0], [1.0, 3.0, 2.0]), np.array([-1.5, 0.3, 1.7, 2.5])),
    "outer with a list": (lambda x: np.power.outer(x, [0.0, 1.0, 2.0]), np.array([1.5, 0.5])),
    "no elements": (lambda x: np.sum(np.sin(x) * x, axis=0), np.ones((0, 3))),
    "norm, a row of zeros": (lambda x: np.linalg.norm(x, axis=1), np.array([[0.0, 0.0], [3.0, 4.0]])),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_are_those_of_differences(name):
    f, x = FUNCTIONS[name]
    t = rng.standard_normal(x.shape)
    if name.startswith("norm"):
        t[0] = 0.0  # there it has a corner
    ct = rng.standard_normal(np.shape(f(x)))
    gradient = lambda z: pyop.vjp(f, z)[1](ct)[0]
    plan = pyop.trace(lambda z, u: (gradient(z), pyop.jvp(gradient, (z,), (u,))[1]), *[pyop.Spec.of(x)] * 2).compile()
    in_graph, second_in_graph = plan(x, t)
    want, second = np.vdot(ct, slope(f, x, t)), slope(gradient, x, t)
    for found in (gradient(x), in_graph):
        assert found.shape == x.shape
        assert np.vdot(found, t) == pytest.approx(want, rel=1e-7, abs=1e-7)
    assert np.vdot(ct, pyop.jvp(f, (x,), (t,))[1]) == pytest.approx(want, rel=1e-7, abs=1e-7)
    for found in (pyop.jvp(gradient, (x,), (t,))[1], pyop.vjp(gradient, x)[1](t)[0], second_in_graph):
        np.testing.assert_allclose(found, second, rtol=1e-6, atol=1e-6 * max(1.0, np.abs(second).max(initial=0.0)))


@pytest.mark.parametrize("name", [name for name in ("matmul", "matvec", "vecmat") if hasattr(np, name)])
def test_axes_that_a_rule_does_not_know_are_an_error(name):
    b = np.ones((3, 3)) if name != "matvec" else np.ones(3)
    axes = {"matmul": [(1, 0), (0, 1), (0, 1)], "matvec": [(1, 0), 0, 0], "vecmat": [0, (1, 0), 0]}[name]
    a = np.ones(3) if name == "vecmat" else np.ones((3, 3))
    with pytest.raises(TypeError, match=rf"np.{name}\(axes=...\) has no gradient rule"):
        pyop.grad(lambda x: np.sum(getattr(np, name)(x, b, axes=axes)))(a)


# --- forward mode through a recorded run backward


def test_tangents_pass_through_saved_results():
    x = np.array([0.3, 0.7])
    for f, second in (
        (np.exp, np.exp),
        (np.sqrt, lambda x: -0.25 * x**-1.5),
        (lambda x: 1 / x, lambda x: 2 / x**3),
        (lambda x: np.linalg.norm(np.stack([x, x])) ** 2, lambda x: np.full(2, 4.0)),
    ):
        found = pyop.jvp(pyop.grad(lambda x, f=f: np.sum(f(x))), (x,), (np.ones(2),))[1]
        np.testing.assert_allclose(found, second(x))
    hessian = pyop.jacobian(pyop.grad(lambda x: np.exp(x[0]) * x[1] ** 2), mode="forward")(x)
    a, b = np.exp(0.3), 0.7
    np.testing.assert_allclose(hessian, [[a * b * b, 2 * a * b], [2 * a * b, 2 * a]])


class Exp(pyop.Function):
    @staticmethod
    def forward(ctx, x):
        y = np.exp(x)
        ctx.save_for_backward(y)
        ctx.save_for_forward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]

    @staticmethod
    def jvp(ctx, t):
        return t * ctx.saved_tensors[0]


class Square(pyop.Function):
    """Its backward reads something that forward computed on the way."""

    @staticmethod
    def forward(ctx, x):
        twice = 2 * x
        ctx.save_for_backward(twice)
        ctx.save_for_forward(twice)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]

    @staticmethod
    def jvp(ctx, t):
        return t * ctx.saved_tensors[0]


class Once(Square):
    @staticmethod
    @pyop.autograd.once_differentiable
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


def test_tangents_pass_through_what_a_function_saved():
    x = np.array([0.3, 0.7])
    found = pyop.jvp(pyop.grad(lambda x: np.sum(Exp.apply(x))), (x,), (np.ones(2),))[1]
    np.testing.assert_allclose(found, np.exp(x))


@pytest.mark.parametrize(
    ("function", "told"),
    [(Square, "which forward computed on the way"), (Once, "is marked once_differentiable")],
)
def test_where_a_tangent_would_be_lost_there_is_an_error(function, told):
    x = np.array([0.3, 0.7])
    with pytest.raises(RuntimeError, match=told):
        pyop.jvp(pyop.grad(lambda x: np.sum(function.apply(x))), (x,), (np.ones(2),))
    np.testing.assert_allclose(pyop.grad(lambda x: np.sum(function.apply(x)))(x), 2 * x)


def test_a_gradient_inside_of_a_run_forward_has_to_be_recorded():
    def gradient(x, create_graph):
        z = pyop.Tensor(np.zeros(2), requires_grad=True) + x
        leaf = x if x.requires_grad else x.requires_grad_()
        return pyop.autograd.grad([np.sum(np.exp(leaf))], [leaf], create_graph=create_graph)[0] + 0 * z

    x = pyop.Tensor(np.array([0.3, 0.7]))
    _, tangent = pyop.autograd.jvp(lambda x: gradient(x, True), (x,), (np.ones(2),))
    np.testing.assert_allclose(tangent.numpy(), np.exp([0.3, 0.7]))
    with pytest.raises(RuntimeError, match=r"inside of jvp, .* needs create_graph=True"):
        pyop.autograd.jvp(lambda x: gradient(x, False), (x,), (np.ones(2),))


def test_tangents_are_let_go_of_when_the_run_forward_is_over():
    nodes = []

    def f(x):
        y = np.exp(x)
        nodes.append(y.grad_fn)
        return y

    x = pyop.Tensor(np.array([0.3]), requires_grad=True)
    pyop.autograd.jvp(f, (x,), (np.ones(1),))
    assert nodes[0]._tangents is None
