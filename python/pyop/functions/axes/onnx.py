"""Export functions that exchange, add and drop axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...onnx.standard import Emitter, NotStandard, Operand, standard
from ..shape import axis_of


@standard(np.transpose)
def _transpose(e: Emitter, a: Any, axes: Any = None) -> Operand:
    x = e.operand(a)
    if axes is not None:
        axes = [axis_of(k, x.ndim) for k in axes]
    return e.add("Transpose", x, perm=axes if axes is not None else list(range(x.ndim))[::-1])


@standard(getattr(np, "matrix_transpose", None))
def _matrix_transpose(e: Emitter, x: Any, /) -> Operand:
    x = e.operand(x)
    return _permuted(e, x, [*range(x.ndim - 2), x.ndim - 1, x.ndim - 2])


def _permuted(e: Emitter, x: Operand, order: list[int]) -> Operand:
    return e.add("Transpose", x, perm=order).with_rank(len(order))


@standard(np.swapaxes)
def swapaxes(e: Emitter, a: Any, axis1: Any, axis2: Any) -> Operand:
    x = e.operand(a)
    order = list(range(x.ndim))
    one, two = axis_of(axis1, x.ndim), axis_of(axis2, x.ndim)
    order[one], order[two] = order[two], order[one]
    return _permuted(e, x, order)


@standard(np.moveaxis)
def _moveaxis(e: Emitter, a: Any, source: Any, destination: Any) -> Operand:
    x = e.operand(a)
    sources, targets = (
        [axis_of(k, x.ndim) for k in (given if isinstance(given, tuple | list) else (given,))]
        for given in (source, destination)
    )
    order = [k for k in range(x.ndim) if k not in sources]
    for target, k in sorted(zip(targets, sources, strict=True)):
        order.insert(target, k)
    return _permuted(e, x, order)


@standard(np.expand_dims)
def _expand_dims(e: Emitter, a: Any, axis: Any) -> Operand:
    axes = list(axis) if isinstance(axis, tuple | list) else [axis]
    return e.add("Unsqueeze", e.operand(a), e.ints(axes))


@standard(np.squeeze)
def _squeeze(e: Emitter, a: Any, axis: Any = None) -> Operand:
    x = e.operand(a)
    if axis is None:
        if x.shape is None or not all(isinstance(size, int) for size in x.shape):
            raise NotStandard("squeeze where a size is not known")
        axis = tuple(k for k, size in enumerate(x.shape) if size == 1)
        if not axis:
            return x
    return e.add("Squeeze", x, e.ints(list(axis) if isinstance(axis, tuple) else [axis]))


@standard(np.rollaxis)
def _rollaxis(e: Emitter, a: Any, axis: Any, start: Any = 0) -> Operand:
    x = e.operand(a)
    axis, start = axis_of(axis, x.ndim), start + x.ndim if start < 0 else start
    order = [k for k in range(x.ndim) if k != axis]
    order.insert(start - 1 if axis < start else start, axis)
    return _permuted(e, x, order)
