"""Arithmetic of Python's complex numbers in plans: Python's own, to the last bit and the last error."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import pyop

NUMBERS = [
    2.5 - 0.5j,
    complex(0.0, -0.0),
    complex(-0.0, 3.0),
    complex(np.inf, 1.0),
    complex(np.nan, -np.inf),
    1e200j,
    1e-320 + 1j,
]


def arithmetic(x, z, t):
    w = -2j * np.pi * z / 3
    return np.stack([x * (w + t), x * (z * z), x * (z - 1.5), x * (t * z), x * (2 / (z + 1)), x * -z, x * (z / 7j)])


def same(f, *arguments):
    with np.errstate(all="ignore"):
        try:
            want = f(*arguments)
        except Exception as error:
            with pytest.raises(type(error)):
                pyop.compile(f)(*arguments)
            return
        compiled = pyop.compile(f)
        for _ in range(2):
            got = compiled(*arguments)
            assert np.asarray(got).dtype == np.asarray(want).dtype
            assert np.asarray(got).tobytes() == np.asarray(want).tobytes()


@pytest.mark.parametrize("z", NUMBERS)
@pytest.mark.parametrize("t", [0.25, -0.0, 3, -1.0])
def test_as_python_computes(z, t):
    same(arithmetic, np.array([1.0, -2.0]), z, t)


def test_division_by_zero_is_pythons_error():
    same(lambda x, z, t: x * (z / t), np.ones(2), 1j, 0.0)
    same(lambda x, z, t: x * (t / z), np.ones(2), 0j, 1.0)


def test_numbers_of_a_loop():
    def fourier(x):
        out = np.zeros(x.size, complex)
        for k in range(x.size):
            for t in range(x.size):
                out[k] += x[t] * np.exp(-2j * np.pi * k * t / x.size)
        return out

    x = np.random.default_rng(1).normal(size=40)
    same(fourier, x)
    text = str(pyop.compile(arithmetic).plan_for(np.ones(2), 1j, 0.5).explain())
    assert "called with Python numbers" in text


OPERATORS = (operator.add, operator.sub, operator.mul, operator.truediv, operator.pow)


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "int64", "bool"])
def test_beside_an_element_it_is_pythons_or_numpys(op, dtype):
    """A float64 scalar is a float to Python's complex numbers, which compute themselves: bits and types differ."""
    x = np.array([3, 7], dtype)
    for f in (lambda x, z: op(z, x[0]), lambda x, z: op(x[0], z), lambda x, z: op(1j, x[1]) * z):
        for z in (0.5 + 1j, -2j):
            assert repr(pyop.compile(f)(x, z)) == repr(f(x, z))

    def repeated(x, z):
        for _ in range(20):
            z = op(z, x[0])
        return z, z.real, z.imag, z.conjugate(), abs(z), -z

    z = 0.25 + 0.5j
    assert repr(pyop.compile(repeated)(x, z)) == repr(repeated(x, z))


def test_it_stays_weak_beside_arrays():
    def phases(x, single):
        return single * (1j * x[0]), (2 - 1j) * x[1]

    arguments = np.array([0.5, 2.0]), np.ones(3, np.float32)
    for got, want in zip(pyop.compile(phases)(*arguments), phases(*arguments), strict=True):
        assert type(got) is type(want)
        assert getattr(got, "dtype", None) == getattr(want, "dtype", None)
        assert np.array_equal(got, want)
