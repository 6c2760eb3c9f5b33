"""Sorting, and statistics that depend on order."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...gradients.adjoints import along, reshape_like
from ...gradients.rule import composite, structural, zero
from ...gradients.table import NoRule
from ...gradients.unbroadcast import shape_of


def _rank(a: Any, axis: int) -> Any:
    return np.argsort(np.argsort(a, axis=axis, kind="stable"), axis=axis, kind="stable")


def _ordered(t: Any, ans: Any, a: Any, axis: int) -> Any:
    """`t` moved as the elements of `a` were moved to give `ans`."""
    in_order = np.take_along_axis(t, np.argsort(a, axis=axis, kind="stable"), axis=axis)
    return np.take_along_axis(in_order, _rank(ans, axis), axis=axis)


def _flat(x: Any, axis: Any) -> Any:
    return np.ravel(x) if axis is None else x


def _back(ct: Any, ans: Any, a: Any, axis: Any) -> Any:
    k = -1 if axis is None else axis
    return reshape_like(_ordered(ct, _flat(a, axis), ans, k), a)


def _forth(t: Any, ans: Any, a: Any, axis: Any) -> Any:
    return _ordered(_flat(t, axis), ans, _flat(a, axis), -1 if axis is None else axis)


# fmt: off
structural(np.sort, (lambda ct, ans, a, axis=-1, *args, **kw: _back(ct, ans, a, axis),),
           (lambda t, ans, a, axis=-1, *args, **kw: _forth(t, ans, a, axis),), ("a", "axis"))
structural(np.partition, (lambda ct, ans, a, kth, axis=-1, *args, **kw: _back(ct, ans, a, axis), None),
           (lambda t, ans, a, kth, axis=-1, *args, **kw: _forth(t, ans, a, axis), None), ("a", "kth", "axis"))
zero(np.argsort, np.argpartition, np.lexsort, np.searchsorted, np.digitize)
# fmt: on


def _count(a: Any, axis: int) -> int:
    size = (shape_of(a) or (None,))[axis]
    if not isinstance(size, int):
        raise NoRule("the gradient of a quantile needs the number of elements when the graph is built: declare it")
    return size


def _along_last(a: Any, axis: Any, keepdims: bool) -> tuple[Any, Any]:
    """The array with what is reduced in its last axis, and how to put the result in shape."""
    shape = shape_of(a)
    if shape is None:
        raise NoRule("the gradient of a quantile needs the rank of the array: declare it in its spec")
    ndim = len(shape)
    axes = (
        tuple(range(ndim)) if axis is None else tuple(k % ndim for k in (axis if isinstance(axis, tuple) else (axis,)))
    )
    rest = tuple(k for k in range(ndim) if k not in axes)
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
    found = np.stack([_quantile_at(a, float(x), axis, keepdims) for x in numbers.ravel()])
    return found if numbers.ndim == 1 else np.reshape(found, (*numbers.shape, *np.shape(found)[1:]))


@composite(np.percentile)
def _percentile(a: Any, q: Any, *args: Any, **kwargs: Any) -> Any:
    return _quantile(a, np.asarray(q) / 100, *args, **kwargs)
