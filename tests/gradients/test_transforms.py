"""Gradients of functions, as functions: on arrays, on Values, of trees, of gradients."""

import gc
import math
import weakref

import numpy as np
import pytest

import pyop


def f(x, y):
    return np.sum(np.sin(x) * y / np.exp(x) - x)


def test_gradient_of_a_graph_is_a_graph_that_compiles():
    graph = pyop.trace(pyop.value_and_grad(f, (0, 1)), "float64[n]", "float64[n]")
    x, y = np.random.default_rng(0).random((2, 4))
    value, (dx, dy) = graph.compile()(x, y)
    assert value == f(x, y)
    np.testing.assert_allclose(dx, y * (np.cos(x) - np.sin(x)) / np.exp(x) - 1)
    np.testing.assert_allclose(dy, np.sin(x) / np.exp(x))


def test_what_a_function_closes_over_is_not_its_argument():
    def outer(x):
        return np.sum(pyop.grad(lambda z: np.sum(x * z * z))(x))

    x = np.array([1.0, 2.0])
    np.testing.assert_allclose(pyop.grad(outer)(x), 4 * x)


def test_function_without_a_rule_is_an_error_that_names_it_and_shows_what_to_do():
    agm = pytest.importorskip("scipy.special").agm
    told = r"scipy.special.agm has no gradient rule: give it one with pyop.defvjp\(scipy.special.agm"
    with pytest.raises(TypeError, match=told):
        pyop.grad(lambda x: np.sum(agm(x, 2.0)))(np.ones(2))
    with pytest.raises(TypeError, match=r"no gradient rule \(in node 'agm', created at .*\): give it one"):
        pyop.trace(pyop.grad(lambda x: np.sum(agm(x, 2.0))), "float64[n]")


# --- at arrays


def branching(x):
    return np.sum(x**3) if x[0] > 0 else -np.sum(x)


def test_control_flow_sees_numbers_at_any_order():
    x = np.array([2.0, -1.0])
    assert pyop.grad(branching)(x).tolist() == [12, 3]
    assert pyop.grad(branching)(-x).tolist() == [-1, -1]
    assert pyop.hessian(branching)(x).tolist() == [[12, 0], [0, -6]]
    assert pyop.hvp(branching, (x,), (np.ones(2),)).tolist() == [12, -6]
    assert pyop.jacobian(pyop.grad(branching), mode="forward")(x).tolist() == [[12, 0], [0, -6]]
    cube = lambda x: x**3 if x > 0 else x
    assert pyop.grad(pyop.grad(pyop.grad(cube)))(2.0) == 6
    assert pyop.jvp(lambda x: pyop.jvp(cube, (x,), (1.0,))[1], (2.0,), (1.0,)) == (12, 12)


def test_trees_auxiliary_results_and_several_arguments():
    def loss(parameters, data, *, scale=1.0):
        residual = data - parameters["a"] * scale + parameters["b"][0]
        return np.sum(residual**2), {"residual": residual, "name": "loss"}

    parameters, data = {"a": np.array([1.0, 2.0]), "b": [np.array(3.0)]}, np.array([0.5, 1.5])
    (value, aux), (by_parameters, by_data) = pyop.value_and_grad(loss, (0, 1), has_aux=True)(
        parameters, data, scale=2.0
    )
    residual = data - 2 * parameters["a"] + 3
    assert value == np.sum(residual**2)
    np.testing.assert_array_equal(aux["residual"], residual)
    assert (type(aux["residual"]), aux["name"]) == (np.ndarray, "loss")
    np.testing.assert_allclose(by_data, 2 * residual)
    np.testing.assert_allclose(by_parameters["a"], -4 * residual)
    np.testing.assert_allclose(by_parameters["b"][0], 2 * residual.sum())


def test_gradients_are_arrays_of_their_own():
    x, y = np.ones(2), np.ones(2)
    dx, dy = pyop.grad(lambda x, y: np.sum(x + y), (0, 1))(x, y)
    dx += 1
    assert dy.tolist() == [1, 1]
    ct = np.ones(2)
    (pulled,) = pyop.vjp(lambda x: x, x)[1](ct)
    pulled += 1
    assert ct.tolist() == [1, 1]


def test_pullback_may_be_called_again_and_jacobians_agree():
    x, y = np.array([1.0, 2.0]), np.array([[3.0, 4.0]])
    f = lambda x, y: {"product": x * y, "sum": np.sum(x)}
    value, pullback = pyop.vjp(f, x, y)
    assert value["product"].tolist() == [[3, 8]]
    for scale in (1.0, 2.0):
        dx, dy = pullback({"product": scale * np.ones((1, 2)), "sum": None})
        assert (dx / scale).tolist() == [3, 4]
        assert (dy / scale).tolist() == [[1, 2]]
    for mode in ("reverse", "forward"):
        here = pyop.jacobian(f, (0, 1), mode=mode)(x, y)
        specs = [pyop.Spec.of(x), pyop.Spec.of(y)]
        there = pyop.trace(pyop.jacobian(f, (0, 1), mode=mode), *specs).compile()(x, y)
        for key in ("product", "sum"):
            for a, b in zip(here[key], there[key], strict=True):
                np.testing.assert_array_equal(a, b)


def test_what_cannot_be_differentiated_says_so():
    with pytest.raises(TypeError, match=r"argument 0 is int64\[2\].*convert it with .astype"):
        pyop.grad(np.sum)(np.arange(2))
    with pytest.raises(TypeError, match=r"returns float64\[2\]: sum it"):
        pyop.grad(lambda x: x * 2)(np.ones(2))
    with pytest.raises(TypeError, match="argnums=1, but the function was called with 1"):
        pyop.grad(np.sum, 1)(np.ones(2))
    with pytest.raises(TypeError, match="history would be lost"):
        pyop.grad(lambda x: math.exp(x[0]))(np.ones(2))


def test_graphs_are_transformed_as_graphs():
    graph = pyop.trace(lambda x: np.sum(x**3), "float64[n]")
    x = np.array([1.0, 2.0])
    assert pyop.grad(graph)(x).tolist() == [3, 12]
    assert pyop.hessian(graph)(x).tolist() == [[6, 0], [0, 12]]
    assert pyop.hvp(graph, (x,), (np.ones(2),)).tolist() == [6, 12]
    assert pyop.jvp(pyop.grad(graph), (x,), (np.ones(2),))[1].tolist() == [6, 12]


def twenty(x, y):
    return np.mean(np.tanh(x * y + 1) * np.exp(-x) - x / (1.0 + y * y)) + np.sum(np.sqrt(x * x + 2) * y, axis=0)


@pytest.mark.parametrize("dtypes", [("f8", "f8"), ("f4", "f4"), ("f4", "f8")], ids="-".join)
def test_compiled_gradient_of_an_expression_never_calls_python_and_has_the_right_bits(dtypes):
    """The seed of a backward pass is a number that costs nothing, and what marks the arguments is gone."""
    x, y = (np.random.default_rng(0).random(50).astype(dtype) for dtype in dtypes)
    specs = [pyop.Spec(a.dtype, ("n",)) for a in (x, y)]
    plan = pyop.trace(pyop.grad(twenty, (0, 1)), *specs).compile()
    assert "calls Python" not in str(plan.explain())
    dx, dy = plan(x, y)
    # The same with a seed that is an array like any other.
    seed = np.ones((), np.result_type(x, y))
    ax, ay = pyop.trace(lambda x, y, ct: pyop.vjp(twenty, x, y)[1](ct), *specs, pyop.Spec.of(seed)).compile()(
        x, y, seed
    )
    for found, expected, like in ((dx, ax, x), (dy, ay, y)):
        assert found.dtype == like.dtype
        np.testing.assert_array_equal(found, expected)


def test_gradient_of_a_sum_alone_has_the_shape_of_its_argument():
    plan = pyop.trace(pyop.grad(lambda x, y: np.sum(x) + np.sum(x + y), (0, 1)), "float32[n,m]", "float64[m]").compile()
    dx, dy = plan(np.zeros((2, 3), np.float32), np.zeros(3))
    assert dx.dtype == np.float32
    assert dx.tolist() == [[2, 2, 2], [2, 2, 2]]
    assert dy.tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    "f",
    [
        lambda x, y: np.mean(np.sum(x * y, axis=1)),
        lambda x, y: -np.mean(np.mean(x * y, axis=1) * 2),
        lambda x, y: np.mean(np.sum(np.sum(x[None] * y, axis=0), axis=-1)),
        lambda x, y: np.mean(np.sum(x * y, axis=0, where=x > 0)),
        lambda x, y: np.sum(x[:, 0] + np.sum(y * x, axis=1)),
        lambda x, y: np.sum(x * y) / x.shape[0],
        lambda x, y: np.sum(x * y / x.shape[0]) * y.shape[1] - y[0, 0] * x.size,
    ],
)
def test_reductions_of_reductions_over_sizes_that_are_not_known(f):
    x, y = np.random.default_rng(0).normal(size=(2, 4, 3))
    gradient = pyop.grad(f, argnums=(0, 1))
    graph = pyop.trace(gradient, "float64[n,m]", "float64[n,m]")
    for got, expected in zip(graph.compile()(x, y), gradient(x, y), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-14)


def test_compiled_functions_are_recorded():
    f = pyop.compile(lambda x: np.sum(x**3))
    assert pyop.grad(f)(np.array([1.0, 2.0])).tolist() == [3, 12]


def test_nothing_is_left_behind():
    """What a transformation makes dies with its last reference, without the collector of cycles."""
    kept = []

    def f(x):
        y = np.exp(x) * np.sum(x)
        kept.append(weakref.ref(y.grad_fn))
        return np.sum(y**2)

    gc.collect()
    gc.disable()
    try:
        x = np.array([0.5, 1.0])
        pyop.value_and_grad(f)(x)
        pyop.hessian(f)(x)
        pyop.jvp(lambda x: np.sum(np.sin(x)), (x,), (x,))
        _, pullback = pyop.vjp(f, x)
        assert kept[-1]() is not None
        pullback(np.ones(()))
        del pullback
        assert [ref() for ref in kept] == [None] * len(kept)
    finally:
        gc.enable()


# --- batches

W, X = np.random.default_rng(1).random((3, 4)), np.random.default_rng(2).random((5, 4))


@pytest.mark.parametrize(
    "f",
    [
        lambda w, x: np.sum(np.tanh(w @ x)) ** 2,
        lambda w, x: np.max(w * x, axis=0) - np.mean(x),
        lambda w, x: x @ w.T if isinstance(w, np.ndarray) else x @ np.transpose(w),
        lambda w, x: np.add.reduce(w + x) + np.sort(x),
        lambda w, x: np.sum(np.outer(x, x) @ np.transpose(w), axis=(0, -1), keepdims=True),
        lambda w, x: pyop.grad(lambda w, x: np.sum(np.sin(w @ x)), 1)(w, x),
    ],
)
def test_vmap_is_a_loop(f):
    expected = np.stack([f(W, x) for x in X])
    batched = pyop.vmap(f, (None, 0))
    np.testing.assert_allclose(batched(W, X), expected, rtol=1e-13)
    np.testing.assert_allclose(
        pyop.trace(batched, "float64[3,4]", "float64[5,4]").compile()(W, X), expected, rtol=1e-13
    )
    both = pyop.vmap(f, (0, 1))(np.stack([W] * 5), X.T)
    np.testing.assert_allclose(both, expected, rtol=1e-13)


def test_vmap_of_graphs_and_of_unknown_numbers():
    graph = pyop.trace(lambda x: np.sum(x * x), "float64[4]")
    np.testing.assert_allclose(pyop.vmap(graph)(X), np.sum(X * X, axis=1))
    plan = pyop.trace(pyop.vmap(lambda x: np.sum(np.sin(x) * 2)), "float64[n,4]").compile()
    np.testing.assert_allclose(plan(X), np.sum(np.sin(X) * 2, axis=1))
    with pytest.raises(TypeError, match="not among its arguments: pass them"):
        pyop.vmap(lambda w: pyop.grad(lambda x: np.sum(w * x))(np.ones(4)))(X)
    with pytest.raises(TypeError, match="n, is not known while the graph is built"):
        pyop.trace(pyop.vmap(np.sort), "float64[n,4]")


def test_the_gradient_of_a_graph_has_the_steps_of_its_function():
    def loss(x):
        return np.sum(np.exp(x[1:]).reshape(-1) * 2.0)

    graph = pyop.trace(loss, "float64[5]")
    steps = [
        str(pyop.trace(pyop.value_and_grad(given), "float64[5]").compile().explain()).splitlines()[0]
        for given in (loss, graph)
    ]
    assert steps[0] == steps[1]
    assert "6 native, 0 calls of Python" in steps[1]


def test_examples_of_a_batch_as_arguments_of_compiled_functions():
    one = pyop.compile(lambda x: np.sqrt(x) * 2)
    declared = pyop.compile(lambda x: np.sqrt(x) * 2, "float64[3]")
    several = pyop.compile(lambda p, t: p["a"] * t + p["b"][0])
    x = np.arange(6.0).reshape(2, 3)
    for _ in range(2):
        for f in (one, declared):
            np.testing.assert_array_equal(pyop.vmap(f)(x), np.sqrt(x) * 2)
        np.testing.assert_array_equal(pyop.vmap(several, (0, None))({"a": x, "b": x}, 2.0), x * 2.0 + x[:, :1])
        one(x[0]), declared(x[0]), several({"a": x[0], "b": x[1]}, 2.0)
