"""Products of small matrices in loops, which have a kernel where it gives the bits of NumPy's BLAS."""

import warnings

import numpy as np
import pytest

import pyop

SIZES = (1, 2, 3, 4, 5, 7, 8, 9)
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e308, -1e308, 5e-324, 1e-300, 1.0])


def turned(x, order):
    """The same matrices, in other places of the memory."""
    if order == "transposed":
        return np.ascontiguousarray(x.transpose(0, 2, 1)).transpose(0, 2, 1)
    if order == "apart":
        wide = np.zeros((len(x), 2 * x.shape[1], 3 * x.shape[2]), x.dtype)
        wide[:, ::2, ::3] = x
        return wide[:, ::2, ::3]
    return x[:, ::-1][:, ::-1] if order == "back and forth" else x


def products(x, y):
    out = np.empty((len(x), x.shape[1], y.shape[2]), x.dtype)
    for k in range(len(x)):
        out[k] = x[k] @ y[k] - 1
    return out


def into_the_next(x, y):
    z = np.eye(x.shape[1], dtype=x.dtype)
    for k in range(len(x)):
        z = x[k] @ z @ y[k].T
    return z


def by_themselves(x, y):
    out = np.zeros((x.shape[1], x.shape[1]), x.dtype)
    for k in range(len(x)):
        part = x[k]
        out += part @ part.T
        out[0] += (part.T @ part)[0, 0]
    return out


def outcome(f, x, y):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = f(x, y)
    return result.tobytes(), {str(w.message) for w in caught if w.category is RuntimeWarning}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["as C", "transposed", "apart", "back and forth"])
def test_bits(dtype, order):
    rng = np.random.default_rng(5)
    for m, k, n in rng.choice(SIZES, size=(12, 3)):
        x = turned(rng.normal(size=(40, m, k)).astype(dtype), order)
        y = turned(rng.normal(size=(40, k, n)).astype(dtype), order)
        assert outcome(pyop.compile(products), x, y) == outcome(products, x, y), (m, k, n)
        y = turned(rng.normal(size=(40, m, k)).astype(dtype), order)
        assert outcome(pyop.compile(by_themselves), x, y) == outcome(by_themselves, x, y), (m, k, n)
        if m == k:
            assert outcome(pyop.compile(into_the_next), x, y) == outcome(into_the_next, x, y), (m, k, n)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_what_is_special(dtype):
    rng = np.random.default_rng(6)
    compiled = pyop.compile(products)
    with np.errstate(over="ignore"):
        special = SPECIAL.astype(dtype)
    for m, k, n in rng.choice(SIZES[1:5], size=(8, 3)):
        for rare in (0.02, 0.3):
            x, y = rng.normal(size=(30, m, k)).astype(dtype), rng.normal(size=(30, k, n)).astype(dtype)
            for a in (x, y):
                where = rng.random(a.shape) < rare
                a[where] = rng.choice(special, size=int(where.sum()))
            got, said = outcome(compiled, x, y)
            want, warned = outcome(products, x, y)
            np.testing.assert_array_equal(np.frombuffer(got, dtype), np.frombuffer(want, dtype))
            assert said == warned
            signs = [np.signbit(np.nan_to_num(np.frombuffer(a, dtype), nan=1.0)) for a in (got, want)]
            assert np.array_equal(*signs)
