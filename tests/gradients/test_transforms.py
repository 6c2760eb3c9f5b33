"""Gradients of functions, as functions: on arrays, on Values, of trees, of gradients."""

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
    told = r"np.i0 has no gradient rule \(in node 'i0', created at .*\): give it one with pyop.defvjp\(np.i0"
    with pytest.raises(TypeError, match=told):
        pyop.grad(lambda x: np.sum(np.i0(x)))(np.ones(2))


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
