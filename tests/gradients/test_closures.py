"""What a differentiated function has in its closure: Tensors of the caller, examples of a batch."""

import numpy as np
import pytest

import pyop

X = np.array([0.7, -1.2, 2.1])
ONE = np.array(1.0)

CLOSED = {
    "grad": lambda w: pyop.grad(lambda a: np.sum(a * a * w))(X),
    "value_and_grad": lambda w: pyop.value_and_grad(lambda a: np.sum(a * a * w))(X)[1],
    "vjp": lambda w: pyop.vjp(lambda a: a * a * w, X)[1](np.ones(3))[0],
    "jvp": lambda w: pyop.jvp(lambda a: a * a * w, (X,), (np.ones(3),))[1],
    "jacobian": lambda w: np.sum(pyop.jacobian(lambda a: a * a * w)(X), axis=0),
    "jacobian forward": lambda w: np.sum(pyop.jacobian(lambda a: a * a * w, mode="forward")(X), axis=0),
    "hvp": lambda w: pyop.hvp(lambda a: np.sum(a**3 * w) / 3, (X,), (np.ones(3),)),
    "hessian": lambda w: np.sum(pyop.hessian(lambda a: np.sum(a**3 * w) / 3)(X), axis=0),
}


@pytest.mark.parametrize("way", CLOSED)
def test_derivatives_are_recorded_for_the_callers_tensors(way):
    w = pyop.Tensor(np.ones(3), requires_grad=True)
    np.sum(CLOSED[way](w) ** 2).backward()
    np.testing.assert_allclose(w.grad, 8 * X**2)


@pytest.mark.parametrize("way", CLOSED)
def test_they_are_arrays_where_the_caller_has_none(way):
    assert type(CLOSED[way](np.ones(3))) is np.ndarray
    outer = pyop.grad(lambda b: np.sum(CLOSED[way](b) ** 2))(np.ones(3))
    assert type(outer) is np.ndarray
    np.testing.assert_allclose(outer, 8 * X**2)
    moved = pyop.jvp(CLOSED[way], (np.ones(3),), (np.ones(3),))[1]
    assert type(moved) is np.ndarray
    np.testing.assert_allclose(moved, 2 * X)


TRANSFORMED = {
    "grad": lambda f, b: pyop.grad(f)(b),
    "vjp": lambda f, b: pyop.vjp(f, b)[1](ONE)[0],
    "jvp": lambda f, b: pyop.jvp(f, (b,), (ONE,))[1],
    "jacobian": lambda f, b: pyop.jacobian(f)(b),
    "jacobian forward": lambda f, b: pyop.jacobian(f, mode="forward")(b),
    "hessian": lambda f, b: pyop.hessian(f)(b),
    "hvp": lambda f, b: pyop.hvp(f, (b,), (ONE,)),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("of_example", [False, True])
@pytest.mark.parametrize("way", TRANSFORMED)
def test_examples_of_a_batch_in_the_closure_are_refused(way, of_example, compiled):
    transformed = TRANSFORMED[way]
    f = pyop.vmap(lambda a: transformed(lambda b: b * b * a, a if of_example else np.array(1.5)))
    with pytest.raises(TypeError, match="pass them as arguments"):
        (pyop.compile(f) if compiled else f)(X)


@pytest.mark.parametrize("size", [3, 200])
def test_a_result_that_was_saved_for_its_own_tangent_and_then_written(size):
    def f(x):
        y = x * 1.0
        y /= 1 + x**2
        y **= 2
        return y

    def g(x):
        return (x / (1 + x**2)) ** 2

    x, ones = np.linspace(-1.0, 2.0, size), np.ones(size)
    for h in (f, g):
        second = pyop.grad(lambda x, h=h: np.sum(pyop.jvp(h, (x,), (ones,))[1]))(x)
        np.testing.assert_allclose(second, pyop.hvp(lambda x: np.sum(g(x)), (x,), (ones,)), atol=1e-12)
