"""Functions that compute on threads of their own, differentiated, and derivatives that are taken there."""

import threading

import numpy as np
import pytest

import pyop

X = np.array([0.7, -1.2, 2.1])
T = np.array([1.0, 0.5, 2.0])
ONES = np.ones(3)


def on_a_thread(function):
    found = []

    def work():
        try:
            found.append(function())
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if isinstance(found[0], Exception):
        raise found[0]
    return found[0]


class Square(pyop.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * ctx.saved_tensors[0] * g

    @staticmethod
    def jvp(ctx, t):
        return 2 * ctx.saved_tensors[0] * t


def squared(x):
    return np.sum(x**2 * X)


# All of them are the sum of x^2 X.
INSIDE = {
    "operators": lambda x: np.sum(x * x * X),
    "a Function": lambda x: np.sum(Square.apply(x) * X),
    "a rule in Python": lambda x: np.sum(np.diff(np.cumsum(np.append(0.0, x * x)))[:3] * X),
    "in place": lambda x: np.sum(doubled(x) * X / 2),
    "grad": lambda x: np.sum(pyop.grad(lambda b: np.sum(b * b * x * x))(ONES) * X) / 2,
    "value of vjp": lambda x: np.sum(pyop.vjp(lambda b: x * x * b, ONES)[0] * X),
    "value of jvp": lambda x: np.sum(pyop.jvp(lambda b: x * x, (ONES,), (ONES,))[0] * X),
    "jvp at what moves": lambda x: np.sum(pyop.jvp(lambda b: b**3, (x,), (ONES,))[1] * X) / 3,
}


def doubled(x):
    y = 2 * x
    y *= x
    return y


WAYS = {
    "grad": lambda f: pyop.grad(f)(X) @ T,
    "vjp": lambda f: pyop.vjp(f, X)[1](np.array(1.0))[0] @ T,
    "jvp": lambda f: pyop.jvp(f, (X,), (T,))[1],
    "jacobian forward": lambda f: pyop.jacobian(f, mode="forward")(X) @ T,
    "reverse over reverse": lambda f: pyop.grad(lambda y: np.sum(pyop.grad(f)(y) * T))(X) @ T,
    "forward over reverse": lambda f: pyop.jvp(pyop.grad(f), (X,), (T,))[1] @ T,
    "reverse over forward": lambda f: pyop.grad(lambda y: pyop.jvp(f, (y,), (T,))[1])(X) @ T,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("inside", INSIDE)
def test_threads_of_the_function_are_followed(inside, way):
    f = INSIDE[inside]
    np.testing.assert_allclose(WAYS[way](lambda x: on_a_thread(lambda: f(x))), WAYS[way](squared), rtol=1e-12)


def test_runs_forward_of_two_threads_do_not_mix():
    def inner(x):
        return on_a_thread(lambda: pyop.jvp(lambda b: np.sum(b * b * x), (ONES,), (ONES,))[1])

    with pytest.raises(RuntimeError, match="on the thread of the outer one"):
        pyop.jvp(inner, (X,), (T,))

    def swallowed(x):
        try:
            return inner(x)
        except RuntimeError:
            return np.sum(x)

    with pytest.raises(RuntimeError, match="on the thread of the outer one"):
        pyop.jvp(swallowed, (X,), (T,))


def test_runs_that_have_nothing_to_do_with_each_other():
    started, done = threading.Event(), threading.Event()
    found = []

    def other():
        def f(x):
            started.set()
            done.wait(10)
            return x * x

        found.append(pyop.jvp(f, (X,), (T,))[1])

    thread = threading.Thread(target=other)
    thread.start()
    started.wait(10)
    np.testing.assert_allclose(pyop.jvp(lambda x: x**3, (X,), (T,))[1], 3 * X**2 * T)
    plain = pyop.Tensor(X)
    assert float(np.sum(plain)) == X.sum()  # what nobody differentiates is nobody's
    done.set()
    thread.join()
    np.testing.assert_allclose(found[0], 2 * X * T)


def test_a_tangent_ends_with_its_run():
    kept = []

    def f(x):
        kept.append(2 * x)
        return np.sum(kept[0] * x)

    assert pyop.jvp(f, (X,), (T,))[1] == pytest.approx(4 * X @ T)
    assert pyop.jvp(f, (X,), (T,))[1] == pytest.approx(2 * X @ T)  # the first result is a constant by now


def test_a_tensor_that_would_lose_its_history_on_a_thread():
    def f(x):
        return on_a_thread(lambda: np.sum(pyop.Tensor(x) * 2)) + np.sum(x)

    for way in ("grad", "jvp"):
        with pytest.raises(TypeError, match="stop_gradient"):
            WAYS[way](f)
    assert f(pyop.Tensor(X, requires_grad=True)).requires_grad  # outside of a transformation it is torch's
