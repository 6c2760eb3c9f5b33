"""P5: 155 expressions as numerical people write them every day, compiled, against NumPy.

`tests/plan/test_idioms.py` holds each against NumPy, and counts those whose plan calls no Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import pyop

from .harness import Harness, Row, Statement

__all__ = ["EXPRESSIONS", "arguments", "function_of", "inputs", "run"]

SIZE = 200
NATIVE = 120  # expressions, at least

# The names in an expression are its arguments: those of `inputs`.
_EXPRESSIONS = """
    (x - x.mean()) / x.std()
    (a - a.mean(axis=0)) / a.std(axis=0, ddof=1)
    (x - x.min()) / (x.max() - x.min())
    x / np.linalg.norm(x)
    a / np.linalg.norm(a, axis=1, keepdims=True)
    np.exp(x - x.max()) / np.exp(x - x.max()).sum()
    np.log(np.sum(np.exp(x - np.max(x)))) + np.max(x)
    1 / (1 + np.exp(-x))
    np.where(x > 0, x, 0.01 * x)
    np.clip(x, -1, 1)
    np.sqrt(np.mean((x - y) ** 2))
    1 - np.sum((x - y) ** 2) / np.sum((x - x.mean()) ** 2)
    np.average(x, weights=w)
    np.cov(x, y)
    np.cov(a, rowvar=False)
    np.corrcoef(x, y)
    np.corrcoef(a.T)
    np.var(x, ddof=1)
    np.median(x)
    np.median(a, axis=0)
    np.median(np.abs(x - np.median(x)))
    np.percentile(x, 90)
    np.percentile(x, [25, 50, 75])
    np.quantile(a, [0.05, 0.95], axis=0)
    np.subtract(*np.percentile(x, [75, 25]))
    np.ptp(x)
    np.nansum(h)
    np.nanmean(h)
    np.nanmax(h)
    np.nanstd(h)
    np.nanmedian(h)
    np.nan_to_num(h)
    h[~np.isnan(h)]
    np.isnan(h).sum()
    np.sort(x)
    np.sort(a, axis=0)
    np.argsort(x)
    np.argsort(-x)[:5]
    x[np.argsort(y)]
    a[a[:, 0].argsort()]
    np.argsort(np.argsort(x))
    np.partition(x, 10)[:10]
    np.argpartition(x, 5)[:5]
    np.lexsort((y, x))
    np.searchsorted(e, x)
    np.digitize(x, e)
    x[x > 0]
    x[(x > -1) & (x < 1)].mean()
    a[a[:, 0] > 0]
    np.nonzero(x > 0)
    np.where(x > 1)[0]
    np.flatnonzero(x > 1)
    np.argwhere(a > 0)
    np.argmax(a, axis=1)
    np.unravel_index(np.argmax(a), a.shape)
    np.abs(x - 0.5).argmin()
    np.take_along_axis(a, np.argmax(a, axis=1)[:, None], axis=1)
    a[np.arange(12), i[:12] % 8]
    np.unique(i)
    np.unique(i, return_counts=True)
    np.unique(i, return_inverse=True)
    np.bincount(i)
    np.bincount(i, weights=x)
    np.bincount(i, weights=x) / np.bincount(i)
    np.histogram(x, bins=10)
    np.histogram(x, bins=e)
    np.histogram(x, bins=20, range=(-3, 3), density=True)
    np.isin(i, [1, 3, 5])
    np.intersect1d(i, j)
    np.union1d(i, j)
    np.diff(x)
    np.diff(x, n=2)
    np.diff(x, prepend=0)
    np.diff(a, axis=0)
    np.diff(np.sign(x)) != 0
    np.ediff1d(x)
    np.gradient(x)
    np.gradient(x, t)
    np.gradient(a)
    np.gradient(a, axis=0)
    np.cumsum(x)
    np.cumprod(1 + x / 100) - 1
    np.maximum.accumulate(x)
    (np.maximum.accumulate(w) - w).max()
    np.trapezoid(x, t)
    np.interp(x, e, e ** 2)
    np.interp(t, t[::2], x[::2])
    np.convolve(x, np.ones(5) / 5, mode="valid")
    np.convolve(x, y[:7], "same")
    np.correlate(x, y, "full")
    np.polyval([1.0, -2.0, 0.5], x)
    np.polyfit(t, x, 2)
    np.pad(x, 2)
    np.pad(a, 1, mode="edge")
    np.pad(x, (3, 3), mode="reflect")
    np.pad(a, ((1, 1), (2, 2)), mode="wrap")
    np.tile(x, 3)
    np.tile(a, (2, 2))
    np.repeat(x, 3)
    np.repeat(a, 2, axis=0)
    np.roll(x, 1)
    np.flip(a, axis=1)
    np.rot90(a)
    np.outer(x, y)
    np.kron(s, np.eye(2))
    np.cross(p, q)
    np.trace(s)
    np.dot(x, y)
    a @ x[:8]
    np.einsum("ij,ij->i", a, a)
    np.einsum("ij,jk->ik", a, s)
    np.einsum("bij,bj->bi", r, p)
    np.einsum("ii", s)
    np.einsum("i,j->ij", x, y)
    np.tensordot(a, s, axes=1)
    np.linalg.solve(s, x[:8])
    np.linalg.inv(s)
    np.linalg.det(s)
    np.linalg.eigh(s)
    np.linalg.eigvalsh(s)
    np.linalg.svd(a, full_matrices=False)
    np.linalg.svd(a, compute_uv=False)
    np.linalg.qr(a)
    np.linalg.cholesky(s)
    np.linalg.lstsq(a, x[:12], rcond=None)[0]
    np.linalg.pinv(a)
    np.linalg.matrix_power(s, 3)
    np.linalg.cond(s)
    np.fft.fft(x)
    np.abs(np.fft.rfft(x)) ** 2
    np.fft.ifft(c)
    np.fft.irfft(np.fft.rfft(x) * np.fft.rfft(y), n=200)
    np.fft.fftshift(np.fft.fft(x))
    np.fft.fft2(a)
    np.fft.rfftfreq(200, 0.1) * np.abs(np.fft.rfft(x))
    np.sqrt(((p[:, None, :] - q[None, :, :]) ** 2).sum(-1))
    np.hypot(*np.meshgrid(x[:9], y[:7]))
    np.stack([np.cos(x), np.sin(x)], axis=1)
    np.column_stack([np.ones_like(x), x, x ** 2])
    np.concatenate([x, y])[::2]
    np.vander(x, 3)
    np.tril(s)
    np.select([x < -1, x > 1], [x + 1, x - 1], 0)
    np.piecewise(x, [x < 0, x >= 0], [lambda v: -v, lambda v: v])
    np.allclose(x, y)
    np.isclose(x, y)
    np.round(x, 2)
    np.angle(c) + np.abs(c)
    np.lib.stride_tricks.sliding_window_view(x, 5).mean(axis=-1)
    x.reshape(-1, 4).mean(axis=1)
    np.apply_along_axis(np.sum, 1, a)
    np.insert(x, 0, 0.0)
    np.append(x, y)
    np.delete(x, 3)
    np.add.reduceat(x, [0, 50, 120])
"""
EXPRESSIONS = [line.strip() for line in _EXPRESSIONS.strip().splitlines()]


def inputs(size: int) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays that the expressions are about, by name; vectors have `size` elements, a multiple of 200."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, size))
    a = rng.normal(size=(12, 8))
    root = rng.normal(size=(8, 8))
    holes = rng.normal(size=size)
    holes[::7] = np.nan
    return {
        "x": x,
        "y": y,
        "w": rng.uniform(0.5, 2, size),
        "h": holes,
        "t": np.cumsum(rng.uniform(0.1, 1, size)),
        "c": x + 1j * y,
        "e": np.linspace(-3, 3, 13),
        "i": rng.integers(0, 8, size),
        "j": rng.integers(4, 12, size),
        "a": a,
        "s": root @ root.T + np.eye(8),
        "p": rng.normal(size=(12, 3)),
        "q": rng.normal(size=(12, 3)),
        "r": rng.normal(size=(12, 3, 3)),
    }


def arguments(expression: str, given: dict[str, np.ndarray[Any, Any]]) -> dict[str, np.ndarray[Any, Any]]:
    """Those of the arrays that an expression names."""
    used = compile(expression, "idiom", "eval").co_names
    return {name: array for name, array in given.items() if name in used}


def function_of(expression: str, names: list[str]) -> Callable[..., Any]:
    """The expression as a function of its names."""
    made: Callable[..., Any] = eval(f"lambda {', '.join(names)}: {expression}", {"np": np})
    return made


def run(harness: Harness) -> list[Row]:
    """How many expressions call no Python, and NumPy's time over that of the compiled ones."""
    given = inputs(SIZE)
    python, ratios = 0, {}
    for expression in EXPRESSIONS[:: 40 if harness.quick else 1]:
        named = arguments(expression, given)
        function, values = function_of(expression, list(named)), tuple(named.values())
        compiled = pyop.compile(function)
        compiled(*values)
        python += "python" in [node.fate for node in compiled.plan_for(*values).explain().nodes]
        times = harness.compare(
            {
                "numpy": Statement("f(*a)", {"f": function, "a": values}, unroll=1),
                "pyop": Statement("f(*a)", {"f": compiled, "a": values}, unroll=1),
            }
        )
        ratios[expression] = 1 / times.ratio("pyop", "numpy")
    mean = float(np.exp(np.mean(np.log(list(ratios.values())))))
    slowest = min(ratios, key=lambda expression: ratios[expression])
    return [
        Row("P5", f"of {len(ratios)} idioms, those that call Python", f"≤ {155 - NATIVE}", python, 155 - NATIVE, ""),
        Row(
            "P5",
            f"idioms on {SIZE} numbers, compiled, over NumPy, geometric mean",
            "≤ 1",
            1 / mean,
            1.0,
            detail=f"{mean:.2f} times faster; the slowest is {slowest}: {ratios[slowest]:.2f}",
        ),
    ]
