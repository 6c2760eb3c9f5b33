"""Functions that write into the argument that they are differentiated by: what that held at entry counts, and the
caller finds what NumPy leaves there."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import pyop
from pyop._tree import flatten

A = np.array([0.3, 1.2, 0.7, 2.0])


def whole(x):
    x *= 2
    return (x * x).sum()


def part(x):
    x[1:] = x[1:] * x[0]
    return np.sum(x**2)


def reversed_view(x):
    v = x[::-1]
    v += np.sin(x)
    return np.sum(x * v)


def by_mask(x):
    y = x * 3
    x[0] = y[1]
    x[x > 1] = 0.5
    return np.sum(y * x)


def by_out(x):
    np.multiply(x, x, out=x)
    np.add(x[:2], 1, out=x[1:3])
    return np.sum(x * x)


def in_a_loop(x):
    for i in range(1, len(x)):
        x[i] += x[i - 1] * x[i]
    return x.sum()


def filled(x):
    s = x.sum()
    x.fill(3.0)
    return s * x[0]


def reshaped(x):
    x.reshape(-1)[1:] *= 2
    r = x[1:].ravel()
    r[0] = r[1] * r[2]
    return np.prod(x)


def sorted_there(x):
    x.sort()
    return np.sum(x * np.arange(len(x)))


def raised_to_itself(x):
    x **= x
    x[:2] -= x[2:]
    return np.sum(x)


FUNCTIONS = [whole, part, reversed_view, by_mask, by_out]
FUNCTIONS += [in_a_loop, filled, reshaped, sorted_there, raised_to_itself]
WAYS = {
    "grad": pyop.grad,
    "value_and_grad": pyop.value_and_grad,
    "hessian": pyop.hessian,
    "jacobian": pyop.jacobian,
    "jvp": lambda f: lambda x: pyop.jvp(f, (x,), (np.ones(4),)),
    "vjp": lambda f: lambda x: pyop.vjp(f, x)[1](2.0),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("f", FUNCTIONS)
def test_compiled_derivatives_are_by_what_the_argument_held_at_entry(f, way):
    expected = pyop.compile(WAYS[way](lambda x: f(np.copy(x))))
    compiled = pyop.compile(WAYS[way](f))
    for values in (A, A[::-1] + 0.25, A * 0.5):
        x, left = values.copy(), values.copy()
        f(left)
        got = compiled(x)
        for a, b in zip(flatten(got)[0], flatten(expected(values.copy()))[0], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(x, left, rtol=1e-15)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_derivatives_at_arrays_do_the_same_with_one_warning(f):
    gradient = pyop.grad(f)
    x, left = A.copy(), A.copy()
    f(left)
    with pytest.warns(pyop.RetraceWarning, match="its derivative is compiled"):
        got = gradient(x)
    np.testing.assert_allclose(got, pyop.compile(pyop.grad(lambda x: f(np.copy(x))))(A.copy()), rtol=1e-12)
    np.testing.assert_allclose(x, left, rtol=1e-15)


@pytest.mark.parametrize("n", [1, 3, 40])
def test_arrays_of_the_caller_are_seen_as_they_were_left(n):
    def written(x):
        y = x * 2
        found = np.zeros(4)
        for _ in range(n):
            found = found + pyop.grad(part)(y)
        return found, y

    def copied(x):
        y = x * 2
        found = np.zeros(4)
        for _ in range(n):
            found = found + pyop.grad(lambda z: part(z.copy()))(y)
            y[1:] = y[1:] * y[0]
        return found, y

    for got, want in zip(pyop.compile(written)(A), pyop.compile(copied)(A), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-13)
    tangents = [pyop.compile(lambda x, f=f: pyop.jvp(f, (x,), (np.ones(4),))[1])(A) for f in (written, copied)]
    for got, want in zip(*tangents, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-13)


def a_view_written_before(grad, x):
    y = x * 2
    v = y[1:, 0]
    y *= 1.5
    return grad(part)(v), y


def raveled(grad, x):
    def f(z):
        r = z[:, 1:].ravel()
        s = z[1:].reshape(-1)
        s *= 2
        return np.sum(r * r) + np.sum(z * z)

    y = x * 2
    return grad(f)(y), y


def a_reshaped_part(grad, x):
    y = x * 2
    return grad(part)(y[1:].reshape(-1)), y


def one_in_another(grad, x):
    def outer(z):
        slope = grad(part)(z[1:].reshape(-1))
        return np.sum(slope * slope) + np.sum(z * z)

    y = x * 2
    return grad(outer)(y), y


@pytest.mark.parametrize("f", [a_view_written_before, raveled, a_reshaped_part, one_in_another])
def test_arguments_that_are_parts_of_arrays(f):
    def of_a_copy(f):
        def gradient(z):
            found = pyop.grad(lambda z: f(z.copy()))(z * 1)
            f(z)
            return found

        return gradient

    x = np.arange(1.0, 10.0).reshape(3, 3) / 5
    got, expected = (pyop.compile(lambda x, grad=grad: f(grad, x))(x) for grad in (pyop.grad, of_a_copy))
    np.testing.assert_allclose(got[0], expected[0], rtol=1e-12)
    np.testing.assert_allclose(got[1], expected[1], rtol=1e-15)


def test_examples_of_a_batch():
    x = np.arange(1.0, 10.0).reshape(3, 3) / 5
    expected = [pyop.compile(pyop.grad(lambda z: part(z.copy())))(row * 2) for row in x]
    got = pyop.compile(lambda x: pyop.vmap(pyop.grad(part))(x * 2))(x)
    np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_a_second_derivative_by_what_the_first_one_writes():
    def inner(z):
        z *= z
        return np.sum(z * z)

    outer = pyop.compile(pyop.grad(lambda y: np.sum(pyop.grad(inner)(y))))
    np.testing.assert_allclose(outer(A.copy()), 12 * A**2, rtol=1e-14)


def test_the_argument_itself_comes_back():
    def f(x):
        x *= 2
        return np.sum(x * x), x

    x = A.copy()
    gradient, aux = pyop.compile(pyop.grad(f, has_aux=True))(x)
    assert aux is x
    np.testing.assert_array_equal(x, A * 2)
    np.testing.assert_allclose(gradient, 8 * A)


def test_memory_of_two_arguments_is_refused():
    def given_twice(x):
        def f(a, b):
            a[0] = 5.0
            return np.sum(a) + np.sum(b * b)

        return pyop.grad(f, (0, 1))(x, x)

    def by_another_name(x):
        def f(a):
            x[0] = 5.0
            return np.sum(a * a)

        return pyop.grad(f)(x)

    for function in (given_twice, by_another_name):
        with pytest.raises(TypeError, match="may show the same memory"):
            pyop.trace(lambda x, function=function: function(x * 2), "float64[4]")


def test_what_a_function_closes_over_is_not_its_argument():
    got = pyop.compile(lambda x: pyop.grad(lambda z: np.sum(z.reshape(-1) * x))(x))(A)
    np.testing.assert_array_equal(got, A)


@pytest.mark.parametrize("way", [pyop.grad, lambda f: pyop.compile(pyop.grad(f))])
def test_an_exception_of_the_function_half_way_is_the_users(way):
    """Check that what was written stays, and what is called is called once, as without a derivative."""
    calls = []

    def f(x):
        x[0] = x[1] * 2
        if len(x) > 3:
            calls.append(len(x))
            raise KeyError("mine")
        return (x * x).sum()

    gradient = way(f)
    for x in (A[:3].copy(), A.copy(), A[:3].copy(), A.copy()):
        calls.clear()
        if len(x) == 3:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", pyop.RetraceWarning)
                np.testing.assert_allclose(gradient(x), [0, 10 * A[1], 2 * A[2]])
            continue
        with warnings.catch_warnings(), pytest.raises(KeyError, match="mine") as raised:
            warnings.simplefilter("ignore", pyop.RetraceWarning)
            gradient(x)
        assert raised.value.__context__ is None
        assert calls == [4]
        np.testing.assert_array_equal(x, [A[1] * 2, *A[1:]])


def test_where_the_function_itself_works_the_refusal_stands_and_nothing_is_changed():
    kept = []

    def f(x):
        x[0] = 5.0
        kept.append(1)
        x[:] = [*x.tolist()]
        return x.sum()

    x = A.copy()
    with pytest.raises(RuntimeError, match="in place, which is not recorded"):
        pyop.grad(f)(x)
    np.testing.assert_array_equal(x, A)
    assert kept == []
