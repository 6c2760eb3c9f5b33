"""Parts of arrays: basic indexing, take, the triangles."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...dims import Dim
from . import standard
from .emitter import Emitter, NotStandard, Operand

__all__ = ["getitem"]

_END = 2**62


@standard(operator.getitem)
def getitem(e: Emitter, a: Any, key: Any, /) -> Operand:
    """Basic indices, or one array of integers."""
    x = e.operand(a)
    ndim = x.ndim
    keys = list(key) if isinstance(key, tuple) else [key]
    if sum(isinstance(k, Operand | np.ndarray | list) for k in keys):
        return _advanced(e, x, keys)
    if any(isinstance(k, bool | np.bool_) for k in keys):
        raise NotStandard("a truth value as an index")
    used = sum(k is not None and k is not Ellipsis for k in keys)
    if Ellipsis not in keys:
        keys.append(Ellipsis)
    full: list[Any] = []
    for k in keys:
        full += [slice(None)] * (ndim - used) if k is Ellipsis else [k]
    return _basic(e, x, full)


def _basic(e: Emitter, x: Operand, keys: list[Any]) -> Operand:
    starts, ends, axes, steps, dropped, added = [], [], [], [], [], []
    axis = place = 0
    for k in keys:
        if k is None:
            added.append(place)
            place += 1
            continue
        if isinstance(k, slice):
            if k != slice(None):
                start, stop, step = _bounds(k)
                starts.append(start)
                ends.append(stop)
                steps.append(step)
                axes.append(axis)
            place += 1
        else:
            starts.append(_index(k))
            ends.append(_END if starts[-1] == -1 else starts[-1] + 1)
            steps.append(1)
            axes.append(axis)
            dropped.append(axis)
        axis += 1
    if axes:
        _in_bounds(x, axes, starts, dropped)
        x = e.add("Slice", x, e.ints(starts), e.ints(ends), e.ints(axes), e.ints(steps))
    if dropped:
        x = e.add("Squeeze", x, e.ints(dropped))
    return e.add("Unsqueeze", x, e.ints(added)) if added else x


def _in_bounds(x: Operand, axes: list[int], starts: list[Any], dropped: list[int]) -> None:
    """An index past the end is an error in NumPy; Squeeze finds that too, as the slice is empty then."""
    for axis, start in zip(axes, starts, strict=True):
        size = None if x.shape is None else x.shape[axis]
        if axis in dropped and isinstance(start, int) and isinstance(size, int) and not -size <= start < size:
            raise NotStandard(f"index {start} of an axis of {size}")


def _index(k: Any) -> Any:
    if isinstance(k, Dim):
        return k
    try:
        return operator.index(k)
    except TypeError:
        raise NotStandard(f"the index {k!r:.80}") from None


def _bounds(k: slice) -> tuple[Any, Any, int]:
    step = 1 if k.step is None else _index(k.step)
    if not isinstance(step, int) or step == 0:
        raise NotStandard("a step that is not known")
    start = _index(k.start) if k.start is not None else (0 if step > 0 else -1)
    stop = _index(k.stop) if k.stop is not None else (_END if step > 0 else -_END)
    return start, stop, step


def _advanced(e: Emitter, x: Operand, keys: list[Any]) -> Operand:
    """One array of integers among full slices: Gather."""
    full = []
    used = sum(k is not Ellipsis for k in keys)
    for k in keys:
        full += [slice(None)] * (x.ndim - used) if k is Ellipsis else [k]
    arrays = [(axis, k) for axis, k in enumerate(full) if isinstance(k, Operand | np.ndarray | list)]
    if len(arrays) != 1 or any(k != slice(None) for axis, k in enumerate(full) if axis != arrays[0][0]):
        raise NotStandard("an index with several arrays, or with an array beside other indices")
    axis, index = arrays[0]
    return _gather(e, x, index, axis)


def _gather(e: Emitter, x: Operand, index: Any, axis: int) -> Operand:
    index = e.operand(index)
    if index.dtype is None or index.dtype.kind not in "iu" or index.dtype == np.uint64:
        raise NotStandard(f"an index of {index.dtype}")
    if index.dtype not in (np.int32, np.int64):
        index = e.cast(index, np.int64)
    return e.add("Gather", x, index, axis=axis)


@standard(np.take)
def _take(e: Emitter, a: Any, indices: Any, axis: Any = None, out: None = None, mode: Any = "raise") -> Operand:
    if mode != "raise":
        raise NotStandard(f"mode={mode!r}")
    x = e.operand(a)
    if axis is None:
        return _gather(e, e.add("Reshape", x, e.ints([-1])), indices, 0)
    return _gather(e, x, indices, int(axis))


def _triangle(e: Emitter, m: Any, k: Any, upper: int) -> Operand:
    x = e.operand(m)
    if x.ndim < 2 or x.dtype is None or x.dtype.kind not in "biuf":
        raise NotStandard("a triangle of what is no matrix")
    return e.add("Trilu", x, e.constant(int(k), np.int64), upper=upper)


@standard(np.triu)
def _triu(e: Emitter, m: Any, k: Any = 0) -> Operand:
    return _triangle(e, m, k, 1)


@standard(np.tril)
def _tril(e: Emitter, m: Any, k: Any = 0) -> Operand:
    return _triangle(e, m, k, 0)
