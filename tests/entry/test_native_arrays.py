"""Plans of small arrays, called without Python: the plan's own bits, whatever lies where."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import pyop

from .calling import call, pointers, results_for

F3, F33, F9, F5 = "float64[3]", "float64[3,3]", "float64[9]", "float64[5]"


def lorenz(t, y):
    return np.stack([10 * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]])


def filled(y):
    r = np.zeros_like(y)
    r[0] = y[1] * 2
    r[1:] = y[:-1]
    return r


def iterated(a, x):
    return pyop.fori_loop(0, 5, lambda i, v: np.tanh(a @ v) + 0.5 * v, x)


def branched(x):
    return pyop.cond(x[0] > 0, lambda v: v * 2, lambda v: v - v.sum(), x)


CASES = {
    "elementwise": (lambda x, y: (x * 2 + y, np.exp(-x * x) * np.sin(y), np.where(x > y, x, -y)), F3, F3),
    "with a number": (lambda x, y: x * y + 1, "float64[]", F5),
    "broadcast": (lambda a, x: (a + x, a - x[:, None], a * a.T[0]), F33, F3),
    "comparisons": (lambda x, y: (x < y, (x < y) & (y > 0), np.logical_not(x >= y)), F5, F5),
    "ranges": (lambda w: w.max() - w.min(), F9),
    "sums": (lambda w: (w.sum(), w.mean(), w.std(), w.var(ddof=1), w.prod()), F9),
    "mean of a line of float32": (lambda w: (w.mean(), w.sum(), w.max()), "float32[11]"),
    "sums along axes": (lambda a: (a.sum(axis=0), a.sum(axis=1), a.mean(axis=-1), a.max(axis=0, keepdims=True)), F33),
    "sums of a transposed": (lambda a: (a.T.sum(axis=0), a.T.sum(), a[:, ::2].sum(axis=1), a.T.max(axis=1)), F33),
    "a sum of squares": (lambda w: np.sum((w - 1) * w) + np.mean(w * w), F9),
    "sums of integers": (lambda w: (w.sum(), w.max(), w.min(axis=0), w.prod()), "int64[2,4]"),
    "truth": (lambda w: (np.any(w > 0), np.all(w > 0, axis=0)), F33),
    "products": (lambda a, x: (a @ x, x @ a, a @ a, x @ x, a.T @ x, np.dot(x, x), a[1] @ a[:, 2]), F33, F3),
    "float32": (lambda a, x: (a @ x, a * x, np.sqrt(np.abs(x))), "float32[4,4]", "float32[4]"),
    "complex": (lambda z, w: (z * w, np.conj(z), np.abs(z), z.sum()), "complex128[4]", "complex128[4]"),
    "integers": (lambda i, j: (i + j, i * j, i & j, np.maximum(i, j), i << 2), "int64[6]", "int64[6]"),
    "small types": (lambda a, b: (a + b, a[1:] * b[:-1], a[::-1]), "int8[5]", "int8[5]"),
    "views": (lambda x: (x[::-1], x[1:4], x.reshape(1, 5), x[2], x), F5),
    "stencil": (lambda x: x[:-2] + 2 * x[1:-1] - x[2:], "float64[11]"),
    "joined": (lambda x, y: (np.concatenate([x, y]), np.stack([x, x * 2], axis=1), np.hstack([y, 1.0 * y])), F3, F5),
    "joined matrices": (lambda a: (np.concatenate([a, a.T @ a], axis=1), np.vstack([a, a]), np.append(a, a)), F33),
    "lorenz": (lorenz, "float64[]", F3),
    "filled": (filled, F5),
    "iterated": (iterated, F33, F3),
    "branched": (branched, F5),
    "constants": (lambda x: (x * np.array([1.0, 2.0, 3.0]) + np.eye(3) @ x, np.ones(3)), F3),
    "of 300": (lambda x: (np.exp(-x) * 2, (x * x).sum(), x.max(), x[:-1] - x[1:]), "float64[300]"),
    "parts of many": (lambda x: (x[10:14] * 2, x[5000], x[-3:].sum()), "float64[10000]"),
    "one and none": (lambda x: (x * 2, x.sum(axis=1)), "float64[1,1]"),
}


def compiled(name):
    f, *specs = CASES[name]
    return pyop.trace(f, *specs).compile(), specs


def drawn(specs, seed, misaligned=0):
    """Arrays at any place: `misaligned` bytes behind where they should lie."""
    rng = np.random.default_rng(seed)
    arrays = []
    for spec in specs:
        dtype, shape = spec[:-1].split("[")
        shape = tuple(int(n) for n in shape.split(",")) if shape else ()
        values = rng.normal(size=shape)
        values = values + 1j * rng.normal(size=shape) if "complex" in dtype else values * (9 if "int" in dtype else 1)
        values = np.asarray(values).astype(dtype)
        memory = np.zeros(values.nbytes + 16, np.uint8)
        array = np.frombuffer(memory.data, dtype, values.size, offset=misaligned).reshape(shape)
        array[...] = values
        arrays.append(array)
    return arrays


def tuple_of(results):
    return results if isinstance(results, (tuple, list)) else (results,)


@pytest.mark.parametrize("name", CASES)
def test_same_bits_without_python(name):
    plan, specs = compiled(name)
    assert plan._without_python
    for seed in range(5):
        for misaligned in (0, 8, 3):
            arrays = drawn(specs, seed, misaligned)
            expected = tuple_of(plan(*[a.copy() for a in arrays]))
            results = results_for(plan)
            assert call(plan, arrays, results) == 0
            for want, got in zip(expected, results, strict=True):
                assert (want.dtype, want.shape) == (got.dtype, got.shape)
                assert want.tobytes() == got.tobytes()


@pytest.mark.parametrize("name", CASES)
def test_no_lock_is_asked_for(name):
    """A thread that Python does not know calls while this one holds the GIL: who asked for it would wait for ever."""
    ctests = pytest.importorskip("pyop._ctests", reason="needs the C++ tests: -Ccmake.define.PYOP_TESTS=ON")
    plan, specs = compiled(name)
    arrays, results = drawn(specs, 0), results_for(plan)
    ins, outs = pointers(arrays), pointers(results)
    assert ctests.call_on_threads(plan.address, ctypes.addressof(ins), ctypes.addressof(outs), 4, 3) == 0
    for want, got in zip(tuple_of(plan(*arrays)), results, strict=True):
        assert want.tobytes() == got.tobytes()
