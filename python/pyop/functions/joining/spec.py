"""Infer functions that join arrays: concatenate, stack, block, append."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from ...declare.dims import Extent
from ...declare.spec import Spec
from .. import rule
from ..forms import each
from ..operand import DType, Operand, Shape, one, operand, probe
from ..shape import add, axis_of, merge, one_d, prod, replaced, three_d, two_d


def members(arrays: Any) -> list[Operand] | None:
    """Return the arrays of a sequence argument; None if a single array is given whose length is not known."""
    if isinstance(arrays, (list, tuple)):
        return [operand(item) for item in arrays]
    part = operand(arrays)
    if part.shape is None:
        return None
    if not part.shape:
        raise TypeError("iteration over a 0-d array")
    count = part.shape[0]
    return [Operand(part.dtype, part.shape[1:])] * count if isinstance(count, int) else None


def joined(shapes: list[Shape], axis: Any) -> Shape:
    """Return the shape of a concatenation along an existing axis."""
    known = [shape for shape in shapes if shape is not None]
    if not shapes:
        raise ValueError("need at least one array to concatenate")
    if not known:
        return None
    ndim = len(known[0])
    if any(len(shape) != ndim for shape in known):
        i = next(k for k, shape in enumerate(shapes) if shape is not None and len(shape) != ndim)
        raise ValueError(
            "all the input arrays must have same number of dimensions, but the array at index 0 has "
            f"{ndim} dimension(s) and the array at index {i} has {len(shapes[i] or ())} dimension(s)"
        )
    if ndim == 0:
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    k = axis_of(axis, ndim)
    total = reduce(add, (None if shape is None else shape[k] for shape in shapes))
    result: tuple[Extent, ...] = known[0]
    for other in known[1:]:
        result = tuple(
            size if i == k else merge(size, other[i], f"arrays to concatenate must match in axis {i}")
            for i, size in enumerate(result)
        )
    return replaced(result, k, total)


def _joined_dtype(parts: list[Operand], dtype: Any, casting: Any) -> DType | None:
    if dtype is not None:
        target: DType = np.dtype(dtype)
        for part in parts:
            if part.dtype is not None and not np.can_cast(part.dtype, target, casting):
                raise TypeError(
                    f"Cannot cast array data from {part.dtype!r} to {target!r} according to the rule {casting!r}"
                )
        return target
    if any(part.dtype is None for part in parts):
        return None
    first = parts[0].dtype
    if first is not None and first.kind in "biufc" and first.isnative and all(part.dtype is first for part in parts):
        return first
    return probe(np.concatenate, tuple(dict.fromkeys(one(Operand(part.dtype, ())) for part in parts)))


def _elements(part: Operand) -> Extent:
    return None if part.shape is None else prod(part.shape)


@rule(np.concatenate)
def _concatenate(
    arrays: Any, /, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind"
) -> Spec:
    parts = members(arrays)
    if parts is None:
        return Spec(None if dtype is None else np.dtype(dtype), None)
    result = _joined_dtype(parts, dtype, casting) if parts else None
    if axis is None:
        sizes: list[Extent] = [0, *map(_elements, parts)]
        return Spec(result, (reduce(add, sizes),))
    return Spec(result, joined([part.shape for part in parts], axis))


def _columns(shape: Shape) -> Shape:
    if shape is None or len(shape) >= 2:
        return shape
    return (*shape, 1) if shape else (1, 1)


# What becomes of each shape, and along which axis they are joined; that of hstack depends on the rank of the first.
_GROWN: dict[Any, tuple[Any, Any]] = {
    np.vstack: (two_d, 0),
    np.hstack: (one_d, None),
    np.dstack: (three_d, 2),
    np.column_stack: (_columns, 1),
}


@each(*_GROWN)
def _grown(func: Any, tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Spec:
    grow, axis = _GROWN[func]
    parts = members(tup)
    if parts is None:
        return Spec(None if dtype is None else np.dtype(dtype), None)
    shapes = [grow(part.shape) for part in parts]
    result = _joined_dtype(parts, dtype, casting) if parts else None
    if axis is None and any(shape is None for shape in shapes):
        return Spec(result, None)
    if axis is None:
        axis = 0 if shapes and len(shapes[0]) == 1 else 1
    return Spec(result, joined(shapes, axis))


@rule(np.stack)
def _stack(arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind") -> Spec:
    parts = members(arrays)
    if parts is None:
        return Spec(None if dtype is None else np.dtype(dtype), None)
    if not parts:
        raise ValueError("need at least one array to stack")
    result = _joined_dtype(parts, dtype, casting)
    known = [part.shape for part in parts if part.shape is not None]
    if not known:
        return Spec(result, None)
    if any(len(shape) != len(known[0]) for shape in known):
        raise ValueError("all input arrays must have the same shape")
    inner = known[0]
    for other in known[1:]:
        inner = tuple(
            merge(a, b, "all input arrays must have the same shape") for a, b in zip(inner, other, strict=True)
        )
    k = axis_of(axis, len(inner) + 1)
    return Spec(result, (*inner[:k], len(parts), *inner[k:]))


@rule(np.block)
def _block(arrays: Any) -> Spec:
    def depth(x: Any) -> int:
        return 1 + max((depth(item) for item in x), default=0) if isinstance(x, list) else 0

    levels = depth(arrays)
    leaves: list[Operand] = []

    def collect(x: Any) -> None:
        if isinstance(x, list):
            if not x:
                raise ValueError("List at arrays cannot be empty")
            for item in x:
                collect(item)
        elif isinstance(x, tuple):
            raise TypeError(
                "arrays is a tuple. Only lists can be used to arrange blocks, and np.block does not allow tuples"
            )
        else:
            leaves.append(operand(x))

    collect(arrays)
    if any(part.shape is None for part in leaves):
        return Spec(_joined_dtype(leaves, None, "same_kind"), None)
    ndim = max(levels, *(len(part.shape or ()) for part in leaves))

    def build(x: Any, level: int) -> Shape:
        if isinstance(x, list):
            return joined([build(item, level - 1) for item in x], -level)
        if level:
            raise ValueError("List depths are mismatched")
        shape = operand(x).shape or ()
        return (1,) * (ndim - len(shape)) + shape

    return Spec(_joined_dtype(leaves, None, "same_kind"), build(arrays, levels))


@rule(np.append)
def _append(arr: Any, values: Any, axis: Any = None) -> Spec:
    parts = [operand(arr), operand(values)]
    result = _joined_dtype(parts, None, "same_kind")
    if axis is None:
        return Spec(result, (reduce(add, map(_elements, parts)),))
    return Spec(result, joined([part.shape for part in parts], axis))
