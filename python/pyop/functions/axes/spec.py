"""Axes moved, added and removed: transpose, moveaxis, expand_dims, squeeze."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...declare.spec import Spec
from .. import rule
from ..operand import Shape, operand
from ..shape import AxisError, axes_of, axis_of, dropped, same, unknown


@rule(np.transpose)
def _transpose(a: Any, axes: Any = None) -> Spec:
    part = operand(a)
    return Spec(part.dtype, transposed(part.shape, axes))


def transposed(shape: Shape, axes: Any = None) -> Shape:
    """Return the shape after ``transpose(axes)``."""
    if shape is None:
        return None if axes is None else unknown(len(axes))
    if axes is None:
        return shape[::-1]
    if len(axes) != len(shape):
        raise ValueError("axes don't match array")
    order = [axis_of(axis, len(shape)) for axis in axes]
    if len(set(order)) != len(order):
        raise ValueError("repeated axis in transpose")
    return tuple(shape[k] for k in order)


@rule("matrix_transpose", "linalg.matrix_transpose")
def _matrix_transpose(x: Any, /) -> Spec:
    part = operand(x)
    if part.shape is None:
        return Spec(part.dtype, None)
    if len(part.shape) < 2:
        raise ValueError(f"Input array must be at least 2-dimensional, but it is {len(part.shape)}")
    return Spec(part.dtype, (*part.shape[:-2], part.shape[-1], part.shape[-2]))


@rule(np.moveaxis)
def _moveaxis(a: Any, source: Any, destination: Any) -> Spec:
    part = operand(a)
    if part.shape is None:
        return Spec(part.dtype, None)
    sources, targets = axes_of(source, len(part.shape)), axes_of(destination, len(part.shape))
    if len(sources) != len(targets):
        raise ValueError("`source` and `destination` arguments must have the same number of elements")
    order = [k for k in range(len(part.shape)) if k not in sources]
    for target, k in sorted(zip(targets, sources, strict=True)):
        order.insert(target, k)
    return Spec(part.dtype, tuple(part.shape[k] for k in order))


@rule(np.rollaxis)
def _rollaxis(a: Any, axis: Any, start: Any = 0) -> Spec:
    part = operand(a)
    if part.shape is None:
        return Spec(part.dtype, None)
    ndim = len(part.shape)
    k = axis_of(axis, ndim)
    to = operator.index(start)
    if not -ndim <= to <= ndim:
        raise AxisError(f"'start' arg requires {-ndim} <= start < {ndim + 1}, but {start} was passed in")
    to = to + ndim if to < 0 else to
    order = [i for i in range(ndim) if i != k]
    order.insert(to - 1 if k < to else to, k)
    return Spec(part.dtype, tuple(part.shape[i] for i in order))


@rule(np.swapaxes)
def _swapaxes(a: Any, axis1: Any, axis2: Any) -> Spec:
    part = operand(a)
    if part.shape is None:
        return Spec(part.dtype, None)
    i, j = axis_of(axis1, len(part.shape)), axis_of(axis2, len(part.shape))
    sizes = list(part.shape)
    sizes[i], sizes[j] = sizes[j], sizes[i]
    return Spec(part.dtype, tuple(sizes))


@rule(np.expand_dims)
def _expand_dims(a: Any, axis: Any) -> Spec:
    part = operand(a)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    if part.shape is None:
        return Spec(part.dtype, None)
    ndim = len(part.shape) + len(axes)
    places = axes_of(tuple(axes), ndim)
    rest = iter(part.shape)
    return Spec(part.dtype, tuple(1 if k in places else next(rest) for k in range(ndim)))


@rule(np.squeeze)
def _squeeze(a: Any, axis: Any = None) -> Spec:
    part = operand(a)
    return Spec(part.dtype, squeezed(part.shape, axis))


def squeezed(shape: Shape, axis: Any = None) -> Shape:
    """Return the shape without axes of size one; unknown rank if it is not known which those are."""
    if shape is None:
        return None
    if axis is None:
        if any(same(size, 1) is None for size in shape):
            return None
        return tuple(size for size in shape if same(size, 1) is False)
    if not shape and isinstance(axis, int) and axis in (0, -1):
        return ()
    axes = axes_of(axis, len(shape))
    for k in axes:
        if same(shape[k], 1) is False:
            raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    return dropped(shape, *axes)
