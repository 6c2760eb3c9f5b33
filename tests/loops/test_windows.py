"""Slices that move with a loop, ``x[k - 2 : k + 3]``: of known length where they lie within, as NumPy cuts them where
not.
"""

import linecache
import warnings

import numpy as np
import pytest

import pyop

INSIDE = [
    ("4, n - 4", "y[k] = np.dot(x[k - 4 : k], h)"),
    ("4, n - 4", "y[k] = np.dot(x[k - 3 : k + 1][::-1], h)"),
    ("4, n - 4", "y[k] = np.dot(h, h[::-1]) + np.dot(x[k - 3 : k + 1][::-1], x[k : k + 4][::-1])"),
    ("n - 5, 3, -1", "y[k] = x[k : k + 4].mean()"),
    ("2, n - 3, 3", "y[k] = np.median(x[k - 2 : k + 3])"),
    ("1, n - 2", "y[k : k + 2] += x[k - 1 : k + 1]"),
    ("1, n - 3", "y[k : k + 3] = y[k - 1 : k + 2] + x[k]"),
    ("1, n - 3", "w = x[k : k + 3]; x[k + 1] = 2.0; y[k] = w.sum()"),
    ("1, n - 3", "w = x[k : k + 3]; w[:] = y[k - 1] + 1.0; y[k] = x[k + 1]"),
    ("1, 10", "m[k - 1 : k + 2, k : k + 2] += y[k : k + 2]; y[k] = m[k - 1 : k + 2, k - 1 : k + 2].sum()"),
    ("1, 10", "y[k] = m[k, k - 1 : k + 2][::-1] @ m[k - 1 : k + 2, k]"),
]
CUT = [
    ("n", "y[k] = x[k - 3 : k + 2].sum()"),
    ("-3, n", "y[k] = x[k : k + 2].sum()"),
    ("n", "y[k] = x[k - n : k - n + 3].sum()"),
    ("n", "x[k : k + 4] = h[0]"),
    ("n", "y[k] = len(x[k - 2 : k + 2])"),
    ("n", "y[k] = x[k + 1 : k].sum()"),
    ("n", "y[k] = x[True, k : k + 3].sum()"),
    ("11", "y[k] = m[k - 1 : k + 2, k : k + 3].sum()"),
]
FILLED = [
    ("n", "y[b[k] : b[n - 1 - k]] = x[k]"),
    ("n", "y[b[k] - 5 : b[k]] = k"),
    ("n", "y[b[k] :] = x[k]"),
    ("n", "y[: b[k] - 3] = 1"),
    ("n", "y[-b[k] : k] = y[k]"),
    ("n", "c[b[k] : k] = True; y[k] = c[n - 1 - k]"),
    ("n", "d[k : b[k]] = x[k]; y[k] = d[k]"),
    ("n", "x[b[k] : b[k] + 3] = x[k]; y[k] = x[n - 1 - k]"),
    ("n", "w = y[b[k] :]; w[:] = x[k]; w[0:1] = 3.0; y[k] = w.sum()"),
]
SOURCE = """
def f(x, m, h):
    n = len(x)
    y = np.zeros(n)
    b = (np.arange(n) * 7 + 3) % n
    c = np.zeros(n, bool)
    d = np.zeros(n, "f4")
    for k in range({}):
        {}
    return y
"""


def made(bounds, body):
    source = SOURCE.format(bounds, body)
    file = f"<{bounds} {body}>"
    linecache.cache[file] = len(source), None, source.splitlines(True), file
    space = {"np": np}
    exec(compile(source, file, "exec"), space)
    return space["f"]


def arguments(seed, n, dtype):
    r = np.random.default_rng(seed)
    return [r.normal(size=size).astype(dtype) for size in (n, (12, 13), 4)]


@pytest.mark.parametrize(("bounds", "body"), INSIDE + CUT + FILLED)
def test_windows(bounds, body):
    f = made(bounds, body)
    for dtype in ("f8", "f4"):
        compiled = pyop.compile(f)
        for seed, n in enumerate((20, 20, 11)):
            given, others = arguments(seed, n, dtype), arguments(seed, n, dtype)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", pyop.RetraceWarning)
                result = compiled(*others)
            for a, b in zip([f(*given), *given], [result, *others], strict=True):
                assert (a.dtype, a.tobytes()) == (b.dtype, b.tobytes())


@pytest.mark.parametrize(("bounds", "body"), INSIDE)
def test_they_are_short_arrays_of_a_tape(bounds, body):
    given = arguments(0, 20, "f8")
    plan = pyop.compile(made(bounds, body)).plan_for(*given)
    if "median" not in body:
        assert "a tape of" in str(plan.explain())


@pytest.mark.parametrize(("bounds", "body"), [FILLED[k] for k in (0, 2, 6, 7)])
def test_parts_are_filled_on_a_tape(bounds, body):
    plan = pyop.compile(made(bounds, body)).plan_for(*arguments(0, 20, "f8"))
    assert "a tape of" in str(plan.explain())


def test_what_was_filled_is_undone_where_an_iteration_raises():
    f = made("n + 1", "y[k : k + 2] = 1.0; x[k : k + 2] = 7.0; y[k] = x[k]")
    given, others = arguments(0, 20, "f8"), arguments(0, 20, "f8")
    for function, x in ((f, given), (pyop.compile(f), others)):
        with pytest.raises(IndexError):
            function(*x)
    assert given[0].tobytes() == others[0].tobytes()


def test_their_gradient():
    f = made("3, n - 4", "y[k] = np.dot(x[k - 3 : k + 1][::-1], h) * x[k : k + 4].sum()")
    x, m, h = arguments(0, 16, "f8")
    gradient = pyop.compile(pyop.grad(lambda x: f(x, m, h).sum()))(x)
    step = 1e-6
    for k, slope in enumerate(gradient):
        moved = [f(x + sign * step * (np.arange(16) == k), m, h).sum() for sign in (1, -1)]
        assert slope == pytest.approx((moved[0] - moved[1]) / (2 * step), rel=1e-6, abs=1e-8)
