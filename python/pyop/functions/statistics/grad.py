"""Differentiate medians and quantiles, means with weights, covariances, and counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...gradients import table
from ...gradients.adjoints import along, count
from ...gradients.rule import nondifferentiable, structural
from ...gradients.table import NoRule
from ...gradients.unbroadcast import broadcast_like, conj, shape_of
from ...transforms.composite import composite
from ..shape import axes_of

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
    covariance = np.matmul(x, np.transpose(conj(x))) / (count(x, 1) - free)
    return covariance[0, 0] if len(shape_of(m) or ()) == 1 else covariance


@composite(np.corrcoef)
def _corrcoef(x: Any, y: Any = None, rowvar: bool = True, *args: Any, dtype: Any = None) -> Any:
    c = _cov(x, y, rowvar)
    if not shape_of(c):
        return c / c
    scale = np.sqrt(np.real(np.diag(c)))
    return c / np.outer(scale, scale)


class _Counts(table.Rule):
    """Differentiate counts of numbers between edges: they do not change with the numbers.

    Edges that are computed from the numbers do, and so do weights and densities.
    """

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
nondifferentiable(np.digitize)


def _count(a: Any, axis: int) -> int:
    size = (shape_of(a) or (None,))[axis]
    if not isinstance(size, int):
        raise NoRule("the gradient of a quantile needs the number of elements when the graph is built: declare it")
    return size


def _along_last(a: Any, axis: Any, keepdims: bool) -> tuple[Any, Any]:
    """Return the array with what is reduced in its last axis, and how to put the result in shape."""
    shape = shape_of(a)
    if shape is None:
        raise NoRule("the gradient of a quantile needs the rank of the array: declare it in its spec")
    axes = axes_of(axis, len(shape))
    rest = tuple(k for k in range(len(shape)) if k not in axes)
    moved = np.transpose(a, rest + axes)
    size: Any = 1
    for k in axes:
        size = size * shape[k] if isinstance(shape[k], int) else _count(a, k)
    flat = np.reshape(moved, (*[shape[k] for k in rest], size)) if len(axes) != 1 else moved
    kept = (lambda x: np.expand_dims(x, axes)) if keepdims else (lambda x: x)
    return flat, kept


def _quantile_at(a: Any, q: float, axis: Any, keepdims: bool) -> Any:
    flat, kept = _along_last(a, axis, keepdims)
    ordered = np.sort(flat, axis=-1)
    place = q * (_count(flat, -1) - 1)
    low = int(np.floor(place))
    part = place - low
    lower = ordered[along(-1, low)]
    return kept(lower if not part else lower * (1 - part) + ordered[along(-1, low + 1)] * part)


@composite(np.median)
def _median(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    return _quantile_at(a, 0.5, axis, keepdims)


@composite(np.quantile)
def _quantile(a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: str = "linear",
              keepdims: bool = False, **kw: Any) -> Any:  # fmt: skip
    if method != "linear" or kw.get("weights") is not None:
        raise NoRule(
            'np.quantile has a gradient rule for method="linear" and no weights: use that, or np.sort and indices'
        )
    numbers = np.asarray(q)
    if numbers.ndim == 0:
        return _quantile_at(a, float(numbers), axis, keepdims)
    quantiles = np.stack([_quantile_at(a, float(x), axis, keepdims) for x in numbers.ravel()])
    return quantiles if numbers.ndim == 1 else np.reshape(quantiles, (*numbers.shape, *np.shape(quantiles)[1:]))


@composite(np.percentile)
def _percentile(a: Any, q: Any, *args: Any, **kwargs: Any) -> Any:
    return _quantile(a, np.asarray(q) / 100, *args, **kwargs)


@composite(np.average)
def _average(a: Any, axis: Any = None, weights: Any = None, returned: Any = False, *, keepdims: Any = False) -> Any:
    if returned:
        raise NoRule("np.average(returned=True) has no gradient rule: divide the two sums yourself")
    if weights is None:
        return np.mean(a, axis=axis, keepdims=keepdims)
    if shape_of(weights) != shape_of(a) and isinstance(axis, int):
        ndim = len(shape_of(a) or ())
        weights = np.expand_dims(weights, tuple(k for k in range(ndim) if k != axis % ndim))
    total = np.sum(broadcast_like(weights, a), axis=axis, keepdims=keepdims)
    return np.sum(a * weights, axis=axis, keepdims=keepdims) / total
