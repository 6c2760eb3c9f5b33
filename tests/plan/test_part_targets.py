"""Groups whose results are computed in the part of an array that they are written into: what is read there at the same
time, who else sees the array, warnings, threads."""

from __future__ import annotations

import itertools
import tracemalloc
import warnings

import numpy as np
import pytest

import pyop

# By name: the part that is written, of two axes.
PARTS = {
    "inner": np.s_[1:-1, 1:-1],
    "left": np.s_[1:-1, :-2],
    "right": np.s_[1:-1, 2:],
    "above": np.s_[:-2, 1:-1],
    "below": np.s_[2:, 1:-1],
    "corner": np.s_[2:, 2:],
    "turned": np.s_[-2:0:-1, 1:-1],
    "swapped": np.s_[1:-1, -2:0:-1],
}


def run(f, *arguments):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        result = f(*arguments)
    return result, sorted(str(w.message).replace("scalar ", "") for w in told)


def check(f, make, *, ways=({}, {"optimize": False}, {"threads": 2})):
    """Results and arguments as NumPy's, twice in each way; gives back the warnings."""
    given = make()
    want, warned = run(f, *given)
    for way in ways:
        compiled = pyop.compile(f, **way)
        for _ in range(2):
            arguments = make()
            got, told = run(compiled, *arguments)
            for a, b in zip((*got, *arguments), (*want, *given), strict=True):
                assert a.dtype == b.dtype
                assert a.shape == b.shape
                assert a.tobytes() == b.tobytes()
            assert told == warned
    return warned


@pytest.mark.parametrize("shape", [(12, 13), (5, 1100)])
@pytest.mark.parametrize(("to", "one"), list(itertools.product(PARTS, PARTS)))
def test_what_is_read_is_what_was_there(shape, to, one):
    def f(x, y):
        a = x * 1.5
        a[PARTS[to]] = a[PARTS[one]] * y[PARTS["left"]] + 0.25
        b = y + 1.0
        b[PARTS[to]] -= 0.5 * (a[PARTS[one]] - b[PARTS["left"]])
        return a, b

    def make():
        return [np.random.default_rng(seed).normal(size=shape) for seed in (1, 2)]

    check(f, make, ways=({},))


def steps_forwards_and_back(x, y):
    a = x.ravel() * 2.0
    a[:-1] = a[1:] - a[:-1]
    a[1:] = a[1:] - a[:-1]
    a[:-3] += a[3:]
    a[3:] *= a[:-3]
    a[::2] = a[1::2] * 2.0
    a[1::2] += a[::2]
    a[::-1] += 1.0
    return (a,)


def several_at_once(x, y):
    u, v = x + 1.0, y * 2.0
    for _ in range(3):
        du = u[1:-1, 1:-1] * v[1:-1, 1:-1]
        u[1:-1, 1:-1] = u[1:-1, 1:-1] - 0.1 * du
        v[1:-1, 1:-1] += 0.1 * du
        u[0], v[-1] = v[0], u[-1]
    return u, v, du


def views_that_stay(x, y):
    a = x * 1.0
    seen, row = a[1:-1, 1:-1], a[3]
    a[1:-1, 1:-1] = y[1:-1, 1:-1] + y[:-2, 1:-1]
    before = a.copy()
    a[2:, :] = y[2:] * 3.0
    return a, seen, row, before


def what_was_before(x, y):
    a = x * 1.0
    old = a + 0.0
    b = a
    a = a.copy()
    a[1:-1, 1:] = old[1:-1, 1:] + y[1:-1, 1:]
    return a, b, old


def other_dtypes(x, y):
    a = np.zeros(x.shape, np.float32)
    a[1:-1, 1:-1] = x[1:-1, 1:-1] * y[1:-1, 1:-1]
    n = np.zeros(x.shape, np.int64)
    n[1:, 1:] = n[1:, 1:] + (x > y)[1:, 1:] * 2
    z = np.zeros(x.shape, complex)
    z[:, 1:-1] = x[:, 1:-1] + y[:, 1:-1] * 1j
    return a, n, z


def broadcast_into_it(x, y):
    a = x * 1.0
    a[1:-1, 1:-1] = y[0, 1:-1] * 2.0
    a[1:-1, 1:-1] += y[1:-1, :1] * x[:1, 1:-1]
    return (a,)


def columns(x, y):
    a, b = np.zeros((y.shape[0], y.shape[1], 3)), x * 1.0
    a[:, :, 0] = x + y
    a[1:-1, 1:, 2] = a[1:-1, 1:, 0] * y[1:-1, 1:]
    b[:, ::2] = y[:, ::2] + b[:, ::2]
    b.T[1:-1, :] *= y.T[1:-1, :]
    return a, b


def into_arguments(x, y):
    for _ in range(4):
        y[1:-1, 1:-1] = 0.2 * (x[1:-1, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] + x[2:, 1:-1] + x[:-2, 1:-1])
        x[1:-1, 1:-1] = 0.2 * (y[1:-1, 1:-1] + y[1:-1, :-2] + y[1:-1, 2:] + y[2:, 1:-1] + y[:-2, 1:-1])
    return ()


PROGRAMS = [
    steps_forwards_and_back,
    several_at_once,
    views_that_stay,
    what_was_before,
    other_dtypes,
    broadcast_into_it,
    columns,
    into_arguments,
]


@pytest.mark.parametrize("f", PROGRAMS)
@pytest.mark.parametrize("shape", [(4, 5), (12, 13), (40, 130), (600, 700)])
def test_programs(f, shape):
    check(f, lambda: [np.random.default_rng(seed).normal(size=shape) for seed in (1, 2)])


def quotients(x, y):
    a = x * 1.0
    a[1:-1, 1:-1] = a[1:-1, 1:-1] / y[1:-1, 1:-1]
    a[1:-1, :-2] = np.sqrt(a[1:-1, 1:-1]) * y[1:-1, 1:-1]
    return (a,)


@pytest.mark.parametrize("where", ["nowhere", "inside", "border"])
def test_warnings_are_those_of_the_elements(where):
    def make():
        x, y = (np.abs(np.random.default_rng(seed).normal(size=(60, 90))) + 0.5 for seed in (1, 2))
        if where == "inside":
            y[30, 40], x[20, 20] = 0.0, -1.0
        if where == "border":
            y[30, 0], x[0, 20] = 0.0, -1.0
        return [x, y]

    assert bool(check(quotients, make)) == (where == "inside")


def test_there_is_no_array_for_the_part_alone():
    @pyop.compile
    def f(x):
        a = np.zeros((2000, 1000))
        a[1:-1, 1:-1] = x[1:-1, 1:-1] * 2.0 + x[:-2, 1:-1]
        return a

    x = np.random.default_rng(1).normal(size=(2000, 1000))
    f(x)
    tracemalloc.start()
    try:
        f(x)
        assert tracemalloc.get_traced_memory()[1] < 1.5 * x.nbytes
    finally:
        tracemalloc.stop()
