"""Infer ``a[key]``, with slices, integers, new axes, integer arrays, masks and fields in any mixture; take, nonzero."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...declare.dims import Dim, Extent
from ...declare.spec import Spec
from .. import rule, settled_spec
from ..operand import INTP, DType, Operand, Shape, operand
from ..shape import axis_of, broadcast, least, minus, replaced, same, shape_argument, unknown

_TOO_MANY = "too many indices for array: array is {}-dimensional, but {} were indexed"


def getitem(array: Any, key: Any) -> Spec:
    """Return the spec of ``array[key]``; a Spec in the key stands for an index that the graph computes.

    >>> from pyop.functions.indexing.spec import getitem
    >>> from pyop.declare.spec import Spec
    >>> str(getitem(Spec.parse("float64[n, 4, 5]"), (..., slice(1, None), 0)))
    'float64[n,3]'
    """
    part = operand(array)
    fields = _fields(part, key)
    if fields is not None:
        return settled_spec(fields)
    return settled_spec(Spec(part.dtype, indexed(part.shape, key)))


def _fields(part: Operand, key: Any) -> Spec | None:
    """Return a field of a record array, or several."""
    if isinstance(key, str):
        if part.dtype is None:
            return Spec(None, None)
        if part.dtype.names is None:
            raise IndexError(
                "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays "
                "are valid indices"
            )
        field = part.dtype[key]
        base, inner = field.subdtype if field.subdtype is not None else (field, ())
        return Spec(base, None if part.shape is None else part.shape + inner)
    if isinstance(key, list) and key and all(isinstance(name, str) for name in key):
        dtype: DType | None = None if part.dtype is None else np.empty(0, part.dtype)[key].dtype
        return Spec(dtype, part.shape)
    return None


def sliced(size: Extent, key: slice) -> Extent:
    """Return the length of ``range(size)[key]``; unknown where it depends on an unknown size."""
    start, stop, step = (_bound(item) for item in (key.start, key.stop, key.step))
    if isinstance(step, int) and step == 0:
        raise ValueError("slice step cannot be zero")
    if isinstance(size, int):
        # A bound the graph computes leaves the length open.
        return None if _open in (start, stop, step) else len(range(*slice(start, stop, step).indices(size)))
    if _open in (start, stop, step):
        return None
    low = least(size)
    if step in (None, 1):
        return _forward(size, low, start or 0, stop)
    if step == -1:
        if start in (None, -1) and stop is None:
            return size
        return None
    if start in (None, 0) and stop is None and isinstance(step, int) and step > 0 and size is not None:
        return (size + (step - 1)) // step
    return None


def _forward(size: Extent, low: int, start: Any, stop: Any) -> Extent:
    """Return ``size[start:stop]`` for a size of at least ``low``."""
    if stop is None:
        if start >= 0:
            return size if start == 0 else minus(size, start)
        return -start if low >= -start else None
    if stop < 0:
        if start >= 0:
            return minus(size, start - stop)
        return max(stop - start, 0) if low >= -start else (0 if stop <= start else None)
    if start >= 0:
        if stop <= start:
            return 0
        return stop - start if low >= stop else None
    return 0 if stop == 0 else None


_open: Any = type("Open", (), {"__repr__": lambda self: "a bound that the graph computes"})()


def _bound(item: Any) -> Any:
    if item is None:
        return None
    return _open if isinstance(item, (Spec, Dim)) else operator.index(item)


def indexed(shape: Shape, key: Any) -> Shape:
    """Return the shape of ``a[key]``; IndexError where NumPy would raise one whatever the values."""
    keys = key if isinstance(key, tuple) else (key,)
    parts = [_index(item) for item in keys]
    if sum(item is Ellipsis for item in parts) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if any(isinstance(item, Operand) and item.shape is None for item in parts):
        return None
    used = sum(_axes(item) for item in parts)
    if shape is None:
        return None
    if used > len(shape):
        raise IndexError(_TOO_MANY.format(len(shape), used))
    if Ellipsis not in [item if item is Ellipsis else None for item in parts]:
        parts.append(Ellipsis)
    return _applied(shape, parts, len(shape) - used)


class Mask(Operand):
    """Represent a mask that is known when the graph is built, so that the number of elements it selects is known."""

    true: int


def _index(item: Any) -> Any:
    """Return an index as None, Ellipsis, slice, int, or the Operand of an array (masks of rank 0 among them)."""
    if item is None or item is Ellipsis or isinstance(item, slice):
        return item
    if not isinstance(item, (bool, Spec, Dim, list, tuple, np.ndarray, np.bool_)):
        try:
            return operator.index(item)
        except TypeError:
            pass
    part = operand(item)
    if isinstance(item, (list, tuple)) and part.shape is not None and 0 in part.shape and part.kind == "f":
        part = Operand(np.dtype(np.intp), part.shape)  # an empty list is taken for integers
    if part.dtype is None:
        return Operand(None, None)  # a mask and an integer array take different numbers of axes
    if part.dtype.kind not in "iub":
        if isinstance(item, np.ndarray) or part.dtype.kind != "O":
            raise IndexError("arrays used as indices must be of integer (or boolean) type")
        return Operand(None, None)
    if part.dtype.kind == "b" and not isinstance(item, (Spec, list, tuple)):
        mask = Mask(part.dtype, part.shape)
        mask.true = int(np.count_nonzero(item))
        return mask
    return part


def _axes(item: Any) -> int:
    """Return how many axes of the array an index takes."""
    if item is None or item is Ellipsis:
        return 0
    if isinstance(item, Operand) and item.kind == "b":
        return len(item.shape or ())
    return 1


def _applied(shape: tuple[Extent, ...], parts: list[Any], rest: int) -> Shape:
    result: list[Extent] = []
    advanced: list[Shape] = []
    blocks: list[int] = []  # where in the result advanced indices stand: one run of them keeps its place
    place: int | None = None
    previous = -2
    exists = any(isinstance(item, Operand) and not _is_integer(item) for item in parts)
    axis = 0
    for i, item in enumerate(parts):
        if item is Ellipsis:
            result.extend(shape[axis : axis + rest])
            axis += rest
            continue
        if item is None:
            result.append(1)
            continue
        if isinstance(item, slice):
            result.append(sliced(shape[axis], item))
            axis += 1
            continue
        if isinstance(item, int):
            _in_bounds(item, axis, shape[axis])
        if isinstance(item, int) or _is_integer(item):
            if exists:
                advanced.append(())
        elif item.kind == "b":
            _mask_fits(item, shape, axis)
            advanced.append((item.true if isinstance(item, Mask) else None,))
        else:
            advanced.append(item.shape)
        if exists:
            if i != previous + 1:
                blocks.append(i)
                place = len(result)
            previous = i
        axis += _axes(item)
    if not exists:
        return tuple(result)
    common = broadcast_indices(advanced)
    if common is None:
        return None
    at = place if len(blocks) == 1 and place is not None else 0
    return (*result[:at], *common, *result[at:])


def _is_integer(item: Any) -> bool:
    """Return an integer that the graph computes: taken for an integer, not for an array."""
    return isinstance(item, Operand) and item.shape == () and item.kind in ("i", "u")


def _in_bounds(index: int, axis: int, size: Extent) -> None:
    if isinstance(size, int) and not -size <= index < size:
        raise IndexError(f"index {index} is out of bounds for axis {axis} with size {size}")


def _mask_fits(mask: Operand, shape: tuple[Extent, ...], axis: int) -> None:
    for k, size in enumerate(mask.shape or ()):
        have = shape[axis + k]
        if same(have, size) is False and size != 0:  # NumPy takes an empty mask for any size
            raise IndexError(
                f"boolean index did not match indexed array along axis {axis + k}; size of axis is {have} "
                f"but size of corresponding boolean axis is {size}"
            )


def broadcast_indices(shapes: list[Shape]) -> Shape:
    """Return the common shape of index arrays, or IndexError."""
    try:
        return broadcast(*shapes)
    except ValueError as error:
        raise IndexError("shape mismatch: indexing arrays could not be broadcast together") from error


def _count_unknown(what: str) -> TypeError:
    return TypeError(
        f"{what} returns one array for each axis, and the number of axes is not known when the graph is built; "
        "declare the rank of the Value, or wrap the call in a pyop.op that declares its outputs"
    )


@rule(np.nonzero)
def nonzero(a: Any) -> tuple[Spec, ...]:
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
    is_list = isinstance(indices, (list, tuple, int, float, complex))  # NumPy casts these
    if not is_list and where.dtype is not None and where.dtype != INTP:
        np.take(np.zeros(1), np.zeros(1, where.dtype))  # which kinds it takes is a matter of the release
    if axis is None:
        return Spec(part.dtype, where.shape)
    if part.shape is None:
        return part.spec
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
