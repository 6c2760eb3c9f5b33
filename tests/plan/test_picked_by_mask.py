"""x[mask] as a native step: every size, density and order of memory, and masks whose bytes are neither 0 nor 1."""

import numpy as np
import pytest
from native_checks import python_calls

import pyop

DTYPES = ["uint8", "float16", "float32", "float64", "complex128", "datetime64[s]"]


def pick(x, mask):
    return x[mask]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("density", [0.0, 0.005, 0.05, 0.3, 0.7, 0.97, 1.0])
def test_every_size(dtype, density):
    rng = np.random.default_rng(int(density * 1000))
    plan = pyop.trace(pick, pyop.Spec(dtype, ["n"]), "bool[n]").compile()
    assert not python_calls(plan, np.ones(3, dtype), np.ones(3, bool))
    for n in (*range(40), 63, 64, 65, 96, 127, 200, 1000):
        wide, tests = rng.integers(0, 100, 2 * n).astype(dtype), rng.random(2 * n) < density
        for x, mask in (
            (wide[:n], tests[:n]),
            (wide[::2], tests[:n]),
            (wide[:n][::-1], tests[:n]),
            (wide[:n], tests[::2]),
            (wide[:n], tests[:n][::-1]),
        ):
            got = plan(x, mask)
            assert got.dtype == x.dtype
            np.testing.assert_array_equal(got, x[mask])


@pytest.mark.filterwarnings("ignore::pyop.RetraceWarning")
def test_in_runs_and_words():
    rng = np.random.default_rng(0)
    compiled = pyop.compile(pick)
    for _ in range(300):
        runs = rng.integers(1, 40, 30)
        mask = np.repeat(rng.random(30) < 0.5, runs)
        x = rng.random(mask.size)
        np.testing.assert_array_equal(compiled(x, mask), x[mask])


def test_a_bool_may_be_any_byte():
    bytes_ = np.array([0, 1, 2, 255, 128, 0, 3, 1] * 20, np.uint8)
    x = np.arange(160.0)
    np.testing.assert_array_equal(pyop.compile(pick)(x, bytes_.view(bool)), x[bytes_ != 0])


def test_of_several_axes():
    rng = np.random.default_rng(1)
    x, mask = rng.random((7, 9, 33)), rng.random((7, 9, 33)) < 0.2
    for a, m in ((x, mask), (x.T, mask.T), (x[::2], mask[::2]), (x[:, ::-1], mask[:, ::-1])):
        np.testing.assert_array_equal(pyop.compile(pick)(a, m), a[m])
