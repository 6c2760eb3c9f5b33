"""Groups reach over views that stand between their members, unless the views are of a member."""

from __future__ import annotations

import numpy as np
import pytest

import pyop


def smooth(x):
    return x[:-2] + 2.0 * x[1:-1] + x[2:]


def steep(image):
    across = image[1:-1, 2:] - image[1:-1, :-2]
    down = image[2:, 1:-1] - image[:-2, 1:-1]
    return np.sqrt(across * across + down * down)


def of_a_member(x):
    y = x * 2.0
    z = y[1:] + x[:-1]
    return z * y[:-1] + z[::-1]


def of_a_view_of_a_member(x):
    y = x + 1.0
    turned = y.reshape(2, -1).T.ravel()
    return (turned - x) * y


def of_no_array(x):
    y = x * 3.0
    return y + x[0] * x[::-1] - y[-1]


CASES = {"smooth": (smooth, 1), "steep": (steep, 1), "member": (of_a_member, None)}
CASES |= {"turned": (of_a_view_of_a_member, None), "numbers": (of_no_array, None)}


@pytest.mark.parametrize("name", CASES)
def test_values_and_groups(name):
    f, groups = CASES[name]
    rng = np.random.default_rng(0)
    for n in (4, 10, 1000):
        x = rng.standard_normal((n, n + 2) if name == "steep" else n)
        plan = pyop.compile(f).plan_for(x)
        for threads in (1, 2):
            for disable in ((), ("views",), ("fuse",), ("schedule",)):
                got = pyop.compile(f, disable=disable, threads=threads)(x)
                np.testing.assert_array_equal(got, f(x))
        if groups is not None:
            assert plan.report()["groups"] == groups
            apart = pyop.compile(f, disable=["views"]).plan_for(x)
            assert apart.report()["groups"] > groups


@pytest.mark.parametrize("dtype", ["float64", "float32", "int16", "bool", "complex128"])
def test_short_lines_beside_numbers(dtype):
    """Lines of a few elements are read many at a time: operands that repeat along them, have gaps, or lie backwards."""
    rng = np.random.default_rng(1)
    for length in (1, 2, 3, 4, 5, 16, 17):
        for n in (1, 2, 300, 1100):
            wide = rng.integers(0, 2, (n, 2, length + 3)).astype(dtype)
            beside = rng.integers(0, 2, (2, n)).astype(dtype)
            for x in (wide[:, 0, :length], wide[::-1, 0, 1 : length + 1], wide[:, :, length:2:-1]):
                w = beside.T[:, :, None] if x.ndim == 3 else beside[1][:, None]

                def f(x, w):
                    return (x + w) * x

                np.testing.assert_array_equal(pyop.compile(f)(x, w), f(x, w))
