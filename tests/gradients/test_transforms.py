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
