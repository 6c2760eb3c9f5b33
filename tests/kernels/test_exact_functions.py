"""The exact kernels' own errors: what they settle is rounded as the exact value is, by the long doubles of libm."""

from __future__ import annotations

import numpy as np
import pytest

ctests = pytest.importorskip(
    "pyop._ctests",
    reason="the C++ tests are not built: install with -Ccmake.define.PYOP_TESTS=ON",
    exc_type=ModuleNotFoundError,
)

pytestmark = pytest.mark.skipif(np.finfo(np.longdouble).nmant != 63, reason="long double has no 64 bits here")

RANGES = {
    "sin": [(-0.03, 0.03), (-1, 1), (-10, 10), (-1e4, 1e4), (-6e7, 6e7)],
    "cos": [(-0.03, 0.03), (-1, 1), (-10, 10), (-1e4, 1e4), (-6e7, 6e7)],
    "exp": [(-0.003, 0.003), (-1, 1), (-30, 30), (-708, 709)],
    "log": [(0.99, 1.01), (0.5, 2), (1e-3, 1e3), (1e-300, 1e300)],
    "exp2": [(-0.004, 0.004), (-1, 1), (-30, 30), (-1021, 1023)],
    "log2": [(0.99, 1.01), (0.5, 2), (1e-3, 1e3), (1e-300, 1e300)],
}


def settle(level: str, name: str, units: float, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, float | None]:
    to, settled = np.empty_like(x), np.empty(len(x), np.bool_)
    own = ctests.kernel_exact(level, name, units, len(x), (x, to, settled))
    return to, settled, own


@pytest.mark.parametrize("level", ctests.kernel_levels())
@pytest.mark.parametrize("name", RANGES)
def test_own_error(level, name):
    rng = np.random.default_rng(3)
    for low, high in RANGES[name]:
        x = rng.uniform(low, high, 100_000)
        own = settle(level, name, 0.0, x[:8])[2]
        if own is None:
            pytest.skip("this level has no exact functions")
        # A long double is rounded to 2^-12 units of a double.
        got, settled, _ = settle(level, name, own - 0.0005, x)
        exact = getattr(np, name)(x.astype(np.longdouble))
        nearest = exact.astype(np.float64)
        wrong = settled & (got != nearest)
        assert not wrong.any(), x[wrong][:3]
        assert settled.mean() > 0.98


@pytest.mark.parametrize("level", ctests.kernel_levels())
def test_what_is_not_ordinary_is_left_open(level):
    tiny = np.finfo(float).tiny
    open_to = {
        "sin": [np.inf, -np.inf, np.nan, 2.0**26, -1e300, tiny / 2, -5e-324, np.pi, 2e7 * np.pi],
        "cos": [np.inf, -np.inf, np.nan, 2.0**26, -1e300, float.fromhex("0x1.921fb54442d18p+0")],
        "exp": [np.inf, -np.inf, np.nan, 709.5, -708.5, 1e300, -1e300],
        "log": [np.inf, -np.inf, np.nan, 0.0, -0.0, -1.0, tiny / 2, -1e300],
        "exp2": [np.inf, -np.inf, np.nan, 1023.5, -1022.0, 1e300, -1e300],
        "log2": [np.inf, -np.inf, np.nan, 0.0, -0.0, -1.0, tiny / 2, -1e300],
    }
    for name, values in open_to.items():
        x = np.array(values)
        _, settled, own = settle(level, name, 0.1, x)
        if own is None:
            pytest.skip("this level has no exact functions")
        assert not settled.any(), (name, x[settled])
