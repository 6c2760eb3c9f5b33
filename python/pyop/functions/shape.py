"""Compute with shapes whose sizes may be names or unknown, and raise NumPy's errors where they are certain."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numpy.exceptions import AxisError
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from ..declare.dims import Dim, Extent, add, broadcast_shapes, floordiv, mul, prod, same, sub
from ..declare.spec import Spec
from ..refusals import refusal
from .operand import Operand, Shape, Sizes, extents

__all__ = ["AxisError", "add", "axes_of", "axis_of", "broadcast", "concrete", "dropped", "floordiv", "full", "ints"]
__all__ += ["least", "merge", "minus", "mul", "one_d", "one_dimension", "prod", "reduced", "replaced", "same"]
__all__ += ["shape_argument", "sub", "text", "three_d", "two_d", "unknown"]


def axis_of(axis: Any, ndim: int) -> int:
    """Return one axis, counted from the front; AxisError if there is no such axis."""
    _require_static(axis)
    return normalize_axis_index(operator.index(axis), ndim)


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """Return axes counted from the front; None means all. An integer, a sequence, or None."""
    if axis is None:
        return tuple(range(ndim))
    _require_static(axis)
    return tuple(normalize_axis_tuple(axis, ndim, argname="axis"))


def is_static(x: Any) -> bool:
    """Return whether a parameter is concrete: not computed by the graph."""
    if isinstance(x, (tuple, list)):
        return all(is_static(item) for item in x)
    return not isinstance(x, Spec)


def _require_static(axis: Any) -> None:
    if not is_static(axis):
        raise refusal(
            "an axis has to be a number when the graph is built, got a Value: it decides which shape the result has; "
            "pass an int, or wrap the call in a pyop.op that declares its output"
        )


def ints(x: Any) -> tuple[int, ...] | None:
    """Return a concrete integer or sequence of integers as a tuple; None if the graph computes it."""
    if not is_static(x):
        return None
    try:
        return (operator.index(x),)
    except TypeError:
        return tuple(operator.index(item) for item in x)


def unknown(ndim: int | None) -> Shape:
    """Return a shape of this rank with no size known."""
    return None if ndim is None else (None,) * ndim


def reduced(shape: Shape, axis: Any = None, keepdims: Any = False) -> Shape:
    """Return the shape after a reduction over ``axis`` (None: over all)."""
    if not is_static(axis):
        return shape if shape is None or not keepdims else unknown(len(shape))
    if shape is None:
        return () if axis is None and not keepdims else None
    if not shape and isinstance(axis, int) and axis in (0, -1):
        return ()  # a single number is reduced as if it were in a vector
    axes = axes_of(axis, len(shape))
    if keepdims:
        return tuple(1 if i in axes else size for i, size in enumerate(shape))
    return tuple(size for i, size in enumerate(shape) if i not in axes)


def replaced(shape: tuple[Extent, ...], axis: int, size: Extent) -> tuple[Extent, ...]:
    """Return the shape with one size replaced."""
    return (*shape[:axis], size, *shape[axis + 1 :])


def dropped(shape: tuple[Extent, ...], *axes: int) -> tuple[Extent, ...]:
    """Return the shape without these axes."""
    return tuple(size for i, size in enumerate(shape) if i not in axes)


def broadcast(*parts: Operand | Shape) -> Shape:
    """Return the common shape, or ValueError as NumPy raises it."""
    return broadcast_shapes(*(part.shape if isinstance(part, Operand) else part for part in parts))


def text(shape: Sizes) -> str:
    """Return a shape as NumPy's errors have it."""
    return "(" + ",".join("?" if size is None else str(size) for size in shape) + ("," if len(shape) == 1 else "") + ")"


def concrete(shape: Shape) -> tuple[int, ...] | None:
    """Return the shape if every size is a number."""
    if shape is None or not all(isinstance(size, int) for size in shape):
        return None
    return tuple(size for size in shape if isinstance(size, int))


def merge(a: Extent, b: Extent, what: str) -> Extent:
    """Return the better known of two sizes that have to be equal; ValueError if they cannot be."""
    if same(a, b) is False:
        raise ValueError(f"{what}: the sizes {a} and {b} differ")
    if a is None or isinstance(b, int):
        return b if b is not None else a
    return a


def least(size: Extent) -> int:
    """Return a number the size is never below: sizes are not negative, so neither is a polynomial without a minus."""
    if isinstance(size, Dim):
        text = str(size)
        if "-" in text or "/" in text:
            return 0
        low = size.evaluate(dict.fromkeys(size.names, 0))
        return low if isinstance(low, int) else 0
    return 0 if size is None else size


def full(shape: Shape) -> bool:
    """Return whether there certainly is at least one element."""
    return shape is not None and all(least(size) for size in shape)


def minus(size: Extent, k: int) -> Extent:
    """Return ``max(size - k, 0)``, unknown where it depends on which of the two is the larger."""
    if isinstance(size, int):
        return max(size - k, 0)
    return sub(size, k) if least(size) >= k else None


def shape_argument(shape: Any) -> Shape:
    """Return a shape parameter: an integer or a sequence of sizes, whose Spec entries are computed by the graph."""
    if isinstance(shape, Spec):
        length = extents(shape.shape)
        if length == ():
            return (None,)
        return unknown(length[0]) if length is not None and isinstance(length[0], int) else None
    if isinstance(shape, Dim):
        return (shape,)
    if isinstance(shape, (tuple, list)) or (isinstance(shape, np.ndarray) and shape.ndim):
        return tuple(_size(item) for item in shape)
    return (operator.index(shape),)


def _size(item: Any) -> Extent:
    if isinstance(item, Dim):
        return item
    if isinstance(item, Spec):
        return None
    if item is None:
        raise refusal(
            "a size in the shape is None: it depends on numbers and is not known when the graph is built; write -1 "
            "where the function allows it, or do this inside a pyop.op, which is called with arrays"
        )
    return operator.index(item)


def one_dimension(part: Operand) -> None:
    """Raise ValueError for an operand that is no vector, in the words of NumPy's compiled functions."""
    if part.ndim not in (None, 1):
        raise ValueError(f"object {'too deep' if part.ndim else 'of too small depth'} for desired array")


def one_d(shape: Shape) -> Shape:
    """Return the shape with at least one axis, as `np.atleast_1d`."""
    return (1,) if shape == () else shape


def two_d(shape: Shape) -> Shape:
    """Return the shape with at least two axes, as `np.atleast_2d`."""
    if shape is None or len(shape) >= 2:
        return shape
    return (1, *shape) if shape else (1, 1)


def three_d(shape: Shape) -> Shape:
    """Return the shape with at least three axes, as `np.atleast_3d`."""
    if shape is None or len(shape) >= 3:
        return shape
    if len(shape) == 2:
        return (*shape, 1)
    return (1, *shape, 1) if shape else (1, 1, 1)
