"""Arithmetic of Python's complex numbers in plans: Python's own, to the last bit and the last error."""

from __future__ import annotations

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
    assert "Python's operator on complex numbers" in text
