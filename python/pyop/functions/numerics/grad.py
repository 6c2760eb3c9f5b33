"""Differences, interpolation, convolution and other numerical functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...gradients import table
from ...gradients.adjoints import along, count, reshape_like
from ...gradients.rule import composite, structural
from ...gradients.table import NoRule
from ...gradients.unbroadcast import conj, shape_of


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
    ndim = len(shape_of(f) or ())
    axes = tuple(range(ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    steps = varargs if len(varargs) > 1 else (varargs or (1.0,)) * len(axes)
    if edge_order != 1 or any(shape_of(step) != () for step in steps):
        raise NoRule(
            "np.gradient has a gradient rule for a single step an axis and edge_order=1: use that, or differences of "
            "slices"
        )
    found = [_central(f, k, step) for k, step in zip(axes, steps, strict=True)]
    return found[0] if len(found) == 1 else tuple(found)


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
    """``values[k]``, also where a graph is to compute `k` and the values are an array."""
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
    found = y0 + (y1 - y0) / (x1 - x0) * (x - x0)
    found = np.where(x < xp[0], fp[0] if left is None else left, found)
    return np.where(x > xp[-1], fp[-1] if right is None else right, found)


# --- convolution


def _sizes(a: Any, v: Any) -> tuple[int, int]:
    n, m = (shape_of(a) or (None,))[0], (shape_of(v) or (None,))[0]
    if not isinstance(n, int) or not isinstance(m, int):
        raise NoRule(
            'np.convolve and np.correlate need sizes that are numbers for a gradient in modes other than "full"'
        )
    return n, m


def _span(mode: Any, n: int, m: int) -> tuple[int, int]:
    """Which part of the full convolution a mode keeps."""
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


# --- statistics and polynomials


@composite(np.cov)
def _cov(m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: Any = None, fweights: Any = None,
         aweights: Any = None, *, dtype: Any = None) -> Any:  # fmt: skip
    if fweights is not None or aweights is not None or y is not None:
        raise NoRule(
            "np.cov has a gradient rule for one array and no weights: use np.stack or np.concatenate for two, and "
            "np.average for the means of weighted products"
        )
    x = np.atleast_2d(m)
    x = x if rowvar or len(shape_of(m) or ()) == 1 else np.transpose(x)
    x = x - np.mean(x, axis=1, keepdims=True)
    free = (0 if bias else 1) if ddof is None else ddof
    found = np.matmul(x, np.transpose(conj(x))) / (count(x, 1) - free)
    return found[0, 0] if len(shape_of(m) or ()) == 1 else found


@composite(np.corrcoef)
def _corrcoef(x: Any, y: Any = None, rowvar: bool = True, *args: Any, dtype: Any = None) -> Any:
    c = _cov(x, y, rowvar)
    if not shape_of(c):
        return c / c
    scale = np.sqrt(np.real(np.diag(c)))
    return c / np.outer(scale, scale)


@composite(np.polyval)
def _polyval(p: Any, x: Any) -> Any:
    count = (shape_of(p) or (None,))[0]
    if not isinstance(count, int):
        raise NoRule("the gradient of np.polyval needs the number of coefficients when the graph is built: declare it")
    result = np.zeros_like(x)
    for k in range(count):
        result = result * x + p[k]
    return result


@composite(np.vander)
def _vander(x: Any, N: Any = None, increasing: bool = False) -> Any:
    size = np.shape(x)[0] if N is None else N
    powers = np.arange(size) if increasing else np.arange(size - 1, -1, -1)
    return x[:, None] ** powers


@composite(np.linspace)
def _linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None,
              axis: int = 0, **kw: Any) -> Any:  # fmt: skip
    if retstep:
        raise NoRule("np.linspace(retstep=True) has no gradient rule: compute the step yourself")
    steps = np.arange(num) / max(num - 1 if endpoint else num, 1)
    lead = np.reshape(steps, (num,) + (1,) * len(shape_of(start - stop) or ()))
    found = start + (stop - start) * lead
    return found if axis == 0 else np.moveaxis(found, 0, axis)


class _Counts(table.Rule):
    """How many numbers lie between edges does not change with the numbers; edges that are computed from them do, and
    so do weights and densities."""

    def _check(self, argnums: tuple[int, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        bins = args[1] if len(args) > 1 else kwargs.get("bins")
        numbers = all(table.places(args, kwargs)[k].argument in (0, "a") for k in argnums)
        if not numbers or not shape_of(bins) or kwargs.get("density") or (len(args) > 3 and args[3]):
            raise NoRule(
                f"np.{self.func.__name__} has a gradient rule for counts between edges that are given (bins=edges): "
                "edges, weights and densities that depend on what is differentiated have none; give it "
                "pyop.stop_gradient(a) where no derivative is wanted"
            )

    def vjp(self, argnums: tuple[int, ...], ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> table.Pullback:
        self._check(argnums, args, kwargs)
        return lambda ct: (None,) * len(argnums)

    def jvp(self, argnums: Any, tangents: Any, ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._check(argnums, args, kwargs)
        return (None,) * len(ans) if isinstance(ans, tuple) else None


for _function in (np.histogram, np.histogram_bin_edges):
    table.add(_Counts(_function))

structural(
    np.bincount,
    (None, lambda ct, ans, x, weights=None, minlength=0: ct[x]),
    (None, lambda t, ans, x, weights=None, minlength=0: np.bincount(x, t, minlength)),
    ("x", "weights"),
)
