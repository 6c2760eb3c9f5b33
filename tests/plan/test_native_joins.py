"""Arrays put together, picked from and rolled by native steps: NumPy's values, dtypes, orders of memory and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyop

LINE, OTHER = np.arange(5.0), np.arange(10.0, 13.0)
TABLE = np.arange(12.0).reshape(3, 4)
CUBE = np.arange(24, dtype="i4").reshape(2, 3, 4)
WHERE = np.array([2, -1, 0, 0])
JOINS = {
    "concatenate": lambda x, y: np.concatenate([x, y, x]),
    "concatenate with numbers": lambda x, y: np.concatenate([x, [1.0, 2.0], y]),
    "concat flat": lambda x, y: np.concatenate((x, y), axis=None),
    "append": lambda x, y: np.append(x, y),
    "append a number": lambda x, y: np.append(x, 1.5),
    "prepend a number": lambda x, y: np.append(1.5, y),
    "append an integer": lambda x, y: np.append(x, 1),  # promoted
    "hstack": lambda x, y: np.hstack((x, y)),
    "hstack of numbers": lambda x, y: np.hstack([x[0], x[1:], y[0]]),
    "stack": lambda x, y: np.stack([x, x]),
    "stack last": lambda x, y: np.stack([x, x[::-1], x], axis=-1),
    "stack numbers": lambda x, y: np.stack([x[0] * y[1], x[1], y[2] + 1.0]),
    "vstack": lambda x, y: np.vstack([x, x + x]),
    "vstack of numbers": lambda x, y: np.vstack([x[0], x[1]]),
    "strided": lambda x, y: np.concatenate([x[::-2], y[::2]]),
    "one": lambda x, y: np.concatenate([x]),
    "empty": lambda x, y: np.concatenate([x[:0], y[:0]]),
    "roll": lambda x, y: np.roll(x, 2) + np.roll(x, -1) + np.roll(x, 11) + np.roll(x, 0),
    "take": lambda x, y: np.take(x, WHERE),
    "index": lambda x, y: x[WHERE] + x[[1, 1, 0, -1]],
    "index of none": lambda x, y: x[np.array([], int)],
    "indices of two dimensions": lambda x, y: x[WHERE.reshape(2, 2)],
    "small indices": lambda x, y: x[WHERE.astype("i1")],
    "taken strided": lambda x, y: x[::2][WHERE],
    "mask": lambda x, y: x[np.array([True, False, True, True, False])],
}
TABLES = {
    "concatenate": lambda t: np.concatenate([t, t + t]),
    "concatenate columns": lambda t: np.concatenate([t, t[:, :1]], axis=1),
    "concatenate last": lambda t: np.concatenate([t, t], axis=-1),
    "flat": lambda t: np.concatenate([t, t], axis=None),
    "append": lambda t: np.append(t, t, axis=0),
    "transposed": lambda t: np.concatenate([t.T, t.T]),
    "stack": lambda t: np.stack([t, t, t], axis=1),
    "stack last": lambda t: np.stack([t, t], axis=2 if t.ndim == 2 else 3),
    "hstack": lambda t: np.hstack([t, t]),
    "vstack": lambda t: np.vstack([t, t]),
    "roll": lambda t: np.roll(t, 5) + np.roll(t, 1, axis=0) - np.roll(t, -1, axis=-1),
    "roll axes": lambda t: np.roll(t, (1, 2), axis=(0, 1)),
    "take flat": lambda t: np.take(t, WHERE),
    "take rows": lambda t: np.take(t, [1, 0, 1], axis=0) + t[[1, 0, 1]],
    "take columns": lambda t: np.take(t, WHERE.reshape(2, 2), axis=-1),
    "transposed rows": lambda t: t.T[WHERE],
}
# What is left to NumPy: promotion, orders of memory, masks, several axes.
LEFT = {
    "append an integer",
    "small indices",
    "vstack of numbers",
    "mask",
    "roll axes",
    "hstack of numbers",
}


def same_as_numpy(f: Any, *arrays: np.ndarray) -> pyop.Plan:
    want = f(*arrays)
    specs = [f"{a.dtype.name}[{','.join('nmkl'[: a.ndim])}]" for a in arrays] if arrays[0].ndim > 1 else None
    for compiled in (pyop.compile(f), pyop.compile(f, *specs) if specs else pyop.compile(f, optimize=False)):
        for _ in range(3):
            got = compiled(*arrays)
            assert (got.dtype, got.shape, got.strides) == (want.dtype, want.shape, want.strides)
            np.testing.assert_array_equal(got, want)
            assert got.flags.owndata or got.base is not None
            assert not any(np.shares_memory(got, a) for a in arrays)
    return pyop.compile(f).plan_for(*arrays)


@pytest.mark.parametrize("name", JOINS)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i2", "?", "c16"])
def test_lines(name, dtype):
    if dtype != "f8" and "number" in name:
        dtype = "f8"
    plan = same_as_numpy(JOINS[name], LINE.astype(dtype), OTHER.astype(dtype))
    if name not in LEFT:
        assert "calls Python" not in str(plan.explain())


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("array", [TABLE, CUBE], ids=["f8", "i4"])
def test_tables(name, array):
    plan = same_as_numpy(TABLES[name], array)
    if name not in LEFT:
        assert "calls Python" not in str(plan.explain())


def test_large_results_come_without_the_interpreter():
    x = np.random.default_rng(0).random(100_000)
    where = np.random.default_rng(1).integers(-100_000, 100_000, 100_000)
    for f in (lambda x: np.concatenate([x, x]), lambda x: np.roll(x, 7), lambda x: x[where]):
        same_as_numpy(f, x)


def test_results_are_new_each_time():
    f = pyop.compile(lambda x: (np.concatenate([x, x]), x[[0, 1]], np.roll(x, 1)))
    first = f(LINE)
    kept = [r.copy() for r in first]
    second = f(LINE + 1.0)
    for a, b, k in zip(first, second, kept, strict=True):
        np.testing.assert_array_equal(a, k)
        assert not np.shares_memory(a, b)
    out = tuple(np.empty_like(r) for r in first)
    got = f(LINE, out=out)
    assert all(g is o for g, o in zip(got, out, strict=True))
    np.testing.assert_array_equal(out[0], kept[0])


def test_errors_are_numpys():
    pick = pyop.compile(lambda x, i: x[i])
    take = pyop.compile(lambda x, i: np.take(x, i))
    for f in (pick, take):
        np.testing.assert_array_equal(f(LINE, np.array([0, 1])), LINE[:2])
        with pytest.raises(IndexError, match="index 9 is out of bounds for axis 0 with size 5"):
            f(LINE, np.array([0, 9]))
        with pytest.raises(IndexError, match="index -6"):
            f(LINE, np.array([-6, 1]))
    rows = pyop.compile(lambda t, i: np.take(t, i, axis=1), "float64[n, m]", "int64[k]")
    assert rows(TABLE[:0], np.array([4])).shape == (0, 1)
    with pytest.raises(IndexError, match="out of bounds"):
        rows(TABLE, np.array([4]))
    joined = pyop.compile(lambda a, b: np.concatenate([a, b]), "float64[n, m]", "float64[k, l]")
    with pytest.raises(ValueError, match="must match exactly"):
        joined(TABLE, TABLE[:, :2])
    np.testing.assert_array_equal(joined(TABLE, TABLE), np.concatenate([TABLE, TABLE]))


PARTS = {
    "slice": lambda x: x[1:],
    "step": lambda x: x[::-2],
    "ellipsis": lambda x: x[..., 1],
    "row": lambda x: x[1],
    "new axis": lambda x: x[None, 1:, None],
    "column": lambda x: x[:, 1:3] * 2.0,
    "transposed": lambda x: x[:2].T @ np.ones((2, 3)),
    "item": lambda x: x[1, 2] * x,
    "nothing": lambda x: x[5:],
}


@pytest.mark.parametrize("name", PARTS)
def test_adjoint_of_an_index(name):
    """The gradient of what reads a part is zero elsewhere: the native step does what its function does."""
    from pyop.gradients.adjoints import put

    def f(x):
        part = PARTS[name](x)
        return np.sum(part * part)

    x = np.random.default_rng(0).standard_normal((4, 5))
    compiled = pyop.compile(pyop.grad(f))
    np.testing.assert_array_equal(compiled(x), pyop.compile(pyop.grad(f), optimize=False)(x))
    assert "put" not in str(compiled.plan_for(x).explain()) or "copies into zeros" in str(
        compiled.plan_for(x).explain()
    )
    named = pyop.compile(pyop.grad(f), "float64[n, m]")
    np.testing.assert_array_equal(named(x), compiled(x))
    direct = pyop.compile(lambda c, like: put(c, like, (slice(1, None), 2)))
    ct = x[1:, 0]
    for _ in range(2):
        np.testing.assert_array_equal(direct(ct, x), put(ct, x, (slice(1, None), 2)))
