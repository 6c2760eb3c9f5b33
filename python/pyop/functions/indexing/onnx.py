"""Export indexing: basic, by arrays, take, nonzero."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...declare.dims import Dim, same
from ...onnx.standard import Emitter, NotStandard, Operand, standard
from ...onnx.standard.ufuncs import truth


def is_array(key: Any) -> bool:
    """Return whether an index is an array."""
    return isinstance(key, Operand | np.ndarray | list)


def gather(e: Emitter, x: Operand, index: Any, axis: int) -> Operand:
    """Return the elements at some places of one axis."""
    places = _places(e, index)
    made = e.add("Gather", x, places, axis=axis)
    return made.with_rank(x.ndim - 1 + places.ndim) if x.shape is not None and places.shape is not None else made


def _places(e: Emitter, index: Any) -> Operand:
    index = e.operand(index)
    if index.dtype is None or index.dtype.kind not in "iu" or index.dtype == np.uint64:
        raise NotStandard(f"an index of {index.dtype}")
    return index if index.dtype in (np.int32, np.int64) else e.cast(index, np.int64)


def pick(e: Emitter, x: Operand, keys: list[Any], basic: Any) -> Operand:
    """Return the elements picked by an index with arrays. Keys are slices, ints or arrays; `basic` handles slices."""
    masks = [e.operand(k) for k in keys if is_array(k) and _is_mask(e.operand(k))]
    if masks:
        return _masked(e, x, keys, masks)
    # Integers beside arrays are arrays, in where NumPy puts the axes too.
    at = [k for k, key in enumerate(keys) if not isinstance(key, slice)]
    if len(at) == 1:
        x = basic(e, x, [slice(None) if k in at else key for k, key in enumerate(keys)])
        return gather(e, x, keys[at[0]], at[0])
    places = [e.cast(_places(e, keys[k]), np.int64) for k in at]
    x = basic(e, x, [slice(None) if k in at else key for k, key in enumerate(keys)])
    rank = max(index.ndim for index in places)
    if len({index.shape for index in places}) > 1 or None in (places[0].shape or ()):
        nothing = [e.add("Sub", index, index) for index in places]
        total = nothing[0]
        for zeros in nothing[1:]:
            total = e.add("Add", total, zeros)
        places = [e.add("Add", index, total) for index in places]
    columns = e.add("Concat", *(e.add("Unsqueeze", index, e.ints([rank])) for index in places), axis=rank)
    order = at + [k for k in range(x.ndim) if k not in at]
    if order != sorted(order):
        x = e.add("Transpose", x, perm=order).with_rank(x.ndim)
    picked = e.add("GatherND", x, columns)
    first = at[0] if at == list(range(at[0], at[0] + len(at))) else 0
    rest = x.ndim - len(at)
    if first:
        perm = [*range(rank, rank + first), *range(rank), *range(rank + first, rank + rest)]
        picked = e.add("Transpose", picked, perm=perm)
    return picked.with_rank(rank + rest)


def _is_mask(index: Operand) -> bool:
    return index.dtype is not None and index.dtype.kind == "b"


def _masked(e: Emitter, x: Operand, keys: list[Any], masks: list[Operand]) -> Operand:
    """Pick by one mask among full slices."""
    if len(masks) > 1 or any(not is_array(k) and k != slice(None) for k in keys) or sum(map(is_array, keys)) > 1:
        raise NotStandard("a mask beside other indices")
    (mask,) = masks
    axis = next(k for k, key in enumerate(keys) if is_array(key))
    spare = mask.ndim - 1
    if mask.ndim == 0 or axis + mask.ndim > x.ndim:
        raise NotStandard("a mask of no axes, or of too many")
    if spare:
        shape = e.shape(x)
        ends = [
            e.add("Slice", shape, e.ints([start]), e.ints([stop]), e.ints([0]))
            for start, stop in ((0, axis), (axis + mask.ndim, x.ndim))
        ]
        whole = e.add("Concat", ends[0], e.ints([-1]), ends[1], axis=0)
        x = e.add("Reshape", x, whole).with_rank(x.ndim - spare)
        mask = e.add("Reshape", mask, e.ints([-1]))
    return e.add("Compress", x, mask, axis=axis).with_rank(x.ndim)


@standard(np.take_along_axis)
def _take_along_axis(e: Emitter, arr: Any, indices: Any, axis: Any = -1) -> Operand:
    x, places = e.operand(arr), _places(e, indices)
    if axis is None:
        x, axis = e.add("Reshape", x, e.ints([-1])), 0
        return e.add("GatherElements", x, places, axis=0)
    axis = int(axis) % x.ndim
    if x.shape is None or places.shape is None or len(x.shape) != len(places.shape):
        raise NotStandard("indices of another rank")
    if any(k != axis and same(m, n) is not True for k, (m, n) in enumerate(zip(x.shape, places.shape, strict=True))):
        raise NotStandard("indices that are broadcast")
    return e.add("GatherElements", x, places, axis=axis)


# --- the places of what is not zero


@standard(np.argwhere)
def _argwhere(e: Emitter, a: Any) -> Operand:
    x = e.operand(a)
    return e.add("Transpose", e.add("NonZero", truth(e, x), dtype=np.int64), perm=[1, 0])


@standard(np.flatnonzero)
def _flatnonzero(e: Emitter, a: Any) -> Operand:
    flat = e.add("Reshape", truth(e, e.operand(a)), e.ints([-1]))
    return e.add("Reshape", e.add("NonZero", flat, dtype=np.int64), e.ints([-1]))


def nonzero(e: Emitter, a: Any) -> list[Operand]:
    """Return one vector of places an axis."""
    x = e.operand(a)
    if x.ndim == 0:
        raise NotStandard("places in a number")
    places = e.add("NonZero", truth(e, x), dtype=np.int64)
    rows = e.add_many("Split", x.ndim, places, axis=0, num_outputs=x.ndim) if x.ndim > 1 else [places]
    return [e.add("Squeeze", row, e.ints([0])) for row in rows]


standard(np.nonzero)(nonzero)
_END = 2**62


@standard(operator.getitem)
def getitem(e: Emitter, a: Any, key: Any, /) -> Operand:
    """Export an index of slices, integers, arrays of integers or a mask."""
    x = e.operand(a)
    keys = list(key) if isinstance(key, tuple) else [key]
    if any(isinstance(k, bool | np.bool_) for k in keys):
        raise NotStandard("a truth value as an index")
    counted = [k for k in keys if k is not None and k is not Ellipsis]
    used = sum(e.operand(k).ndim if is_array(k) and _is_mask(e.operand(k)) else 1 for k in counted)
    if not any(k is Ellipsis for k in keys):
        keys.append(Ellipsis)
    full: list[Any] = []
    for k in keys:
        full += [slice(None)] * (x.ndim - used) if k is Ellipsis else [k]
    if not any(map(is_array, full)):
        return _basic(e, x, full)
    if any(k is None for k in full):
        raise NotStandard("a new axis beside arrays as indices")
    return pick(e, x, full, _basic)


def _basic(e: Emitter, x: Operand, keys: list[Any]) -> Operand:
    rank = sum(1 for k in keys if k is None or isinstance(k, slice))
    of_axes = list(enumerate(k for k in keys if k is not None))
    cuts = [(axis, *_bounds(k)) for axis, k in of_axes if k != slice(None)]
    dropped = [axis for axis, k in of_axes if not isinstance(k, slice)]
    added = [place for place, k in enumerate(k for k in keys if k is None or isinstance(k, slice)) if k is None]
    if cuts:
        axes, starts, ends, steps = (list(part) for part in zip(*cuts, strict=True))
        _in_bounds(x, axes, starts, dropped)
        x = e.add("Slice", x, e.ints(starts), e.ints(ends), e.ints(axes), e.ints(steps))
    if dropped:
        x = e.add("Squeeze", x, e.ints(dropped))
    if added:
        x = e.add("Unsqueeze", x, e.ints(added))
    return x.with_rank(rank) if cuts or added else x


def _in_bounds(x: Operand, axes: list[int], starts: list[Any], dropped: list[int]) -> None:
    """Raise for an index past the end, as NumPy does; Squeeze finds others, as the slice is empty then."""
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


def _bounds(k: Any) -> tuple[Any, Any, int]:
    """Return start, end and step of a slice, or of the slice of one element that an integer is."""
    if not isinstance(k, slice):
        start = _index(k)
        return start, _END if start == -1 else start + 1, 1
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
