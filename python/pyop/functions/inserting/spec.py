"""Rows more and rows less: repeat, tile, pad, insert, delete."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...declare.dims import Extent
from ...declare.spec import Spec
from .. import rule
from ..operand import operand
from ..shape import add, axis_of, ints, mul, prod, replaced, same, sub, unknown

# np.delete with a list of rows is counted by doing it on as many booleans, up to this size.
_COUNTED = 1 << 20


@rule(np.repeat)
def _repeat(a: Any, repeats: Any, axis: Any = None) -> Spec:
    part, counts = operand(a), ints(repeats)
    if axis is None:
        shape: tuple[Extent, ...] = (None if part.shape is None else prod(part.shape),)
        k = 0
    elif part.shape is None:
        return Spec(part.dtype, None)
    else:
        shape = part.shape or (1,)
        k = axis_of(axis, len(shape))
    size = shape[k]
    if counts is None:
        return Spec(part.dtype, replaced(shape, k, None))
    if any(count < 0 for count in counts):
        raise ValueError("repeats may not contain negative values.")
    if len(counts) == 1:
        return Spec(part.dtype, replaced(shape, k, mul(size, counts[0])))
    if same(size, len(counts)) is False:
        raise ValueError(f"operands could not be broadcast together with shape ({size},) ({len(counts)},)")
    return Spec(part.dtype, replaced(shape, k, sum(counts)))


@rule(np.pad)
def _pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Spec:
    part = operand(array)
    if part.shape is None:
        return Spec(part.dtype, None)
    ndim = len(part.shape)
    if isinstance(pad_width, dict):  # NumPy 2.2: {axis: width}
        widths = [(0, 0)] * ndim
        for axis, width in pad_width.items():
            widths[axis_of(axis, ndim)] = (width, width) if isinstance(width, int) else tuple(width)
    else:
        if isinstance(pad_width, Spec) or ndim == 0:
            return Spec(part.dtype, unknown(ndim))
        widths = [(int(a), int(b)) for a, b in np.broadcast_to(np.asarray(pad_width), (ndim, 2))]
    if any(operator.index(width) < 0 for pair in widths for width in pair):
        raise ValueError("index can't contain negative values")
    return Spec(part.dtype, tuple(add(size, a + b) for size, (a, b) in zip(part.shape, widths, strict=True)))


@rule(np.insert)
def _insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Spec:
    part, new = operand(arr), operand(values)
    if part.shape is None:
        return Spec(part.dtype, None if axis is not None else (None,))
    shape: tuple[Extent, ...] = part.shape if axis is not None else (prod(part.shape),)
    k = axis_of(0 if axis is None else axis, len(shape))
    size = shape[k]
    if isinstance(obj, slice):
        count: Extent = len(range(*obj.indices(size))) if isinstance(size, int) else None
        if count != 1:
            return Spec(part.dtype, replaced(shape, k, add(size, count)))
        return Spec(part.dtype, replaced(shape, k, None))
    where = operand(obj)
    if where.kind == "b" or where.shape is None:
        return Spec(part.dtype, replaced(shape, k, None))
    if where.shape == () or where.shape == (1,):
        # One place takes as many rows as the values have along the axis.
        if new.shape is None:
            return Spec(part.dtype, replaced(shape, k, None))
        rows = _rows_inserted(new.shape, len(shape), k, where.shape == ())
        return Spec(part.dtype, replaced(shape, k, add(size, rows)))
    return Spec(part.dtype, replaced(shape, k, add(size, prod(where.shape))))


def _rows_inserted(values: tuple[Extent, ...], ndim: int, axis: int, scalar: bool) -> Extent:
    full = (1,) * (ndim - len(values)) + values
    if len(full) > ndim:
        return None
    # np.insert(a, i, v, axis): a scalar place moves the first axis of v to `axis`; a sequence of one does not.
    return full[0] if scalar else full[axis]


@rule(np.delete)
def _delete(arr: Any, obj: Any, axis: Any = None) -> Spec:
    part = operand(arr)
    if part.shape is None:
        return Spec(part.dtype, None if axis is not None else (None,))
    shape: tuple[Extent, ...] = part.shape if axis is not None else (prod(part.shape),)
    k = axis_of(0 if axis is None else axis, len(shape))
    size = shape[k]
    if isinstance(obj, slice):
        left = size - len(range(*obj.indices(size))) if isinstance(size, int) else None
        return Spec(part.dtype, replaced(shape, k, left))
    if isinstance(obj, int) and not isinstance(obj, bool):
        if isinstance(size, int) and not -size <= obj < size:
            raise IndexError(f"index {obj} is out of bounds for axis {k} with size {size}")
        # One row less: no such row is an error, so the size is at least one.
        return Spec(part.dtype, replaced(shape, k, sub(size, 1)))
    where = operand(obj)
    if where.shape == () and where.kind and where.kind in "iu":
        return Spec(part.dtype, replaced(shape, k, sub(size, 1)))
    if not isinstance(obj, Spec) and isinstance(size, int) and size <= _COUNTED:
        return Spec(part.dtype, replaced(shape, k, np.delete(np.empty(size, np.bool_), obj).size))
    return Spec(part.dtype, replaced(shape, k, None))


@rule(np.tile)
def _tile(A: Any, reps: Any) -> Spec:
    part, counts = operand(A), ints(reps)
    if part.shape is None or counts is None:
        return Spec(part.dtype, None)
    ndim = max(len(part.shape), len(counts))
    counts = (1,) * (ndim - len(counts)) + counts
    shape = (1,) * (ndim - len(part.shape)) + part.shape
    return Spec(part.dtype, tuple(mul(size, count) for size, count in zip(shape, counts, strict=True)))
