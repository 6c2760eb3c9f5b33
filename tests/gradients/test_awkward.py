"""Gradients where formulas are easily wrong: zeros, masks, arguments that a rule may overlook, tangents of tangents."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import pyop
from pyop import NoRule

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


def test_tangents_have_the_shape_of_their_values():
    x, y, t = np.array([[2.0]]), np.ones((3, 1)), np.ones((1, 1))
    c = np.array([[True, False, True]])
    cases = [
        lambda x: np.sum(np.where(c, x, y)),
        lambda x: np.where(c, x, y).reshape(9) @ np.arange(9.0),
        lambda x: np.cumsum(np.where(c, x, y), axis=0),
    ]
    for f in cases:
        found = pyop.jvp(f, (x,), (t,))[1]
        np.testing.assert_allclose(found, slope(f, x, t), rtol=1e-6)
        x_ = pyop.Tensor(x, requires_grad=True)
        found = pyop.autograd.jvp(f, (x_,), (np.ones((1, 1)),))[1]
        np.testing.assert_allclose(found.detach().numpy(), slope(f, x, t), rtol=1e-6)


def test_clip_between_equal_bounds_counts_a_gradient_once():
    x, one = np.array([0.0, 1.0, 2.0]), np.ones(3)
    inside = pyop.grad(lambda x: np.sum(np.clip(x, one, one)))(x)
    below = pyop.grad(lambda lo: np.sum(np.clip(x, lo, one)))(one)
    above = pyop.grad(lambda hi: np.sum(np.clip(x, one, hi)))(one)
    np.testing.assert_array_equal(inside + below + above, one)


def test_products_of_shapes_that_differ():
    a, b = rng.standard_normal((2, 3)), rng.standard_normal((3, 2))
    np.testing.assert_allclose(pyop.grad(lambda a: np.vdot(a, b))(a), b.reshape(2, 3))
    np.testing.assert_allclose(pyop.grad(lambda b: np.vdot(a, b))(b), a.reshape(3, 2))
    u, v = rng.standard_normal((3, 2)), rng.standard_normal((4, 3, 2))
    rows = rng.standard_normal((3, 4))
    for f, x in [
        (lambda u: np.sum(np.einsum("i...,j...i->j...", u, v.transpose(0, 2, 1)) ** 2), u),
        (lambda u: np.sum(np.einsum("ij,ij->i", u, rows) ** 2), rng.standard_normal((3, 1))),
    ]:
        t = rng.standard_normal(x.shape)
        np.testing.assert_allclose(np.sum(pyop.grad(f)(x) * t), slope(f, x, t), rtol=1e-6)


def test_powers_of_zero_and_repeats_of_numbers():
    np.testing.assert_array_equal(pyop.grad(lambda z: np.real(np.sum(z**0)))(np.array([1 + 2j, 0j])), [0, 0])
    assert pyop.grad(lambda x: np.sum(np.repeat(x, 3, axis=0)))(np.array(2.0)) == 3


def test_tangents_of_integers_are_none():
    x = np.array([1.5, 2.5])
    found = pyop.jvp(lambda x: x * x.astype(int), (x,), (np.ones(2),))[1]
    np.testing.assert_array_equal(found, [1, 2])


@pytest.mark.filterwarnings("ignore:Casting complex")
@pytest.mark.parametrize("name", ["prod", "var", "std", "cumprod", "maximum", "sqrt"])
def test_imaginary_parts_that_a_dtype_drops_are_refused(name):
    z = np.array([1 + 2j, 3 - 1j])
    extra = {"dtype": "d"} | ({"casting": "unsafe"} if name in ("maximum", "sqrt") else {})
    others = (z,) if name == "maximum" else ()
    f = lambda z: np.sum(getattr(np, name)(z, *others, **extra))
    for compute in (pyop.grad(f), lambda z: pyop.jvp(f, (z,), (z,))):
        with pytest.raises((TypeError, NotImplementedError)):
            compute(z)


def test_einsum_of_one_element_along_a_letter():
    a, b = rng.standard_normal((1, 3)), rng.standard_normal((1, 3))
    gradient = pyop.grad(lambda a: np.sum(np.einsum("...i,i...->...", a, b)))
    wanted = np.full((1, 3), b.sum())
    np.testing.assert_allclose(gradient(a), wanted)
    np.testing.assert_allclose(pyop.compile(gradient)(a), wanted)


@pytest.mark.parametrize("triangle", [np.tril, np.triu])
def test_the_triangle_of_a_row(triangle):
    weights = rng.standard_normal((3, 3))
    gradient = pyop.grad(lambda x: np.sum(triangle(x) * weights))
    wanted = triangle(weights).sum(axis=0)
    np.testing.assert_allclose(gradient(np.ones(3)), wanted)
    np.testing.assert_allclose(pyop.compile(gradient)(np.ones(3)), wanted)


def test_edges_that_are_computed_are_no_constants():
    x, edges = np.array([1.25, 2.5, 0.75]), np.array([0.0, 1.0, 2.0, 3.0])

    def counted(x):
        return np.sum(np.histogram(x, edges)[0] * x) + np.sum(np.histogram(x, bins=edges)[1])

    for way in (pyop.grad, lambda f: pyop.compile(pyop.grad(f))):
        assert way(counted)(x).tolist() == [1, 1, 1]
        for f in (
            lambda x: np.sum(np.histogram(x, bins=3)[1]),
            lambda x: np.sum(np.histogram_bin_edges(x)),
            lambda x: np.sum(np.histogram(x, edges, density=True)[0]),
            lambda x: np.sum(np.histogram(np.ones(3), edges, weights=x)[0]),
        ):
            with pytest.raises(pyop.NoRule, match=r"given \(bins=edges\).*stop_gradient"):
                way(f)(x)
    assert pyop.jvp(counted, (x,), (np.ones(3),))[1] == 3


def test_two_arguments_that_are_one_array_are_told_apart():
    x = np.array([1.25, 2.5, 0.75])
    for f in (lambda a, b: np.sum(np.hypot(a, b)), lambda a, b: np.sum(np.arctan2(a, b * b))):
        mixed = pyop.jacobian(pyop.grad(f, 0), 1)
        np.testing.assert_array_equal(mixed(x, x), mixed(x, x.copy()))
        assert np.any(mixed(x, x))

        def outer(b, f=f):
            return np.sum(pyop.grad(f)(x, b))  # b is no argument of the inner derivative

        np.testing.assert_allclose(pyop.jvp(outer, (x,), (np.ones(3),))[1], np.sum(mixed(x, x)), rtol=1e-12)


EDGES = np.array([-2.0, 0.0, 0.5, 3.0])
TALL = np.eye(4)[:, :2] + 0.1 * X[:2].T


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (lambda x: np.bincount(np.array([0, 2, 2, 1]), x, 5), np.array([1.0, 0.5, -2.0, 3.0])),
        (lambda x: np.std(x), np.array([2.0])),
        (lambda x: np.nanstd(x, axis=()), X),
        (lambda x: np.linalg.lstsq(x, np.array([1.0, -2.0, 0.5, 3.0]), rcond=None)[1], TALL),
        (lambda x: np.linalg.lstsq(x, np.ones((4, 2)), rcond=None)[3], TALL),
        (lambda x: np.atleast_1d(x[0], x)[1], X[0]),
        (lambda x: np.atleast_2d(x, x * x)[0], X[0]),
        (lambda x: np.atleast_3d(x, 2.0)[0], X[0]),
        (lambda x: np.clip(x, a_min=x[::-1], a_max=1.0), np.array([0.1, -0.7, 2.0])),
        (lambda x: np.pad(x, 1, mode="empty")[1:-1, 1:-1], X),
        (lambda x: np.real(np.fft.fft2(x, s=(3,), axes=(0,))), X),
        (lambda x: np.quantile(x, q=[0.3], axis=(0,)), X),
        (lambda x: np.real(np.log(x, dtype=complex)), np.array([-1.0, 2.0])),
        (lambda x: np.real(np.arcsin(x, dtype=complex)), np.array([-1.5, 0.3])),
        (lambda x: np.abs(x, dtype=float), X),
        (lambda x: np.divmod(x, 0.7, casting="same_kind")[1], X),
    ],
)  # fmt: skip
def test_what_once_was_silent_or_obscure(f, x):
    rng = np.random.default_rng(2)
    ct, t = rng.standard_normal(np.shape(f(x))), rng.standard_normal(x.shape)
    want = np.vdot(ct, slope(f, x, t))
    for wrap in (lambda g: g, pyop.compile):
        back = wrap(lambda z: pyop.vjp(f, z)[1](ct)[0])(x)
        forth = wrap(lambda z: pyop.jvp(f, (z,), (t,))[1])(x)
        assert np.vdot(back, t) == pytest.approx(want, rel=1e-6, abs=1e-8)
        assert np.vdot(ct, forth) == pytest.approx(want, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize(
    ("f", "remedy"),
    [
        (lambda x: np.abs(x, where=x > 0), r"np.where\(mask, result, other\)"),
        (lambda x: np.modf(x, where=x > 0)[0], r"np.where\(mask, result, other\)"),
        (lambda x: np.piecewise(x, [x > 0], [1.0]), "np.where or np.select"),
        (lambda x: np.insert(x, 1, 2.0), "np.concatenate"),
        (lambda x: np.cov(x, x), "np.stack or np.concatenate"),
        (lambda x: np.nansum(x, where=np.array([True] * 4)), r"np.nansum\(where=...\) .* leave out"),
        (lambda x: np.nanprod(x * 1j, dtype=float), "use np.real"),
        (lambda x: np.quantile(x, 0.3, method="lower"), "np.sort"),
        (lambda x: np.pad(x, 1, mode="reflect", reflect_type="odd"), "use a mode that copies"),
    ],
)
def test_refusals_say_what_to_write(f, remedy):
    x = np.array([0.3, 1.5, -0.2, 2.0])
    for wrap in (lambda g: g, pyop.compile):
        with pytest.raises(NoRule, match=remedy), np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wrap(pyop.grad(lambda z: np.sum(np.real(f(z)))))(x)


def test_counts_of_a_histogram_are_constant():
    x = np.array([0.3, 1.5, -0.2, 2.0])
    for wrap in (lambda g: g, pyop.compile):
        got = wrap(pyop.grad(lambda z: np.sum(np.histogram(z, EDGES)[0] * z[0])))(x)
        np.testing.assert_allclose(got, [4.0, 0.0, 0.0, 0.0])


@pytest.mark.parametrize("order", "CFAK")
@pytest.mark.parametrize("layout", [np.asarray, np.asfortranarray])
def test_orders_of_memory(order, layout):
    x = layout(X)
    weights = np.arange(12.0) ** 2
    for f in (lambda x: np.ravel(x, order), lambda x: x.ravel(order), lambda x: np.copy(x, order).ravel("A")):
        want = np.empty_like(x)
        for k in np.ndindex(x.shape):
            one = np.zeros_like(x)
            one[k] = 1.0
            want[k] = np.sum(f(one) * weights)
        total = lambda x, f=f: np.sum(f(x) * weights)
        np.testing.assert_allclose(pyop.grad(total)(x), want)
        np.testing.assert_allclose(pyop.jvp(total, (x,), (X,))[1], np.sum(want * X))
    if order in "AK":
        with pytest.raises(NoRule, match='use order="C"'):
            pyop.trace(pyop.grad(lambda x: np.sum(np.ravel(x, order) * weights)), "float64[3,4]")
