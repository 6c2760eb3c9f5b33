"""Export functions of pyop's own gradient rules."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...gradients.adjoints import _count, _move_back, _reshape_like, part_of, put
from ...gradients.unbroadcast import _cast_like, _fit_like, broadcast_like
from ...onnx.standard import Emitter, NotStandard, Operand, emit, standard
from ...onnx.standard.ufuncs import same_dtype
from ...transforms.marker import argument
from ...transforms.stop import stopped
from ..creation.onnx import filling
from ..indexing.onnx import getitem
from ..reductions.onnx import count


@standard(argument, stopped)
def _identity(e: Emitter, x: Any) -> Operand:
    return e.operand(x)


@standard(broadcast_like)
def _broadcast_like(e: Emitter, x: Any, like: Any) -> Operand:
    return e.add("Expand", *same_dtype(e, (x,)), e.shape(e.operand(like)))


@standard(_fit_like)
def _fitted(e: Emitter, ct: Any, ans: Any, like: Any) -> Operand:
    (x,) = same_dtype(e, (ct,))
    whole, like = e.operand(ans), e.operand(like)
    lead = whole.ndim - like.ndim
    x = e.add("Expand", x, e.shape(whole))
    if lead > 0:
        x = e.add("ReduceSum", x, e.ints(list(range(lead))), keepdims=0)
    if not like.ndim or (like.shape and all(isinstance(size, int) and size != 1 for size in like.shape)):
        return x
    # Where the argument has one element: summing over one element does no harm.
    ones = e.add("Equal", e.shape(like), e.constant(1, np.int64), dtype=bool)
    axes = e.add("Reshape", e.add("NonZero", ones, dtype=np.int64), e.ints([-1]))
    return e.add("ReduceSum", x, axes, keepdims=1, noop_with_empty_axes=1)


@standard(_cast_like)
def _cast(e: Emitter, ct: Any, like: Any) -> Operand:
    return e.cast(e.operand(ct), e.of_kind(like, "f", "a cotangent").dtype)


@standard(_reshape_like)
def _reshaped(e: Emitter, x: Any, like: Any, order: Any = "C") -> Operand:
    if order != "C":
        raise NotStandard(f"order={order!r}")
    return e.add("Reshape", e.operand(x), e.shape(e.operand(like)), allowzero=1)


@standard(_count)
def _counted(e: Emitter, a: Any, axis: Any) -> Operand:
    x = e.of_kind(a, "biuf", "a number of elements")
    return e.cast(count(e, x, axis), x.dtype if x.dtype.kind == "f" else np.float64)


def numbers(e: Emitter, like: Operand, start: int) -> Operand:
    """Return the numbers of all elements, in the shape of an array."""
    total = e.add("Size", like, dtype=np.int64)
    stop = e.add("Add", total, e.constant(start, np.int64)) if start else total
    numbers = e.add("Range", e.constant(start, np.int64), stop, e.constant(1, np.int64))
    return e.add("Reshape", numbers, e.shape(like), allowzero=1).like(like)


def _added(e: Emitter, ct: Operand, places: Operand, size: Operand) -> Operand:
    """Return a vector of zeros, with numbers added at places."""
    zeros = e.add("ConstantOfShape", e.add("Reshape", size, e.ints([1])), dtype=ct.dtype, value=filling(ct.dtype, 0))
    flat = e.ints([-1])
    places, ct = e.add("Reshape", places, flat), e.add("Reshape", ct, flat)
    return e.add("ScatterElements", zeros, places, ct, axis=0, reduction="add")


@standard(put)
def _put(e: Emitter, ct: Any, like: Any, key: Any, *more: Any) -> Operand:
    """Add at the places that the index picks of the numbers of all elements."""
    if more:
        whole = _put(e, ct, like, key)
        for other, where in zip(more[::2], more[1::2], strict=True):
            whole = e.add("Add", whole, _put(e, other, like, where))
        return whole
    ct, like = e.of_kind(ct, "fiu", "an array"), e.operand(like)
    picked = getitem(e, numbers(e, like, 0), key)
    given = e.add("Expand", ct, e.shape(picked))
    added = _added(e, given, picked, e.add("Size", like, dtype=np.int64))
    return e.add("Reshape", added, e.shape(like), allowzero=1)


@standard(_move_back)
def _moved_back(e: Emitter, ct: Any, like: Any, func: Any, before: Any, after: Any, kwargs: Any) -> Operand:
    """Run the function on the numbers of all elements; where it puts zeros instead, the number is 0."""
    ct, like = e.of_kind(ct, "fiu", "an array"), e.operand(like)
    (places,) = emit(e, func, (*before, numbers(e, like, 1), *after), kwargs)
    one = e.constant(1, np.int64)
    given = e.add("Expand", ct, e.shape(places))
    added = _added(e, given, places, e.add("Add", e.add("Size", like, dtype=np.int64), one))
    added = e.add("Slice", added, e.ints([1]), e.ints([2**62]), e.ints([0]))
    return e.add("Reshape", added, e.shape(like), allowzero=1)


@standard(part_of)
def _part_of(e: Emitter, ct: Any, arrays: Any, axis: Any, k: Any) -> Operand:
    x = e.operand(ct)
    axis = int(axis) % x.ndim
    sizes = [e.shape(e.operand(a), axis) for a in arrays[: k + 1]]
    start = e.ints([0])
    for size in sizes[:-1]:
        start = e.add("Add", start, size)
    return e.add("Slice", x, start, e.add("Add", start, sizes[-1]), e.ints([axis]))
