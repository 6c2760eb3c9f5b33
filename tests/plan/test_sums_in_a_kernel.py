"""Sums of several terms, perhaps less a product, times a number, added to something: in one kernel, of NumPy's bits."""

from __future__ import annotations

import platform

import numpy as np
import pytest
from test_stencils import arrays, plain_warnings, run, same

import pyop

SUMS = {f"{n} terms{', less a product' * less}": (n, less) for n in range(3, 10) for less in (False, True)}


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_sums_of_several_terms(name, dtype):
    """In the order in which NumPy adds them, for blocks of any length, with all that numbers may be."""
    terms, less = SUMS[name]
    text = " + ".join(f"x[{k}]" for k in range(terms)) + (" - x[0] * y" if less else "")
    scope: dict = {}
    exec(f"def f(x, y):\n    return {text}\n\ndef g(x, y):\n    return y * ({text}) + x[1] * 2 - ({text})", scope)
    random = np.random.default_rng(terms)
    odd = np.array([np.inf, -np.inf, np.nan, -0.0, 0.0, 1e-310, 1e308, 3e38, 1e-40])
    for n in (1, 2, 3, 7, 8, 31, 700):
        x = random.normal(size=(terms, n))
        x.reshape(-1)[random.integers(0, x.size, n // 4)] = random.choice(odd, n // 4)
        with np.errstate(over="ignore"):
            x = x.astype(dtype)
        y = x[-1] * np.dtype(dtype).type(0.5)
        for f in (scope["f"], scope["g"]):
            for errors in ("ignore", "warn"):
                want, said = run(f, (x, y), {"all": errors})
                got, heard = run(pyop.compile(f), (x, y), {"all": errors})
                assert same(got[0], want[0])
                assert set(heard) == set(said)  # equal calls are one


def diffused(u, out, q, k):
    c = u[1:-1, 1:-1]
    out[1:-1, 1:-1] = c + q * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - k * c)


SCALED = {
    f"{n} terms{', less a product' * less}{', added' * added}": (n, less, added)
    for n in range(3, 9)
    for less in (False, True)
    for added in (False, True)
}


@pytest.mark.parametrize("name", SCALED)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_number_times_a_sum(name, dtype):
    """Rows of any length, with all that numbers may be, numbers that are written down and such as are given."""
    terms, less, added = SCALED[name]
    text = " + ".join(f"x[{k}]" for k in range(terms)) + " - {k} * x[1]" * less
    kinds = [("q", "k"), ("0.1", "4"), ("y", "k"), ("q", "y")]
    random = np.random.default_rng(terms)
    odd = np.array([np.inf, -np.inf, np.nan, -0.0, 0.0, 1e-310, 1e308, 3e38, 1e-40])
    for q, k in kinds:
        scope: dict = {}
        made = f"{q} * ({text.format(k=k)})"
        exec(f"def f(x, y, q, k):\n    return {'x[1] + ' * added}{made}\n", scope)
        exec(f"def g(x, y, q, k):\n    y[1:-1] = ({made}{' + x[1]' * added})[1:-1]\n    return y", scope)
        for n in (1, 3, 4, 9, 33, 700):
            x = random.normal(size=(terms, n))
            x.reshape(-1)[random.integers(0, x.size, n // 4)] = random.choice(odd, n // 4)
            with np.errstate(all="ignore"):
                x = x.astype(dtype)
                y = x[-1] * x[0]
            numbers = [np.dtype(dtype).type(v) for v in (0.3, random.choice([2.0, np.inf, -0.0]))]
            for f in (scope["f"], scope["g"]):
                for errors in ("ignore", "warn"):
                    want, said = run(f, (x, y.copy(), *numbers), {"all": errors})
                    got, heard = run(pyop.compile(f), (x, y.copy(), *numbers), {"all": errors})
                    assert same(got[0], want[0])
                    assert set(heard) == set(said)


def misaligned(value):
    memory = np.zeros(value.nbytes + 1, np.uint8)[1:].view(value.dtype).reshape(value.shape)
    memory[...] = value
    return memory


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_numbers_that_are_arrays(dtype):
    """Of no dimension, of one element, misaligned, of the whole part; in one function, and in one for each."""
    shared = pyop.compile(diffused)
    u, out = (x.astype(dtype) for x in arrays(50))
    q, k = np.array(0.1, dtype), np.array(4, dtype)
    whole = u[1:-1, 1:-1].copy()
    with plain_warnings():
        for numbers in ((q, k), (misaligned(q), k), (q, misaligned(k)), (q.reshape(1, 1), k), (whole, k), (q, whole)):
            want = out.copy()
            diffused(u, want, *numbers)
            for compiled in (shared, pyop.compile(diffused)):
                got = out.copy()
                compiled(u, got, *numbers)
                np.testing.assert_array_equal(got, want)


def test_a_step_of_diffusion_is_one_kernel():
    levels = pytest.importorskip("pyop._ctests").kernel_levels()
    if platform.machine().lower() in ("x86_64", "amd64") and len(levels) < 2:
        pytest.skip("without AVX2 it is two")
    u, out = arrays(40)
    for numbers in ((0.1, 4.0), (np.float64(0.1), np.float64(4.0))):
        compiled = pyop.compile(diffused)
        compiled(u, out, *numbers)
        assert str(compiled.plan_for(u, out, *numbers).explain()).count(": kernel ") == 1
