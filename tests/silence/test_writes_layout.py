"""Writes where it goes by the memory whether NumPy makes a view or a copy: reshape and ravel of what the function has
made, of arrays that lie by rows, by columns or otherwise."""

import numpy as np
import pytest

import pyop

from .in_all_ways import MATRIX, check, check_derivatives

LAYOUTS = ("rows", "columns", "steps", "float32", "complex128")


def reshaped(x):
    y = x * 1
    y.reshape(-1)[::2] = 0
    return y


def both_written(x):
    y = x * 2
    r = y.reshape(-1)
    r += 1
    y[0] = x[1]
    r[3] *= 5
    y *= r[7]
    return y, r


def raveled(x):
    y = x * 2
    y.ravel()[4] = x[0, 0]
    np.ravel(y.T)[::3] += 1
    y.ravel("F")[2] = 7
    return y, y.ravel()


def in_the_order_of_memory(x):
    y = x * 2
    y.ravel("K")[5] = 3
    a = y.T.ravel("K")
    a += 1
    return y, a


def of_parts(x):
    y = x * 2
    v = y[1:3].reshape(-1)
    w = y[:, 1:].reshape(2, -1)
    v += x[0, 0]
    w[0] = 5
    y[2] = 1
    v[0] = w[1, 1]
    return y, v, w


def of_views_of_it(x):
    y = x * 2
    r = y.reshape(2, 10)
    v = r.T[3:]
    q = r.reshape(-1)[5:]
    v += 1
    q *= 2
    y[0, 0] = 9
    r[1] = r[0]
    np.sin(q, out=q)
    return y, r, v, q


def two_at_once(x):
    y = x * 2
    a, b = y.reshape(-1), np.reshape(y, (5, 4))
    a[0] = 1
    b[0] *= 3
    a += b.reshape(-1)
    return y, a, b


def base_that_died(x):
    r = (x * 2).reshape(-1)
    a, b = r.reshape(5, 4), r.reshape(2, 10)
    a += 1
    b[0] = 3
    return r, a, b


def square(x):
    y = x @ x.T
    n = y.shape[0]
    z = y.reshape(n, n).T
    z[0] = 1
    y.reshape(n * n)[:: n + 1] = 5
    return y, z


def in_a_loop(x):
    y = x * 2
    r = y.reshape(-1)
    for k in range(1, 6):
        r[k] = r[k - 1] * 0.5 + x[0, 0]
    return y


def copies_stay(x):
    y = x * 2
    c = y.T.reshape(-1).copy()
    c[0] = 5
    d = y.reshape(-1)[[0, 1]]
    d += 1
    y[0] = 0
    return y, c, d


PROGRAMS = [reshaped, both_written, raveled, of_parts, of_views_of_it, two_at_once, base_that_died, square, in_a_loop]


@pytest.mark.parametrize("f", [*PROGRAMS, copies_stay, in_the_order_of_memory])
def test_as_numpy_does(f):
    check(f, layouts=LAYOUTS, named="[4,m]" if f in (of_views_of_it, two_at_once, base_that_died) else "[n,m]")


@pytest.mark.parametrize("f", PROGRAMS)
@pytest.mark.parametrize("layout", [np.array, np.asfortranarray])
def test_derivatives(f, layout):
    check_derivatives(lambda x: f(layout(MATRIX) * 0 + x), MATRIX)


@pytest.mark.parametrize("layout", [np.array, np.asfortranarray])
def test_results_share_memory_as_numpys_do(layout):
    def f(x):
        y = x * 2
        r = y.reshape(-1)
        r += 1
        return r, y

    for got, want in zip(pyop.compile(f)(layout(MATRIX)), f(layout(MATRIX)), strict=True):
        assert np.array_equal(got, want)
    assert np.shares_memory(*pyop.compile(f)(layout(MATRIX))) == np.shares_memory(*f(layout(MATRIX)))


def test_a_memory_that_lies_otherwise_each_time():
    f = pyop.compile(both_written)
    for given in (MATRIX, np.asfortranarray(MATRIX), MATRIX[::-1], np.asfortranarray(MATRIX)):
        for got, want in zip(f(given), both_written(given), strict=True):
            assert np.array_equal(got, want)


def test_arguments_between_both_are_refused():
    def f(x):
        y = x * 2
        np.cumsum(y.reshape(-1), out=y[0])
        return y

    with pytest.raises((TypeError, ValueError)):
        pyop.compile(f)(MATRIX)


@pytest.mark.parametrize(
    "copy",
    [
        lambda x: x.copy(),
        lambda x: x.copy("K"),
        lambda x: x.copy("F"),
        lambda x: x.astype(x.dtype),
        lambda x: x.astype(x.dtype, order="C"),
        lambda x: np.copy(x.T),
        lambda x: np.where(x == x, x, 0),
        lambda x: np.concatenate([x, x]).T,
        lambda x: np.zeros_like(x),
        lambda x: x[:, [0, 1, 2]],
        lambda x: np.add(x, x.T[0, 0]).T + 1,
        lambda x: np.stack([x, x], axis=-1),
        lambda x: np.transpose(x * 1)[::-1] * 2,
        lambda x: np.tile(x, 2),
        lambda x: np.cumsum(x, axis=1),
        lambda x: np.linalg.inv(x[:4, :4] + 3 * np.eye(4)),
        lambda x: x @ x.T,
        lambda x: np.take(x, [0, 1], axis=1),
        lambda x: np.full_like(x, 2) + x.T[0, 0],
        lambda x: np.sort(x, axis=0),
        lambda x: np.full((4, 5), 2.0) + x[0, 0],
    ],
)
def test_copies_and_results_lie_as_numpys(copy):
    def f(x):
        y = copy(x)
        r = y.reshape(-1)
        r[3] = 7
        y[0] += 1
        q = y.T.reshape(-1)
        q[2] = 8
        return y, r, q

    check(f, layouts=("rows", "columns", "steps"), named="")


def test_an_array_of_another_order():
    def f(x):
        y = x * 2
        a, b = np.ascontiguousarray(y), np.asfortranarray(y)
        a[0] = 1
        b[:, 1] += 1
        c = np.ascontiguousarray(y.T)
        c *= 3
        return y, a, b, c

    for layout in (np.array, np.asfortranarray):
        for got, want in zip(pyop.compile(f)(layout(MATRIX)), f(layout(MATRIX)), strict=True):
            assert np.array_equal(got, want)


def bytes_as_other_numbers(x):
    y = x + 0j
    v = y.view(y.real.dtype)
    v[0, 0] = 7
    v[:, 1::2] *= x.real
    return y.real, y.imag, v


def test_views_of_another_dtype():
    check(bytes_as_other_numbers, layouts=("rows", "steps", "float32", "complex128"), named="")

    def bits(x):
        y = x * 1
        y.view(np.int64)[0] ^= 1
        return y

    check(bits, layouts=("rows", "steps"))
    with pytest.raises(TypeError, match=r"no gradient rule, as asked for at .*: write into x itself"):
        pyop.compile(pyop.grad(lambda x: np.sum(bits(x))))(MATRIX)
