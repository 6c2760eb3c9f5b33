"""Parts of arrays: basic indexing, take, the triangles."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...declare.dims import Dim
from ...onnx.standard import standard
from ...onnx.standard.emitter import Emitter, NotStandard, Operand
from ..indexing.onnx import gather, is_array, pick

__all__ = ["getitem"]

_END = 2**62


@standard(operator.getitem)
def getitem(e: Emitter, a: Any, key: Any, /) -> Operand:
    """Slices, integers, arrays of integers, a mask."""
    x = e.operand(a)
    ndim = x.ndim
    keys = list(key) if isinstance(key, tuple) else [key]
    if any(isinstance(k, bool | np.bool_) for k in keys):
        raise NotStandard("a truth value as an index")
    used = sum(e.operand(k).ndim if _is_mask(e, k) else 1 for k in keys if k is not None and k is not Ellipsis)
    if not any(k is Ellipsis for k in keys):
        keys.append(Ellipsis)
    full: list[Any] = []
    for k in keys:
        full += [slice(None)] * (ndim - used) if k is Ellipsis else [k]
    if not any(map(is_array, full)):
        return _basic(e, x, full)
    if any(k is None for k in full):
        raise NotStandard("a new axis beside arrays as indices")
    return pick(e, x, full, _basic)


def _is_mask(e: Emitter, key: Any) -> bool:
    return is_array(key) and e.operand(key).dtype == np.bool_


def _basic(e: Emitter, x: Operand, keys: list[Any]) -> Operand:
    rank = sum(1 for k in keys if k is None or isinstance(k, slice))
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
    if added:
        x = e.add("Unsqueeze", x, e.ints(added))
    return x.with_rank(rank) if axes or added else x


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


@standard(np.take)
def _take(e: Emitter, a: Any, indices: Any, axis: Any = None, out: None = None, mode: Any = "raise") -> Operand:
    if mode != "raise":
        raise NotStandard(f"mode={mode!r}")
    x = e.operand(a)
    if axis is None:
        return gather(e, e.add("Reshape", x, e.ints([-1])).with_rank(1), indices, 0)
    return gather(e, x, indices, int(axis))


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
