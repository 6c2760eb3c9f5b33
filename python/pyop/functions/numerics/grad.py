"""Differentiate differences, integrals, convolutions and interpolation."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...gradients.adjoints import along, reshape_like
from ...gradients.rule import structural
from ...gradients.table import NoRule
from ...gradients.unbroadcast import conj, shape_of
from ...transforms.composite import composite
from ..shape import axes_of


@composite(np.diff)
def _diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    for extra, front in ((prepend, True), (append, False)):
        if extra is None or extra is np._NoValue:
            continue
        if not (shape_of(extra) or ()):
            extra = np.zeros_like(a[along(axis, slice(0, 1))]) + extra
        a = np.concatenate([extra, a] if front else [a, extra], axis=axis)
    for _ in range(n):
        a = a[along(axis, slice(1, None))] - a[along(axis, slice(None, -1))]
    return a


@composite(np.ediff1d)
def _ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    flat = np.ravel(ary)
    parts = [flat[1:] - flat[:-1]]
    if to_begin is not None:
        parts.insert(0, np.ravel(to_begin))
    if to_end is not None:
        parts.append(np.ravel(to_end))
    return np.concatenate(parts) if len(parts) > 1 else parts[0]


@composite(np.gradient)
def _gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    axes = axes_of(axis, len(shape_of(f) or ()))
    steps = varargs if len(varargs) > 1 else (varargs or (1.0,)) * len(axes)
    if edge_order != 1 or any(shape_of(step) != () for step in steps):
        raise NoRule(
            "np.gradient has a gradient rule for a single step an axis and edge_order=1: use that, or differences of "
            "slices"
        )
    gradients = [_central(f, k, step) for k, step in zip(axes, steps, strict=True)]
    return gradients[0] if len(gradients) == 1 else tuple(gradients)


def _central(f: Any, axis: int, step: Any) -> Any:
    first = f[along(axis, slice(1, 2))] - f[along(axis, slice(0, 1))]
    last = f[along(axis, slice(-1, None))] - f[along(axis, slice(-2, -1))]
    inner = (f[along(axis, slice(2, None))] - f[along(axis, slice(None, -2))]) / 2
    return np.concatenate([first, inner, last], axis=axis) / step


@composite(np.trapezoid)
def _trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    if x is None:
        step = dx
    else:
        step = np.diff(x, axis=-1 if len(shape_of(x) or ()) == 1 else axis)
        if len(shape_of(x) or ()) == 1:
            ndim = len(shape_of(y) or ())
            step = np.expand_dims(step, tuple(k for k in range(ndim) if k != axis % ndim))
    pairs = y[along(axis, slice(1, None))] + y[along(axis, slice(None, -1))]
    return np.sum(step * pairs, axis=axis) / 2


def _picked(values: Any, k: Any) -> Any:
    """Return ``values[k]``, also where a graph is to compute `k` and the values are an array."""
    if type(values) is not np.ndarray or type(k) is np.ndarray:
        return values[k]
    return reshape_like(np.take_along_axis(values, np.ravel(k), axis=0), k)


@composite(np.interp)
def _interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    if period is not None:
        raise NoRule("np.interp(period=...) has no gradient rule: bring the points into one period yourself")
    xp, fp = (np.asarray(points) if isinstance(points, (list, tuple)) else points for points in (xp, fp))
    last = np.shape(xp)[0] - 1
    k = np.clip(np.searchsorted(xp, x, side="right") - 1, 0, last - 1)
    x0, x1, y0, y1 = _picked(xp, k), _picked(xp, k + 1), _picked(fp, k), _picked(fp, k + 1)
    line = y0 + (y1 - y0) / (x1 - x0) * (x - x0)
    line = np.where(x < xp[0], fp[0] if left is None else left, line)
    return np.where(x > xp[-1], fp[-1] if right is None else right, line)


# --- convolution


def _sizes(a: Any, v: Any) -> tuple[int, int]:
    n, m = (shape_of(a) or (None,))[0], (shape_of(v) or (None,))[0]
    if not isinstance(n, int) or not isinstance(m, int):
        raise NoRule(
            'np.convolve and np.correlate need sizes that are numbers for a gradient in modes other than "full"'
        )
    return n, m


def _span(mode: Any, n: int, m: int) -> tuple[int, int]:
    """Return the range of the full convolution that a mode keeps."""
    if mode == "same":
        return (min(n, m) - 1) // 2, max(n, m)
    return min(n, m) - 1, max(n, m) - min(n, m) + 1


def _full(ct: Any, a: Any, v: Any, mode: Any) -> Any:
    if mode == "full":
        return ct
    n, m = _sizes(a, v)
    start, size = _span(mode, n, m)
    return np.pad(ct, (start, n + m - 1 - start - size))


structural(
    np.convolve,
    (
        lambda ct, ans, a, v, mode="full": np.correlate(_full(ct, a, v, mode), v, "valid"),
        lambda ct, ans, a, v, mode="full": np.correlate(_full(ct, a, v, mode), a, "valid"),
    ),
    ("same", "same"),
    ("a", "v"),
)


@composite(np.correlate)
def _correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    full = np.convolve(a, np.flip(conj(v), 0))
    if mode == "full":
        return full
    n, m = _sizes(a, v)
    start, size = _span(mode, n, m)
    if mode == "same" and m > n:
        start = n + m - 1 - start - size  # NumPy exchanges the two, and turns the result round
    return full[start : start + size]
