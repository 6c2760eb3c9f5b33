"""What stands on diagonals, and beside them: diag, diagonal, trace, triangles."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...declare.dims import Extent
from ...declare.spec import Spec
from .. import rule
from ..operand import Shape, one, operand, probe
from ..shape import add, axis_of, dropped, prod, same


def _length(rows: Extent, columns: Extent, offset: Any) -> Extent:
    """Return the length of a diagonal of a matrix."""
    if isinstance(offset, Spec) or rows is None or columns is None:
        return None
    if isinstance(rows, int) and isinstance(columns, int):
        shift = operator.index(offset)
        return max(min(rows + min(shift, 0), columns - max(shift, 0)), 0)
    return rows if offset == 0 and same(rows, columns) else None


@rule(np.diagonal)
def _diagonal(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Spec:
    part = operand(a)
    return Spec(part.dtype, diagonal_shape(part.shape, offset, axis1, axis2))


@rule("linalg.diagonal")
def _stacked_diagonal(x: Any, /, *, offset: Any = 0) -> Spec:
    part = operand(x)
    return Spec(part.dtype, diagonal_shape(part.shape, offset, -2, -1))


def diagonal_shape(shape: Shape, offset: Any, axis1: Any, axis2: Any) -> Shape:
    """Return the shape of the diagonals over two axes."""
    if shape is None:
        return None
    if len(shape) < 2:
        raise ValueError("diag requires an array of at least two dimensions")
    i, j = axis_of(axis1, len(shape)), axis_of(axis2, len(shape))
    if i == j:
        raise ValueError("axis1 and axis2 cannot be the same")
    return (*dropped(shape, i, j), _length(shape[i], shape[j], offset))


@rule(np.diag)
def _diag(v: Any, k: Any = 0) -> Spec:
    part = operand(v)
    if part.shape is None:
        return Spec(part.dtype, None)
    if len(part.shape) == 1:
        size = None if isinstance(k, Spec) else add(part.shape[0], abs(k))
        return Spec(part.dtype, (size, size))
    if len(part.shape) != 2:
        raise ValueError("Input must be 1- or 2-d.")
    return Spec(part.dtype, (_length(*part.shape, k),))


@rule(np.diagflat)
def _diagflat(v: Any, k: Any = 0) -> Spec:
    part = operand(v)
    size = None if part.shape is None or isinstance(k, Spec) else add(prod(part.shape), abs(k))
    return Spec(part.dtype, (size, size))


@rule(np.tril, np.triu)
def _triangle(m: Any, k: Any = 0) -> Spec:
    part = operand(m)
    if part.shape is not None and len(part.shape) < 2:
        # A row is taken for the rows of a square; NumPy refuses a single number.
        if not part.shape:
            raise TypeError("tri() missing 1 required positional argument: 'N'")
        return Spec(part.dtype, (part.shape[0], part.shape[0]))
    return Spec(part.dtype, part.shape)


@rule(np.trace)
def _trace(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, dtype: Any = None, out: Any = None) -> Spec:
    return _traced(a, offset, axis1, axis2, dtype)


@rule("linalg.trace")
def _stacked_trace(x: Any, /, *, offset: Any = 0, dtype: Any = None) -> Spec:
    return _traced(x, offset, -2, -1, dtype)


def _traced(a: Any, offset: Any, axis1: Any, axis2: Any, dtype: Any) -> Spec:
    part = operand(a)
    shape = diagonal_shape(part.shape, offset, axis1, axis2)
    kind = None if dtype is None else np.dtype(dtype)
    return Spec(probe(np.trace, one(part, 2), dtype=kind), None if shape is None else shape[:-1])
