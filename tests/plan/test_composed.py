"""Functions that become a few simpler nodes: NumPy's results, warnings and errors, and no call of Python."""

import numpy as np
import pytest
from native_checks import check

import pyop

CALLS = {
    "diff": np.diff,
    "second differences": lambda x: np.diff(x, 2),
    "along another axis": lambda x: np.diff(x, axis=0),
    "more than there are": lambda x: np.diff(x, n=9),
    "none": lambda x: np.diff(x, 0),
    "prepended": lambda x: np.diff(x, prepend=0),
    "no such axis": lambda x: np.diff(x, axis=3),
    "trapezoid": np.trapezoid,
    "trapezoid of steps": lambda x: np.trapezoid(x, dx=0.5, axis=0),
    "trapezoid at places": lambda x: np.trapezoid(x.ravel(), x.ravel()[::-1] * 2, axis=-1),
}


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "u1", "?", "c16"])
@pytest.mark.parametrize("name", CALLS)
def test_calls(name, dtype):
    r = np.random.default_rng(2)
    for shape in [(6,), (4, 5), (2, 3, 4), (2, 0, 3), (1, 2)]:
        x = (r.normal(size=shape) * 9).astype(dtype) if dtype != "u1" else r.integers(0, 9, shape).astype("u1")
        for each in (x, x.T):
            for named in (True, False):
                check(CALLS[name], each, named=named)


def test_what_is_composed_calls_no_python():
    for f in (np.diff, lambda x: np.diff(x, 2, axis=0), np.trapezoid, lambda x: np.trapezoid(x, x**2)):
        fates = [node.fate for node in pyop.trace(f, "float64[9]").compile().explain().nodes]
        assert "python" not in fates
