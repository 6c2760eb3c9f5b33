"""Compose functions of NumPy from simpler ones on Values, so that their nodes run as native loops.

Each does what NumPy's own code does with arrays, in the same order, so the bits and the warnings are the same. It
returns `NotImplemented` for arguments that it does not handle; then the function becomes one node that calls it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._core import Value
from ..refusals import refusal
from .deciding import value_decided

__all__ = ["COMPOSED"]


def _is_axis(a: Any, axis: Any) -> bool:
    """Return whether `a` is a Value of known dtype and rank that has this axis."""
    return (
        isinstance(a, Value)
        and a.dtype is not None
        and a.shape is not None
        and type(axis) is int
        and -len(a.shape) <= axis < len(a.shape)
    )


def _along(a: Any, axis: int, part: slice) -> Any:
    index = [slice(None)] * len(a.shape)
    index[axis] = part
    return a[tuple(index)]


def _diff(a: Any, n: Any = 1, axis: Any = -1, prepend: Any = np._NoValue, append: Any = np._NoValue) -> Any:
    if prepend is not np._NoValue or append is not np._NoValue or type(n) is not int or n < 1 or not _is_axis(a, axis):
        return NotImplemented
    subtract = np.not_equal if a.dtype == np.bool_ else np.subtract
    for _ in range(n):
        a = subtract(_along(a, axis, slice(1, None)), _along(a, axis, slice(None, -1)))
    return a


def _trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Any:
    if not _is_axis(y, axis):
        return NotImplemented
    if x is None:
        step = dx
    elif len(y.shape) == 1 and _is_axis(x, -1) and len(x.shape) == 1:
        step = np.diff(x)
    else:
        return NotImplemented
    pairs = np.add(_along(y, axis, slice(1, None)), _along(y, axis, slice(None, -1)))
    return np.sum(step * pairs / 2.0, axis)


def _matrix_rank(A: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the rank of an array of less than two dimensions, a Python int by its contents: a decision."""
    if not isinstance(A, Value) or A.shape is None or len(A.shape) > 1:
        return NotImplemented
    some: Any = np.any(A != 0)
    truth = value_decided(some, "t")
    return truth if truth is NotImplemented else int(truth)


def _only_of_arrays(func: Callable[..., Any]) -> Callable[..., Any]:
    """Return an implementation that refuses a complex scalar, and otherwise returns `NotImplemented`.

    NumPy returns the real nan for a complex scalar that is nan, and for an array of no dimension its element.
    """

    def refused(a: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(a, Value) and a._is_scalar is not False and a.dtype is not None and a.dtype.kind == "c":
            raise refusal(
                f"np.{func.__name__} of one complex number gives nan+0j for nan, which a plan does not, since it has "
                "the number in an array: write np.where(np.isnan(x), np.nan, x), or pass an array"
            )
        return NotImplemented

    return refused


def _nan_to_num(x: Any, copy: Any = True, **options: Any) -> Any:
    return NotImplemented if copy or type(x) is not Value or x._is_scalar else x._writes.nan_to_num(x, options)


def _imag(val: Any) -> Any:
    real = type(val) is Value and val._is_scalar and val.dtype is not None and val.dtype.kind in "biuf"
    # Of a scalar it is a scalar; an array's is read-only, as all that shows it.
    return np.zeros_like(val)[()] if real else NotImplemented


def _piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    # A list of truths is one condition, which the node, whose scalars are arrays of no dimension, would not see.
    first = condlist[0] if isinstance(condlist, (list, tuple)) and condlist else None
    if type(first) is not Value or not first._is_scalar or np.ndim(x) == 0:
        return NotImplemented
    from .lists import array_of  # on first use

    return np.piecewise(x, [array_of(condlist)], funclist, *args, **kw)


COMPOSED: dict[Any, Callable[..., Any]] = {
    np.imag: _imag,
    np.nanmax: _only_of_arrays(np.nanmax),
    np.nanmin: _only_of_arrays(np.nanmin),
    np.diff: _diff,
    np.piecewise: _piecewise,
    np.trapezoid: _trapezoid,
    np.nan_to_num: _nan_to_num,
    np.linalg.matrix_rank: _matrix_rank,
}
