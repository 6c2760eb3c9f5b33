"""``np.uint32(x)`` and its kin where they are called with what a plan computes; ``np.r_`` and ``np.c_`` of it."""

import pickle

import numpy as np
import pytest
from numpy import float32, uint32

import pyop

RNG = np.random.default_rng(0)
BYTES, FLOATS, INTEGERS = (
    np.arange(250, 290).astype(np.uint8),
    RNG.normal(size=9) * 100,
    RNG.integers(-(2**40), 2**40, 9),
)
MOST = np.uint32(0xFFFFFFFF)


def adler(u, x, k):
    a, b = np.uint32(1), np.uint32(0)
    for v in u:
        a = (a + np.uint32(v)) % np.uint32(65521)
        b = (b + a) % uint32(65521)
    return (b << np.uint32(16)) | a


def crc(u, x, k):
    crc = MOST
    for b in u:
        crc = crc ^ np.uint32(b)
        for _ in range(8):
            crc = (crc >> uint32(1)) ^ uint32(0xEDB88320) if crc & uint32(1) else crc >> uint32(1)
    return crc ^ MOST


def of_elements(u, x, k):
    e = np.zeros(3, dtype=np.float32)
    e[0] = np.float32(x[2])
    cast = (
        np.int64(x[1]),
        np.uint8(k[0]),
        np.int8(u[2]),
        uint32(k[1]),
        np.bool_(x[0]),
        np.complex64(x[1]),
        np.float64(x.sum()),
    )
    return cast, e, np.float32(x[0]) * np.float32(3)


def of_arrays(u, x, k):
    x[0] = 1.0
    y = np.float64(x)
    y[1] = 2.0  # is x
    return y, np.float64(u) + 1, float32(x), np.int16(k), np.float64(np.ones((1, 2)) * x[0])


def no_call(u, x, k):
    a, kind = x.astype(np.float32) if x.dtype == np.float64 else x, np.float32
    known = {np.float32: 1, np.float64: 2}[x.dtype.type], x.dtype.type is np.float64, isinstance(x[0], np.float64)
    return a, known, np.issubdtype(x.dtype, np.floating), np.zeros(2, kind) + kind(2), np.int32(3), np.uint64("12")


def not_of_elements(u, x, k):
    t = np.float64(0)
    for i in range(x.size):
        t += np.float64(i) * np.float64(x[i])
        x[i] = np.float32(x[i])
    return t, np.float64(t), t, np.int64(i)


def rows(u, x, k):
    x[0] = 1.0
    parts = (
        np.r_[x, 1, u[:3]],
        np.r_[0, x[0]],
        np.r_[1:4, x],
        np.r_[u, 1],
        np.r_[x.astype("f4"), 1.5],
        np.r_[x > 0, True],
    )
    return (
        parts,
        np.r_[[x[0], 2], 0:1:3j],
        np.r_[x],
        np.r_["0,2", np.zeros(3), np.ones(3)],
        np.r_[x[:2].reshape(2, 1), [[k[0]]]],
    )


def columns(u, x, k):
    return (
        np.c_[x, k],
        np.c_[x[0], 1],
        np.c_[np.ones((9, 2)), x, k],
        np.c_[u[:3] > 9, [1, 2, 3]],
        np.r_[0.0, np.cumsum(x)],
    )


def made(u, x, k):
    a, b, c = np.ndarray(3), np.ndarray((2, x.size), dtype=x.dtype), np.ndarray(shape=(2,), dtype=np.float32)
    d, e = np.ndarray((2, 2), float, order="F"), np.ndarray(x.shape, x.dtype)
    a[:], b[0], b[1], c[0], c[1], d[...] = x[:3], x, 1, x[0], 2, x[0]
    e.fill(2)
    for i in range(1, len(x)):
        e[i] -= e[i - 1] * x[i]
    return a, b, c, d, e, isinstance(e, np.ndarray), isinstance(x, np.ndarray)


ALL = [made, adler, crc, of_elements, of_arrays, no_call, not_of_elements, rows, columns]


def same(a, b):
    if isinstance(a, tuple):
        return type(b) is tuple and len(a) == len(b) and all(map(same, a, b))
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("options", [{}, {"optimize": False}, {"threads": 2}], ids=str)
@pytest.mark.parametrize("f", ALL, ids=lambda f: f.__name__)
def test_as_numpy_has_them(f, options):
    compiled = pyop.compile(f, **options)
    for scale in (1, -2, 3):
        mine = [BYTES.copy(), FLOATS * scale, INTEGERS * scale]
        others = [BYTES.copy(), FLOATS * scale, INTEGERS * scale]
        with np.errstate(all="ignore"):
            wanted, found = f(*mine), compiled(*others)
        assert same(wanted, found)
        assert same(tuple(mine), tuple(others))
        if f is of_arrays:
            assert found[0] is others[1]
    assert compiled.cache_info().plans == 1


def test_they_are_in_saved_plans_and_derivatives():
    plan = pyop.compile(columns).plan_for(BYTES, FLOATS, INTEGERS)
    assert same(tuple(pickle.loads(pickle.dumps(plan))(BYTES, FLOATS, INTEGERS)), tuple(plan(BYTES, FLOATS, INTEGERS)))

    def loss(x):
        y = np.zeros(3)
        y[:] = np.r_[x[1:], np.float64(x[0])] ** 2
        return np.sum(np.c_[y, x] * np.array([1.0, 3.0]))

    slope = pyop.compile(pyop.grad(loss))(np.array([1.0, 2.0, 3.0]))
    assert np.array_equal(slope, [5.0, 7.0, 9.0])


def test_a_scalar_that_is_returned_twice_is_two_arrays():
    def twice(x):
        s = x.sum()
        return s, [s], np.ones(2).sum()

    for f in (twice, lambda x: (lambda y: (y[0], y[0]))(np.zeros(2))):
        a, b, *_ = pyop.compile(f)(FLOATS)
        b = b[0] if isinstance(b, list) else b
        assert not np.shares_memory(a, b)
        assert a == b


def test_they_are_known_however_often_the_code_has_run():
    # CPython puts quicker instructions in place of those that have run some times.
    def f(x):
        return np.float64(x) + 1

    for _ in range(40):
        assert pyop.compile(f)(np.arange(3)).tolist() == [1, 2, 3]
