"""Groups of elementwise operations on slices of arrays of one shape, which are read as one stretch with gaps."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import pyop


def five(a):
    return 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])


def seven(a):
    c = a[1:-1, 1:-1, 1:-1]
    return c + 0.1 * (a[2:, 1:-1, 1:-1] - 2.0 * c + a[:-2, 1:-1, 1:-1]) - a[1:-1, 2:, 1:-1] * a[1:-1, 1:-1, :-2]


def quotient(a):
    return a[1:-1, 1:-1] / a[1:-1, 2:] + a[:-2, 1:-1] / a[2:, 1:-1]


def loops(a):
    return np.exp(np.sin(a[1:-1, 1:-1]) * a[:-2, 1:-1]) ** a[1:-1, 2:] + np.hypot(a[2:, 1:-1], a[1:-1, :-2])


def compares(a):
    inner = a[1:-1, 1:-1]
    return np.where((a[:-2, 1:-1] > inner) & (a[2:, 1:-1] > inner), a[1:-1, 2:], a[1:-1, :-2] * inner), inner < a[
        1:-1, 2:
    ]


def integers(a):
    return a[1:-1, 1:-1] * a[:-2, 1:-1] - a[2:, 1:-1] * 3 + a[1:-1, 2:]


def beside(a):
    """With what lies otherwise: an array of the result's shape, a row, a column, a number."""
    m = a.shape[1]
    whole, row = a[2:, 2:] * 1.0, np.arange(m - 2) * 0.5
    return (a[1:-1, 1:-1] + a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, 2:] + a[1:-1, :-2] + a[:-2, :-2]) / (whole + row) - a[
        1:-1, 0:1
    ]


def run(f, *arguments):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        return f(*arguments), sorted(str(w.message).replace("scalar ", "") for w in told)


def same(got, want):
    for a, b in zip(*((x if isinstance(x, tuple) else (x,)) for x in (got, want)), strict=True):
        assert a.dtype == b.dtype
        assert a.strides == b.strides
        assert a.tobytes() == b.tobytes()


def check(f, *arguments):
    want, warned = run(f, *arguments)
    for compiled in (pyop.compile(f), pyop.compile(f, optimize=False), pyop.compile(f, threads=2)):
        for _ in range(2):
            got, told = run(compiled, *arguments)
            same(got, want)
            assert told == warned
    return warned


SIZES = [(3, 3), (3, 40), (12, 10), (30, 33), (50, 130), (400, 700)]


@pytest.mark.parametrize("f", [five, quotient, loops, compares, beside])
@pytest.mark.parametrize("shape", SIZES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_slices_of_two_axes(f, shape, dtype):
    generator = np.random.default_rng(1)
    check(f, generator.uniform(0.5, 2.0, size=shape).astype(dtype))


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint16, np.complex128])
def test_slices_of_other_numbers(dtype):
    check(integers, (np.random.default_rng(1).normal(size=(41, 57)) * 50).astype(dtype))


@pytest.mark.parametrize("shape", [(3, 3, 3), (8, 9, 20), (20, 5, 64), (6, 40, 3)])
def test_slices_of_three_axes(shape):
    check(seven, np.random.default_rng(1).normal(size=shape))


def laid_out_in_other_ways():
    a = np.random.default_rng(3).uniform(1.0, 2.0, size=(64, 66))
    yield np.asfortranarray(a)
    yield a[::2, ::3]
    yield a[::-1]
    yield a[:, ::-1]
    yield a[:, 3:50]
    yield a.T[5:, 7:]
    yield np.broadcast_to(a[0], (20, 66))
    yield np.lib.stride_tricks.sliding_window_view(a.ravel(), 40)[:50]
    yield np.lib.stride_tricks.as_strided(a, (30, 40), (8 * 45, 8))


@pytest.mark.parametrize("k", range(9))
def test_layouts(k):
    a = list(laid_out_in_other_ways())[k]
    for f in (five, loops, compares, beside):
        check(f, a)


@pytest.mark.parametrize("edge", [0.0, np.nan, np.inf, 1e308, -1.0])
def test_what_lies_between_lines_raises_nothing(edge):
    """Where the borders are divided by one another; NumPy never sees them."""
    a = np.random.default_rng(3).uniform(1.0, 2.0, size=(40, 50))

    def inner(a):
        return a[:, 1:-1] / a[:, 2:] + np.sqrt(a[:, :-2]) * 1e300, np.log(a[:, 1:-1])

    padded = np.full((40, 54), edge)
    padded[:, 2:-2] = a
    assert check(lambda p: inner(p[:, 2:-2]), padded) == []


def test_what_the_elements_raise_is_told_once_a_call():
    a = np.random.default_rng(3).uniform(1.0, 2.0, size=(300, 50))
    a[7, 9] = a[200, 3] = 0.0
    a[11, 5] = np.inf
    told = check(quotient, a)
    assert any("divide" in w for w in told)
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        pyop.compile(quotient)(a)


def test_results_in_memory_of_the_caller():
    plan = pyop.trace(five, "float64[60, 44]").compile()
    memory = np.random.default_rng(3).normal(size=60 * 44)
    for out_of in (
        lambda a: np.empty((58, 42)),
        lambda a: np.empty((58, 84))[:, ::2],
        lambda a: a[1:-1, 1:-1],
        lambda a: a.reshape(-1)[: 58 * 42].reshape(58, 42),
    ):
        a = memory.copy().reshape(60, 44)
        want = five(a)
        out = out_of(a)
        assert plan(a, out=out) is out
        assert out.tobytes() == want.tobytes()
