"""Infer functions of diagonals and triangles: diag, diagonal, trace, tril, triu."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...declare.dims import Extent
from ...declare.spec import Spec
from .. import rule
from ..forms import shaped
from ..operand import Sizes, one, operand, probe
from ..shape import add, axis_of, dropped, prod, same


def _length(rows: Extent, columns: Extent, offset: Any) -> Extent:
    """Return the length of a diagonal of a matrix."""
    if isinstance(offset, Spec) or rows is None or columns is None:
        return None
    if isinstance(rows, int) and isinstance(columns, int):
        shift = operator.index(offset)
        return max(min(rows + min(shift, 0), columns - max(shift, 0)), 0)
    return rows if offset == 0 and same(rows, columns) else None


@shaped(np.diagonal)
def _diagonal(a: Sizes, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Sizes:
    if len(a) < 2:
        raise ValueError("diag requires an array of at least two dimensions")
    i, j = axis_of(axis1, len(a)), axis_of(axis2, len(a))
    if i == j:
        raise ValueError("axis1 and axis2 cannot be the same")
    return (*dropped(a, i, j), _length(a[i], a[j], offset))


@shaped("linalg.diagonal")
def _stacked_diagonal(x: Sizes, /, *, offset: Any = 0) -> Sizes:
    return _diagonal(x, offset, -2, -1)


@shaped(np.diag)
def _diag(v: Sizes, k: Any = 0) -> Sizes:
    if len(v) == 1:
        return (None if isinstance(k, Spec) else add(v[0], abs(k)),) * 2
    if len(v) != 2:
        raise ValueError("Input must be 1- or 2-d.")
    return (_length(*v, k),)


@rule(np.diagflat)
def _diagflat(v: Any, k: Any = 0) -> Spec:
    part = operand(v)
    size = None if part.shape is None or isinstance(k, Spec) else add(prod(part.shape), abs(k))
    return Spec(part.dtype, (size, size))


@shaped(np.tril, np.triu)
def _triangle(m: Sizes, k: Any = 0) -> Sizes:
    if not m:
        raise TypeError("tri() missing 1 required positional argument: 'N'")
    return m * 2 if len(m) == 1 else m  # a row is taken for the rows of a square


@rule(np.trace)
def _trace(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, dtype: Any = None, out: Any = None) -> Spec:
    part = operand(a)
    shape = None if part.shape is None else _diagonal(part.shape, offset, axis1, axis2)[:-1]
    return Spec(probe(np.trace, one(part, 2), dtype=None if dtype is None else np.dtype(dtype)), shape)


@rule("linalg.trace")
def _stacked_trace(x: Any, /, *, offset: Any = 0, dtype: Any = None) -> Spec:
    return _trace(x, offset, -2, -1, dtype)
