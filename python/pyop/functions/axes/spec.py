"""Infer functions that move, add and remove axes: transpose, moveaxis, expand_dims, squeeze."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...declare.spec import Spec
from .. import rule
from ..forms import shaped
from ..operand import Shape, Sizes, operand
from ..shape import AxisError, axes_of, axis_of, dropped, same, unknown


@rule(np.transpose)
def _transpose(a: Any, axes: Any = None) -> Spec:
    part = operand(a)
    shape = part.shape
    if shape is None:
        return Spec(part.dtype, None if axes is None else unknown(len(axes)))
    if axes is None:
        return Spec(part.dtype, shape[::-1])
    if len(axes) != len(shape):
        raise ValueError("axes don't match array")
    order = [axis_of(axis, len(shape)) for axis in axes]
    if len(set(order)) != len(order):
        raise ValueError("repeated axis in transpose")
    return Spec(part.dtype, tuple(shape[k] for k in order))


@shaped("matrix_transpose", "linalg.matrix_transpose")
def _matrix_transpose(x: Sizes) -> Sizes:
    if len(x) < 2:
        raise ValueError(f"Input array must be at least 2-dimensional, but it is {len(x)}")
    return (*x[:-2], x[-1], x[-2])


@shaped(np.moveaxis)
def _moveaxis(a: Sizes, source: Any, destination: Any) -> Sizes:
    sources, targets = axes_of(source, len(a)), axes_of(destination, len(a))
    if len(sources) != len(targets):
        raise ValueError("`source` and `destination` arguments must have the same number of elements")
    order = [k for k in range(len(a)) if k not in sources]
    for target, k in sorted(zip(targets, sources, strict=True)):
        order.insert(target, k)
    return tuple(a[k] for k in order)


@shaped(np.rollaxis)
def _rollaxis(a: Sizes, axis: Any, start: Any = 0) -> Sizes:
    ndim = len(a)
    k = axis_of(axis, ndim)
    to = operator.index(start)
    if not -ndim <= to <= ndim:
        raise AxisError(f"'start' arg requires {-ndim} <= start < {ndim + 1}, but {start} was passed in")
    to = to + ndim if to < 0 else to
    order = [i for i in range(ndim) if i != k]
    order.insert(to - 1 if k < to else to, k)
    return tuple(a[i] for i in order)


@shaped(np.swapaxes)
def _swapaxes(a: Sizes, axis1: Any, axis2: Any) -> Sizes:
    i, j = axis_of(axis1, len(a)), axis_of(axis2, len(a))
    sizes = list(a)
    sizes[i], sizes[j] = sizes[j], sizes[i]
    return tuple(sizes)


@shaped(np.expand_dims)
def _expand_dims(a: Sizes, axis: Any) -> Sizes:
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    ndim = len(a) + len(axes)
    places = axes_of(tuple(axes), ndim)
    rest = iter(a)
    return tuple(1 if k in places else next(rest) for k in range(ndim))


@shaped(np.squeeze)
def _squeeze(a: Sizes, axis: Any = None) -> Shape:
    """Return the shape without axes of size one; unknown rank if it is not known which those are."""
    if axis is None:
        if any(same(size, 1) is None for size in a):
            return None
        return tuple(size for size in a if same(size, 1) is False)
    if not a and isinstance(axis, int) and axis in (0, -1):
        return ()
    axes = axes_of(axis, len(a))
    for k in axes:
        if same(a[k], 1) is False:
            raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    return dropped(a, *axes)
