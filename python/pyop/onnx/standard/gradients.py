"""Functions of pyop's own gradient rules."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...gradients.fit import broadcast_like
from ...gradients.marker import argument
from ...gradients.moves import _reshape_like, put
from . import standard
from .elementwise import same_dtype
from .emitter import Emitter, NotStandard, Operand
from .selecting import getitem

__all__: list[str] = []


@standard(argument)
def _identity(e: Emitter, x: Any) -> Operand:
    return e.operand(x)


@standard(broadcast_like)
def _broadcast_like(e: Emitter, x: Any, like: Any) -> Operand:
    return e.add("Expand", *same_dtype(e, (x,)), e.add("Shape", e.operand(like), dtype=np.int64))


@standard(_reshape_like)
def _reshaped(e: Emitter, x: Any, like: Any, order: Any = "C") -> Operand:
    if order != "C":
        raise NotStandard(f"order={order!r}")
    return e.add("Reshape", e.operand(x), e.add("Shape", e.operand(like), dtype=np.int64), allowzero=1)


@standard(put)
def _put(e: Emitter, ct: Any, like: Any, key: Any) -> Operand:
    """The places are those that the index picks of the numbers of all elements."""
    (ct,) = same_dtype(e, (ct,))
    like = e.operand(like)
    if ct.dtype.kind not in "fiu":
        raise NotStandard(f"an array of {ct.dtype}")
    shape = e.add("Shape", like, dtype=np.int64)
    total = e.add("Size", like, dtype=np.int64)
    numbers = e.add("Range", e.constant(np.int64(0)), total, e.constant(np.int64(1)))
    numbers = e.add("Reshape", numbers, shape, allowzero=1)
    picked = getitem(e, Operand(numbers.name, numbers.dtype, like.shape), key)
    given = e.add("Expand", ct, e.add("Shape", picked))
    zeros = e.add("ConstantOfShape", e.add("Reshape", total, e.ints([1])), dtype=ct.dtype, value=_zero(ct.dtype))
    flat = e.ints([-1])
    added = e.add(
        "ScatterElements", zeros, e.add("Reshape", picked, flat), e.add("Reshape", given, flat), axis=0, reduction="add"
    )
    return e.add("Reshape", added, shape, allowzero=1)


def _zero(dtype: Any) -> Any:
    from onnx import helper

    from ..elements import code_of

    return helper.make_tensor("value", code_of(dtype), [1], np.zeros(1, dtype))
