"""Infer functions that add and remove elements: repeat, tile, pad, insert, delete."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ...declare.dims import Extent
from ...declare.spec import Spec
from .. import rule
from ..forms import shaped
from ..operand import Operand, Shape, Sizes, operand
from ..shape import add, axis_of, ints, mul, one_d, prod, replaced, same, sub, unknown

# np.delete with a list of rows is counted by doing it on as many booleans, up to this size.
_COUNTED = 1 << 20


def _lines(part: Operand, axis: Any, new: Callable[[Extent], Extent]) -> Spec:
    """Return the array with another size along an axis; without one, of its flattened elements."""
    if part.shape is None:
        return Spec(part.dtype, None if axis is not None else (new(None),))
    shape = part.shape if axis is not None else (prod(part.shape),)
    k = axis_of(0 if axis is None else axis, len(shape))
    return Spec(part.dtype, replaced(shape, k, new(shape[k])))


@rule(np.repeat)
def _repeat(a: Any, repeats: Any, axis: Any = None) -> Spec:
    part, counts = operand(a), ints(repeats)

    def rows(size: Extent) -> Extent:
        if counts is None:
            return None
        if any(count < 0 for count in counts):
            raise ValueError("repeats may not contain negative values.")
        if len(counts) == 1:
            return mul(size, counts[0])
        if same(size, len(counts)) is False:
            raise ValueError(f"operands could not be broadcast together with shape ({size},) ({len(counts)},)")
        return sum(counts)

    return _lines(Operand(part.dtype, one_d(part.shape)), axis, rows)


@shaped(np.pad)
def _pad(array: Sizes, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Shape:
    ndim = len(array)
    if isinstance(pad_width, dict):  # NumPy 2.2: {axis: width}
        widths = [(0, 0)] * ndim
        for axis, width in pad_width.items():
            widths[axis_of(axis, ndim)] = (width, width) if isinstance(width, int) else tuple(width)
    else:
        if isinstance(pad_width, Spec) or ndim == 0:
            return unknown(ndim)
        widths = [(int(a), int(b)) for a, b in np.broadcast_to(np.asarray(pad_width), (ndim, 2))]
    if any(operator.index(width) < 0 for pair in widths for width in pair):
        raise ValueError("index can't contain negative values")
    return tuple(add(size, a + b) for size, (a, b) in zip(array, widths, strict=True))


@rule(np.insert)
def _insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Spec:
    part, new = operand(arr), operand(values)

    def rows(size: Extent) -> Extent:
        if isinstance(obj, slice):
            count = len(range(*obj.indices(size))) if isinstance(size, int) else 1
            return add(size, count) if count != 1 else None
        where = operand(obj)
        if where.kind == "b" or where.shape is None:
            return None
        if where.shape not in ((), (1,)):
            return add(size, prod(where.shape))
        # One place takes as many rows as the values have along the axis.
        ndim = 1 if axis is None else part.ndim
        if new.shape is None or ndim is None or len(new.shape) > ndim:
            return None
        full = (1,) * (ndim - len(new.shape)) + new.shape
        # np.insert(a, i, v, axis): a scalar place moves the first axis of v to `axis`; a sequence of one does not.
        return add(size, full[0] if where.shape == () else full[0 if axis is None else axis])

    return _lines(part, axis, rows)


@rule(np.delete)
def _delete(arr: Any, obj: Any, axis: Any = None) -> Spec:
    part = operand(arr)

    def left(size: Extent) -> Extent:
        if isinstance(obj, slice):
            return size - len(range(*obj.indices(size))) if isinstance(size, int) else None
        if isinstance(obj, int) and not isinstance(obj, bool) and isinstance(size, int) and not -size <= obj < size:
            k = 0 if axis is None else axis_of(axis, part.ndim or 0)
            raise IndexError(f"index {obj} is out of bounds for axis {k} with size {size}")
        where = operand(obj)
        if where.shape == () and where.kind and where.kind in "iu":
            return sub(size, 1)  # no such row is an error, so the size is at least one
        if not isinstance(obj, Spec) and isinstance(size, int) and size <= _COUNTED:
            return np.delete(np.empty(size, np.bool_), obj).size
        return None

    return _lines(part, axis, left)


@shaped(np.tile)
def _tile(A: Sizes, reps: Any) -> Shape:
    counts = ints(reps)
    if counts is None:
        return None
    ndim = max(len(A), len(counts))
    counts = (1,) * (ndim - len(counts)) + counts
    return tuple(mul(size, count) for size, count in zip((1,) * (ndim - len(A)) + A, counts, strict=True))
