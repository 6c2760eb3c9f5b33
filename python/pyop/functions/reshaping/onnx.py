"""Export functions that return the same elements in another shape or order."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...onnx.standard import Emitter, NotStandard, Operand, standard
from ..axes.onnx import swapaxes
from ..shape import axis_of


@standard(np.reshape)
def _reshape(
    e: Emitter, a: Any, /, shape: Any = None, order: Any = "C", *, newshape: Any = None, copy: Any = None
) -> Operand:
    if order != "C":
        raise NotStandard(f"order={order!r}")
    wanted = shape if shape is not None else newshape
    sizes = tuple(wanted) if isinstance(wanted, tuple | list) else (wanted,)
    known = [size for size in sizes if isinstance(size, int)]
    if -1 not in known:  # zeros among the sizes mean zero
        zeros = len(known) < len(sizes) or 0 in known
        return e.add("Reshape", e.operand(a), e.ints(sizes), allowzero=1 if zeros else None)
    if 0 in known:
        raise NotStandard("a size of zero beside -1")
    return e.add("Reshape", e.operand(a), e.ints(sizes))


@standard(np.ravel)
def _ravel(e: Emitter, a: Any, order: Any = "C") -> Operand:
    if order != "C":
        raise NotStandard(f"order={order!r}")
    return e.add("Reshape", e.operand(a), e.ints([-1]))


@standard(np.broadcast_to)
def _broadcast_to(e: Emitter, array: Any, shape: Any, subok: Any = False) -> Operand:
    sizes = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    return e.add("Expand", e.operand(array), e.ints(sizes))


@standard(np.flip)
def _flip(e: Emitter, m: Any, axis: Any = None) -> Operand:
    x = e.operand(m)
    given = axis if isinstance(axis, tuple) else range(x.ndim) if axis is None else (axis,)
    axes = [axis_of(k, x.ndim) for k in given]
    if not axes:
        return x
    n = len(axes)
    return e.add("Slice", x, e.ints([-1] * n), e.ints([-(2**62)] * n), e.ints(axes), e.ints([-1] * n)).like(x)


standard(np.fliplr)(lambda e, m: _flip(e, m, 1))
standard(np.flipud)(lambda e, m: _flip(e, m, 0))


@standard(np.rot90)
def _rot90(e: Emitter, m: Any, k: Any = 1, axes: Any = (0, 1)) -> Operand:
    x = e.operand(m)
    if axes != (0, 1) or not isinstance(k, int) or x.ndim < 2:
        raise NotStandard("a rotation in another plane")
    if k % 2 == 0:
        return _flip(e, x, (0, 1)) if k % 4 else x
    if k % 4 == 1:
        return swapaxes(e, _flip(e, x, 1), 0, 1)
    return _flip(e, swapaxes(e, x, 0, 1).like(x).with_rank(x.ndim), 1)


@standard(np.roll)
def _roll(e: Emitter, a: Any, shift: Any, axis: Any = None) -> Operand:
    x = e.operand(a)
    if not isinstance(shift, int):
        raise NotStandard("a roll along several axes")
    if axis is None:
        shape = e.shape(x)
        return e.add("Reshape", _rolled(e, flat(e, x), shift, 0), shape, allowzero=1)
    return _rolled(e, x, shift, axis_of(axis, x.ndim))


def _rolled(e: Emitter, x: Operand, shift: int, axis: int) -> Operand:
    size = e.shape(x, axis)
    count = e.add("Squeeze", size, e.ints([0]))
    numbers = e.add("Range", e.constant(0, np.int64), count, e.constant(1, np.int64))
    # An empty axis has no places, and a divisor of zero is none.
    divisor = e.add("Max", count, e.constant(1, np.int64))
    places = e.add("Mod", e.add("Sub", numbers, e.constant(shift, np.int64)), divisor)
    return e.add("Gather", x, places, axis=axis)


def flat(e: Emitter, x: Operand) -> Operand:
    return e.add("Reshape", x, e.ints([-1])).with_rank(1)


@standard(np.atleast_1d)
def _atleast_1d(e: Emitter, x: Any) -> Operand:
    x = e.operand(x)
    return x if x.ndim else e.add("Reshape", x, e.ints([1]))


@standard(np.atleast_2d)
def _atleast_2d(e: Emitter, x: Any) -> Operand:
    x = e.operand(x)
    return x if x.ndim > 1 else e.add("Reshape", x, e.ints([1, -1 if x.ndim else 1]))


@standard(np.broadcast_arrays)
def _broadcast_arrays(e: Emitter, *args: Any, subok: Any = False) -> list[Operand]:
    xs = [e.operand(x) for x in args]
    # What all shapes become together is the shape of a sum.
    total: Operand | None = None
    for x in xs:
        false = e.add("ConstantOfShape", e.shape(x), dtype=np.float32)
        total = false if total is None else e.add("Add", total, false)
    assert total is not None
    shape = e.shape(total)
    return [e.add("Expand", x, shape) for x in xs]
