"""``out=`` of ufuncs, their methods and functions, given what the function has made: NumPy's bits, errors, aliases."""

import numpy as np
import pytest

import pyop

from .in_all_ways import MATRIX, check, check_derivatives


def by_keyword_and_position(x):
    y = x * 1
    z = y
    r = np.add(y, 1, out=y)
    np.multiply(y, 2, y)
    r -= 1
    return z


def where_some_is_kept(x):
    y = x * 1
    np.negative(x, out=y, where=x.real > 0)
    np.exp(y[1:3], out=y[1:3], where=False)
    return y


def views(x):
    y = x * x
    np.multiply(x[1:], x[:1], out=y[1:])
    np.add(y.T, x.T, out=y.T)
    np.subtract(y[:, ::2], 1, out=y[:, ::2])
    return y


def overlaps(x):
    y = x * x
    np.multiply(y, y, out=y[::-1])
    np.subtract(y[1:], y[:-1], out=y[1:])
    np.add(y[0], y, out=y)
    return y


def other_loops(x):
    y = x + 0.5
    np.exp(x[1:], out=y[1:])
    np.sin(y, out=y)
    np.power(y[:, ::2], 3, out=y[:, ::2])
    np.multiply(y, y, out=y)
    return y


def several_results(x):
    y, a = x * x, np.zeros_like(x)
    np.divmod(x, 0.37, out=(y, a))
    np.divmod(x[0], 0.3, out=(y[1], y[0]))
    np.modf(x, out=(a[:], y.T.T[:]))
    return y * x, a


def methods(x):
    y = x * x
    np.multiply.accumulate(y, axis=0, out=y)
    np.add.reduce(x * x, axis=0, out=y[2])
    np.multiply.outer(x[0, :4], x[1], out=y)
    return y


def pieces(x):
    y = x * x
    np.add.reduceat(x, [0, 2], axis=0, out=y[::2])
    return y


def reductions(x):
    y, z = np.zeros_like(x[0]), x * x
    np.sum(x, axis=0, out=y)
    np.cumsum(z, axis=0, out=z)
    x.max(axis=0, out=z[0])
    np.mean(z, axis=0, out=z[1])
    x.sum(0, None, z[2])
    return y, z


def functions(x):
    y = x * x
    np.clip(y, -1, 1, out=y)
    y[1:].clip(0, None, out=y[1:])
    np.take(x, [1, 0], axis=0, out=y[:2])
    np.concatenate([y[1:], y[:1]], out=y)
    np.stack([x[0], y[1]], out=y[:2])
    np.einsum("ij->ij", x, out=y[:])
    return y


def products(x):
    y = x @ x.T
    np.matmul(x, x.T, out=y)
    np.matmul(y, y, out=y)
    np.matmul(x[:2], x[:2].T, out=y[::2, ::2])
    np.dot(x * 1, x.T * 1, out=np.zeros_like(y))
    return y


SMOOTH = [by_keyword_and_position, views, overlaps, other_loops, methods, reductions, functions, products]


@pytest.mark.parametrize("f", [*SMOOTH, where_some_is_kept, pieces])
def test_as_numpy_does(f):
    check(f, named="[n,m]" if f is not methods else "")


def test_several_results():
    check(several_results, layouts=("rows", "columns", "float32"))


@pytest.mark.parametrize("f", [*SMOOTH, where_some_is_kept, several_results])
def test_derivatives(f):
    check_derivatives(f, abs(MATRIX) + 0.1 if f is methods else MATRIX)


def rounded(x):
    y = x * 1
    np.round(y, 1, out=y)
    np.round(y, 0, y[:1])
    return y


def of_another_dtype(x):
    y = x.astype(np.float32)
    np.add(y, x, out=y)
    np.add(x, 1, out=y, casting="unsafe")
    np.exp(y, out=y, dtype="f4")
    z = (x * 10).astype(np.int64)
    np.add(x, 0.5, out=z, casting="unsafe")
    np.greater(x, 0, out=z)
    return y, z


def test_conversions():
    check(rounded, layouts=("rows", "columns", "float32", "int64"))
    check(of_another_dtype, layouts=("rows", "columns", "float32", "int64"))


def caught(write, error):
    def f(x):
        y = x * 1
        try:
            write(x, y)
        except error:
            return y + 1
        return y

    return f


@pytest.mark.parametrize(
    ("write", "error"),
    [
        (lambda x, y: np.add(y.astype(int), 0.5, out=y.astype(int)), TypeError),
        (lambda x, y: np.add(y, 1j, out=y), TypeError),
        (lambda x, y: np.add(y, np.ones(9), out=y), ValueError),
        (lambda x, y: np.add(x, x, out=y[0]), ValueError),
        (lambda x, y: np.add(y, 1, out=np.broadcast_to(y[0], y.shape)), ValueError),
        (lambda x, y: np.sum(x, axis=0, out=y), ValueError),
        (lambda x, y: np.add(x, 1, out=y[0, 0]), TypeError),
        (lambda x, y: np.add(x, 1, out=(y, y)), ValueError),
        (lambda x, y: np.modf(x, (y, y)), TypeError),
        (lambda x, y: np.dot(x, x.T, out=y), ValueError),
    ],
)
def test_what_numpy_refuses_can_be_caught(write, error):
    check(caught(write, error), layouts=("rows",), named="")
    with pytest.raises(error):
        pyop.compile(lambda x: write(x, x * 1))(MATRIX)


def test_the_result_is_the_array_that_was_given():
    def f(x):
        y = x * 1
        assert np.add(y, 1, out=y) is y
        assert np.sum(x, axis=0, out=y[0]) is not y
        assert np.divmod(x, 2, out=(y, z := x * 1))[1] is z
        r = np.exp(y, out=y)
        r += 1
        return y, r

    check(f, layouts=("rows",))


def test_who_else_shows_the_memory_is_asked():
    def f(x):
        y = x * 1
        z = pyop.numpy_function(lambda a: a, [y], np.float64)
        np.exp(y, out=y)
        return z

    with pytest.warns(pyop.RetraceWarning, match="may show the same memory"):
        got = pyop.compile(f)(MATRIX)
    assert np.array_equal(got, np.exp(MATRIX))
    x = MATRIX.copy()
    assert pyop.compile(lambda x: np.exp(x, out=x))(x) is x
    assert np.array_equal(x, np.exp(MATRIX))
