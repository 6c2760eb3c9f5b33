"""Functions and methods that write into what the function has made: ``np.copyto``, ``y.sort()``, ``np.add.at``,
``y.flat``."""

import contextlib
import operator

import numpy as np
import pytest

import pyop

from .compare import differs
from .in_all_ways import LAYOUTS, MATRIX, attempt, check, check_derivatives


def copied(x):
    y = x * x
    z = y
    np.copyto(y, x[0], where=x.real > 0)
    np.copyto(z[1], x[0] * 2)
    np.copyto(y[:, 0], 3)
    return y


def masks(x):
    y = x * x
    np.putmask(y, x.real > 0, x[0] * 3)
    np.place(y[1:], x[1:].real < 0, x[1])
    np.putmask(y, y.real > 100, [1, 2, 3])
    return y


def diagonals(x):
    y = x @ x.T
    np.fill_diagonal(y, x[0, :4])
    np.fill_diagonal(y[:1, :1], x[0, 0])
    np.einsum("ii->i", y)[1:] *= 2
    return y


def puts(x):
    y = x * x
    y.put([0, 7, 7], x[0])
    np.put(y, [3, 4], 2)
    y.T.put([30, -1], [x[0, 0], x[1, 1]], mode="wrap")
    y[2].fill(x[0, 0])
    np.put_along_axis(y, np.argmax(x.real, axis=1, keepdims=True), x[:, :1] * 3, axis=1)
    return y


def orders(x):
    y = x * x
    y.sort()
    y[:, 0].sort()
    y.T.sort(axis=0, kind="stable")
    y.partition(2)
    y[::-1].partition(1, axis=0)
    return y


def at(x):
    y = x * x
    np.add.at(y, ([0, 0, 1], [1, 1, 2]), x[0, :3])
    np.subtract.at(y, [0, 0], x[1:3])
    np.multiply.at(y[1:], ([0, 0, 1], [1, 1, 2]), x[0, :3])
    np.negative.at(y, 0)
    np.add.at(y, (slice(None), [0, 0]), x[:, :1])
    return y


def flat(x):
    y = x * x
    y.T.flat = x.flat[::-1]
    y.flat[3] = x[0, 0] * 7
    y.flat[-1] += 2
    y.T.flat[1:4] = [1, 2]
    y.flat[[5, 5]] = x[0, :2]
    total = 0
    for e in y.flat:
        total = total + e * e
    a = y.flat[1:3]
    a += 1
    y[0].flat = 1
    return y, total, a, y.flat[2], np.sum(y.flat)


def parts(x):
    y, z = x * x, x + 0.5
    y.real += 1
    y.real[0] = 3
    y.real = x.real
    z.real *= 2
    np.real(z)[1:] -= x.real[1:]
    return y, z


def names(x):
    y = x * x
    operator.setitem(y, 0, 5)
    y.__setitem__((1, 1), x[0, 0])
    operator.iadd(y, x)
    y[1:].__imul__(2)
    return y


def augmented(x):
    y = x * 0.2 + 1
    y[:, ::2] **= 3
    y[::2, :4] @= x[:4, :4] - x[0, 0]
    y[::-1] *= y
    y[1] /= 2 + x[0]
    return y


SMOOTH = [copied, masks, diagonals, puts, orders, at, flat, parts, names, augmented]


@pytest.mark.parametrize("f", SMOOTH)
def test_as_numpy_does(f):
    check(f, named="" if f in (flat, diagonals, at) else "[n,m]")


@pytest.mark.parametrize("f", SMOOTH)
def test_derivatives(f):
    check_derivatives(f)


def test_imaginary_parts():
    def f(x):
        y = x + 1j
        y.imag[0] = 3
        y.imag = x.real
        y.imag *= 2
        y.T.real = 0.5
        y.real = [1, 2, 3, 4, 5]
        return y

    check(f)


def of_numbers_that_are_none(x):
    y = x / 1
    y[0, 0] = np.nan
    z = np.nan_to_num(y, copy=False)
    z += 1
    np.nan_to_num(y[1:], copy=False, nan=3)
    return y


def numbers_that_cannot_be_none(x):
    y = np.broadcast_to(x > 0, (2, *x.shape))
    return np.nan_to_num(y, copy=False) * 1.0


def bytes_swapped(x):
    y = x * 1
    z = y.byteswap(True)
    z.byteswap(True)
    y[1:].byteswap(inplace=True)
    return y


def converted(x):
    y = (x.real * 10).astype(np.int16)
    y.flat[2] = 2.7
    y.flat = x.real
    y.real = x.real
    y.fill(2.5)
    y[1].fill(x.real[0, 0])
    np.copyto(y, x.real, casting="unsafe")
    return y


@pytest.mark.parametrize("f", [of_numbers_that_are_none, numbers_that_cannot_be_none, bytes_swapped, converted])
def test_other_writes(f):
    check(f, layouts=("rows", "columns", "float32"))


@pytest.mark.parametrize(
    ("write", "error"),
    [
        (lambda y: np.copyto(y.astype(int), 2.5), TypeError),
        (lambda y: np.copyto(y, np.ones(3)), ValueError),
        (lambda y: np.copyto(y[0, 0], 1), TypeError),
        (lambda y: np.put(y, 20, 1), IndexError),
        (lambda y: y.put([0, 20], 1), IndexError),
        (lambda y: y.partition(7), ValueError),
        (lambda y: y.sort(axis=3), ValueError),
        (lambda y: y.fill([1, 2]), ValueError),
        (lambda y: np.fill_diagonal(y[0], 1), ValueError),
        (lambda y: np.add.at(y, [9], 1), IndexError),
        (lambda y: y.flat.__setitem__([0, 20], 1), IndexError),
        (lambda y: y.flat.__setitem__(20, 1), IndexError),
        (lambda y: setattr(y, "imag", 1), TypeError),
        (lambda y: np.diagonal(y).sort(), ValueError),
        (lambda y: np.broadcast_to(y, (2, 4, 5)).fill(1), ValueError),
        (lambda y: setattr(y[0, 0], "real", 1), AttributeError),
    ],
)
def test_what_numpy_refuses_can_be_caught(write, error):
    def f(x):
        y = x * 1
        try:
            write(y)
        except error:
            return y + 1
        return y

    with pytest.raises(error):
        write(MATRIX * 1)
    check(f, layouts=("rows",), named="")


def test_a_read_only_view_that_numpy_writes_all_the_same():
    def f(x):
        y = x * 1
        with contextlib.suppress(ValueError):
            np.add.at(np.diagonal(y), [0], 1.0)
        return y

    with pytest.warns(pyop.RetraceWarning, match="read-only, which NumPy does not check here: write into"):
        np.testing.assert_array_equal(pyop.compile(f)(MATRIX), f(MATRIX))


def rounded(x, y):
    z = np.diagonal(y.astype(int))
    np.round(z, 1, out=z)


def nothing_copied(x, y):
    z = np.diagonal(y[:, :0])
    np.copyto(z, z[:0], where=z > 0)


def joined(x, y):
    z = np.diagonal(y)
    np.concatenate([z[1:], z[:1]], out=z)


def tried(x, y):
    try:
        np.diagonal(y)[:] = x.sum(axis=1)[:9]
    except ValueError:
        y += 1


def copied(x, y):
    np.copyto(np.diagonal(y), 1.0)


@pytest.mark.parametrize("write", [rounded, nothing_copied, joined, tried, copied], ids=lambda f: f.__name__)
def test_a_read_only_view_is_what_it_is_to_numpy(write):
    def f(x):
        y = x * 1
        write(x, y)
        return y

    outcomes = []
    for function in (f, pyop.compile(f)):
        try:
            outcomes.append(function(MATRIX).tobytes())
        except ValueError as error:
            outcomes.append(type(error))
    assert outcomes[0] == outcomes[1]
    if write in (rounded, joined, copied):
        with pytest.raises(ValueError, match="read-only"):
            pyop.trace(f, pyop.Spec(MATRIX.dtype, MATRIX.shape))


def test_the_error_of_what_is_read_only_can_be_caught_under_derivatives():
    def f(x):
        y = x * 1
        try:
            np.diagonal(y)[0] = 1.0
        except ValueError:
            y *= 3
        return np.sum(y**2)

    np.testing.assert_allclose(pyop.compile(pyop.grad(f))(MATRIX), 18 * MATRIX)


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.sort(),
        lambda x: np.copyto(x, 1.0),
        lambda x: x.flat.__setitem__(0, 1.0),
        lambda x: setattr(x, "real", 1.0),
        lambda x: np.add.at(x, [0], 1.0),
    ],
)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_arguments(write, layout):
    mine, plain = LAYOUTS[layout](MATRIX), LAYOUTS[layout](MATRIX)
    assert type(attempt(pyop.compile(lambda x: write(x)), mine)) is type(attempt(write, plain))
    assert not differs(plain, mine)
    assert not differs(plain.base, mine.base)
    with pytest.raises(TypeError, match=r"argument 'x'.*pyop\.compile"):
        pyop.trace(lambda x: write(x), "float64[4,5]")


def test_an_array_of_no_dimension_stays_one():
    def f(x):
        y = np.zeros_like(x)
        z = y
        np.negative(x, out=y)
        y += 1
        np.add(y, 1, out=y)
        y //= 2
        return y, z

    x = np.array(3.5)
    for way in ({}, {"optimize": False}):
        assert [*map(float, pyop.compile(f, **way)(x))] == [*map(float, f(x))] == [-1.0, -1.0]
