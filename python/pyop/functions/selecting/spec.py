"""Elements chosen by position or condition: where, take, nonzero, diagonals, triangles, indices."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...declare.dims import Extent
from ...declare.spec import Spec
from .. import rule
from ..operand import INTP, Operand, Shape, one, operand, probe
from ..shape import add, axis_of, broadcast, dropped, floordiv, mul, prod, replaced, same, shape_argument, unknown


def _count_unknown(what: str) -> TypeError:
    return TypeError(
        f"{what} returns one array for each axis, and the number of axes is not known when the graph is built; "
        "declare the rank of the Value, or wrap the call in a pyop.op that declares its outputs"
    )


@rule(np.where)
def _where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    test = operand(condition)
    if x is None and y is None:
        return _nonzero(condition)
    if x is None or y is None:
        raise ValueError("either both or neither of x and y should be given")
    a, b = operand(x), operand(y)
    dtype = probe(np.where, True, one(a), one(b))
    return Spec(dtype, broadcast(test, a, b))


@rule(np.nonzero)
def _nonzero(a: Any) -> tuple[Spec, ...]:
    part = operand(a)
    if part.ndim is None:
        raise _count_unknown("np.nonzero")
    if part.ndim == 0:
        np.nonzero(np.ones(()))  # an error in newer releases of NumPy, one array in older ones
    return (Spec(INTP, (None,)),) * max(part.ndim, 1)


@rule(np.argwhere)
def _argwhere(a: Any) -> Spec:
    part = operand(a)
    return Spec(INTP, (None, part.ndim))


@rule(np.flatnonzero)
def _flatnonzero(a: Any) -> Spec:
    return Spec(INTP, (None,))


@rule(np.take)
def _take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: Any = "raise") -> Spec:
    part, where = operand(a), operand(indices)
    if part.shape is None and axis is not None:
        return Spec(part.dtype, None)
    if axis is None:
        return Spec(part.dtype, where.shape)
    assert part.shape is not None
    shape = part.shape or (1,)
    k = axis_of(axis, len(shape))
    if where.shape is None:
        return Spec(part.dtype, None)
    return Spec(part.dtype, (*shape[:k], *where.shape, *shape[k + 1 :]))


@rule(np.take_along_axis)
def _take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Spec:
    part, where = operand(arr), operand(indices)
    if where.dtype is not None and where.kind not in "iu":
        raise IndexError("`indices` must be an integer array")
    if axis is None:
        return Spec(part.dtype, where.shape)
    if part.shape is None or where.shape is None:
        return Spec(part.dtype, unknown(part.ndim if where.shape is None else where.ndim))
    if len(part.shape) != len(where.shape):
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    k = axis_of(axis, len(part.shape))
    try:
        shape = broadcast(replaced(part.shape, k, 1), replaced(where.shape, k, 1))
    except ValueError as error:
        raise IndexError("shape mismatch: indexing arrays could not be broadcast together") from error
    return Spec(part.dtype, None if shape is None else replaced(shape, k, where.shape[k]))


@rule(np.choose)
def _choose(a: Any, choices: Any, out: Any = None, mode: Any = "raise") -> Spec:
    index = operand(a)
    if isinstance(choices, (list, tuple)):
        parts = [operand(item) for item in choices]
        dtype = probe(np.choose, 0, tuple(one(part) for part in parts))
        return Spec(dtype, broadcast(index, *parts))
    part = operand(choices)
    if part.shape is None:
        return Spec(part.dtype, None)
    if not part.shape:
        raise ValueError("Need at least one array to choose from")
    return Spec(part.dtype, broadcast(index.shape, part.shape[1:]))


@rule(np.select)
def _select(condlist: Any, choicelist: Any, default: Any = 0) -> Spec:
    if isinstance(condlist, Spec) or isinstance(choicelist, Spec):
        return Spec()
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    if len(condlist) == 0:
        raise ValueError("select with an empty condition list is not possible")
    tests, parts = [operand(item) for item in condlist], [operand(item) for item in choicelist]
    for i, test in enumerate(tests):
        if test.kind and test.kind != "b":
            raise TypeError(f"invalid entry {i} in condlist: should be boolean ndarray")
    dtype = probe(np.select, (True,) * len(parts), tuple(one(part) for part in parts), one(default))
    return Spec(dtype, broadcast(*tests, *parts, operand(default).shape))


@rule(np.piecewise)
def _piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Spec:
    part = operand(x)
    return Spec(part.dtype, part.shape)


@rule("compress")
def _compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Spec:
    part, test = operand(a), operand(condition)
    if test.ndim is not None and test.ndim != 1:
        raise ValueError("condition must be a 1-d array")
    count: Extent = None
    if not isinstance(condition, Spec):
        count = int(np.count_nonzero(condition))
    if axis is None:
        return Spec(part.dtype, (count,))
    if part.shape is None:
        return Spec(part.dtype, None)
    shape = part.shape or (1,)
    return Spec(part.dtype, replaced(shape, axis_of(axis, len(shape)), count))


@rule(np.extract)
def _extract(condition: Any, arr: Any) -> Spec:
    return Spec(operand(arr).dtype, (None if isinstance(condition, Spec) else int(np.count_nonzero(condition)),))


@rule(np.trim_zeros)
def _trim_zeros(filt: Any, trim: Any = "fb", axis: Any = None) -> Spec:
    part = operand(filt)
    return Spec(part.dtype, unknown(part.ndim))


@rule(np.searchsorted)
def _searchsorted(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Spec:
    part = operand(a)
    if part.ndim is not None and part.ndim != 1:
        raise ValueError(
            "object too deep for desired array" if part.ndim else "object of too small depth for desired array"
        )
    if isinstance(side, str) and side not in ("left", "right"):
        raise ValueError(f"search side must be 'left' or 'right' (got '{side}')")
    return Spec(INTP, operand(v).shape)


def _length(rows: Extent, columns: Extent, offset: Any) -> Extent:
    """The length of a diagonal of a matrix."""
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
    """The shape of the diagonals over two axes."""
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


@rule(np.ix_)
def _ix(*args: Any) -> tuple[Spec, ...]:
    specs = []
    for k, arg in enumerate(args):
        part = operand(arg)
        if part.ndim is not None and part.ndim != 1:
            raise ValueError("Cross index must be 1 dimensional")
        size: Extent = None if part.shape is None or part.kind in ("b", "") else part.shape[0]
        dtype = INTP if part.kind == "b" or (size == 0 and not isinstance(arg, Spec)) else part.dtype
        specs.append(Spec(dtype, (1,) * k + (size,) + (1,) * (len(args) - k - 1)))
    return tuple(specs)


@rule(np.unravel_index)
def _unravel_index(indices: Any, shape: Any, order: Any = "C") -> tuple[Spec, ...]:
    sizes = shape_argument(shape)
    if sizes is None:
        raise _count_unknown("np.unravel_index")
    return (Spec(INTP, operand(indices).shape),) * len(sizes)


@rule(np.ravel_multi_index)
def _ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: Any = "C") -> Spec:
    if isinstance(multi_index, (tuple, list)):
        return Spec(INTP, broadcast(*(operand(item) for item in multi_index)))
    part = operand(multi_index)
    return Spec(INTP, None if part.shape is None else part.shape[1:])


@rule(np.packbits)
def _packbits(a: Any, /, axis: Any = None, bitorder: Any = "big") -> Spec:
    part = operand(a)
    if part.kind not in ("", "b", "i", "u"):
        raise TypeError("Expected an input array of integer or boolean data type")
    return _bits(part, axis, lambda size: floordiv(add(size, 7), 8))


@rule(np.unpackbits)
def _unpackbits(a: Any, /, axis: Any = None, count: Any = None, bitorder: Any = "big") -> Spec:
    part = operand(a)
    if part.dtype is not None and part.dtype != np.uint8:
        raise TypeError("Expected an input array of unsigned byte data type")

    def bits(size: Extent) -> Extent:
        full = mul(size, 8)
        if count is None:
            return full
        return int(count) if count >= 0 else add(full, int(count))

    return _bits(part, axis, bits)


def _bits(part: Operand, axis: Any, resize: Any) -> Spec:
    if axis is None:
        return Spec(np.uint8, (resize(None if part.shape is None else prod(part.shape)),))
    if part.shape is None:
        return Spec(np.uint8, None)
    shape = part.shape or (1,)
    k = axis_of(axis, len(shape))
    return Spec(np.uint8, replaced(shape, k, resize(shape[k])))
