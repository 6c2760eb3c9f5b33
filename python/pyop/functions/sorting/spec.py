"""Infer functions that sort and search."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...declare.spec import Spec
from .. import rule
from ..forms import mapped
from ..operand import INTP, Operand, Shape, operand
from ..shape import axis_of, full, one_d, one_dimension, prod


def _ordered(part: Operand, axis: Any) -> Shape:
    """Return the shape of what is sorted: as it was, or flat if no axis is given."""
    if axis is None:
        return (None if part.shape is None else prod(part.shape),)
    if part.shape is not None:
        axis_of(axis, len(part.shape))
    return part.shape


@rule(np.sort)
def _sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Spec:
    part = operand(a)
    return Spec(part.dtype, _ordered(part, axis))


@rule(np.argsort)
def _argsort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Spec:
    part = operand(a)
    return Spec(INTP, (1,) if part.shape == () and axis in (0, -1, None) else _ordered(part, axis))


def _in_range(part: Operand, kth: Any, axis: Any) -> None:
    if isinstance(kth, Spec) or part.shape is None or not full(part.shape):
        return  # of nothing, NumPy takes any place
    shape = _ordered(part, axis) or ()
    size = shape[-1 if axis is None else axis] if shape else 1
    for k in np.atleast_1d(kth):
        if isinstance(size, int) and not -size <= operator.index(k) < size:
            raise ValueError(f"kth(={k}) out of bounds ({size})")


@rule(np.partition)
def _partition(a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None) -> Spec:
    part = operand(a)
    shape = _ordered(part, axis)
    _in_range(part, kth, axis)
    return Spec(part.dtype, shape)


@rule(np.argpartition)
def _argpartition(a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None) -> Spec:
    part = operand(a)
    return Spec(INTP, _partition(Spec(part.dtype, one_d(part.shape)), kth, axis).shape)


@rule(np.lexsort)
def _lexsort(keys: Any, axis: Any = -1) -> Spec:
    if isinstance(keys, (tuple, list)):
        if not keys:
            raise TypeError("need sequence of keys with len > 0 in lexsort")
        parts = [operand(key) for key in keys]
        known = [part.shape for part in parts if part.shape is not None]
        if not known:
            return Spec(INTP, None)
        first = next((shape for shape in known if all(isinstance(size, int) for size in shape)), known[0])
        if any(len(shape) != len(first) for shape in known):
            raise ValueError("all keys need to be the same shape")
        shape: Shape = first
    else:
        part = operand(keys)
        if part.shape == ():
            raise TypeError("need sequence of keys with len > 0 in lexsort")
        shape = None if part.shape is None else part.shape[1:]
    if shape:
        axis_of(axis, len(shape))
    return Spec(INTP, shape)


@rule(np.sort_complex)
def _sort_complex(a: Any) -> Spec:
    return mapped(np.sort_complex, a)


@rule(np.searchsorted)
def _searchsorted(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Spec:
    one_dimension(operand(a))
    if isinstance(side, str) and side not in ("left", "right"):
        raise ValueError(f"search side must be 'left' or 'right' (got '{side}')")
    return Spec(INTP, operand(v).shape)
