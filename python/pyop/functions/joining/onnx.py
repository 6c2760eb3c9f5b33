"""Elements repeated, moved round, put beside each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...gradients.shapes import _pad_with_zeros
from ...onnx.standard import standard
from ...onnx.standard.emitter import Emitter, NotStandard, Operand
from ..elementwise.onnx import same_dtype
from ..reshaping.onnx import axis_of

__all__: list[str] = []


def _flat(e: Emitter, x: Operand) -> Operand:
    return e.add("Reshape", x, e.ints([-1])).with_rank(1)


@standard(np.repeat)
def _repeat(e: Emitter, a: Any, repeats: Any, axis: Any = None) -> Operand:
    x = e.operand(a)
    if not isinstance(repeats, int) or repeats < 0:
        raise NotStandard("numbers of repetitions that differ")
    if axis is None:
        x, axis = _flat(e, x), 0
    axis = axis_of(axis, x.ndim)
    factors = [repeats if k == axis else 1 for k in range(x.ndim)]
    shape = e.add("Mul", e.add("Shape", x, dtype=np.int64), e.ints(factors))
    wide = e.add("Unsqueeze", x, e.ints([axis + 1]))
    wide = e.add("Tile", wide, e.ints([*factors[:axis], 1, repeats, *factors[axis + 1 :]]))
    return e.add("Reshape", wide, shape, allowzero=1)


@standard(np.roll)
def _roll(e: Emitter, a: Any, shift: Any, axis: Any = None) -> Operand:
    x = e.operand(a)
    if not isinstance(shift, int):
        raise NotStandard("a roll along several axes")
    if axis is None:
        shape = e.add("Shape", x, dtype=np.int64)
        return e.add("Reshape", _rolled(e, _flat(e, x), shift, 0), shape, allowzero=1)
    return _rolled(e, x, shift, axis_of(axis, x.ndim))


def _rolled(e: Emitter, x: Operand, shift: int, axis: int) -> Operand:
    size = e.add("Shape", x, dtype=np.int64, start=axis, end=axis + 1)
    count = e.add("Squeeze", size, e.ints([0]))
    numbers = e.add("Range", e.constant(0, np.int64), count, e.constant(1, np.int64))
    # An empty axis has no places, and a divisor of zero is none.
    divisor = e.add("Max", count, e.constant(1, np.int64))
    places = e.add("Mod", e.add("Sub", numbers, e.constant(shift, np.int64)), divisor)
    return e.add("Gather", x, places, axis=axis)


_MODES = {"constant": "constant", "edge": "edge", "reflect": "reflect", "wrap": "wrap"}


@standard(np.pad)
def _pad(e: Emitter, array: Any, pad_width: Any, mode: Any = "constant", *, constant_values: Any = 0) -> Operand:
    x = e.operand(array)
    if mode not in _MODES or x.dtype is None or not isinstance(constant_values, int | float):
        raise NotStandard(f"a margin of the mode {mode!r:.40}")
    if mode != "constant" and (x.shape is None or not all(isinstance(size, int) and size > 1 for size in x.shape)):
        raise NotStandard("a margin of elements of an array whose size is not known")
    try:
        widths = np.broadcast_to(np.asarray(pad_width, np.int64), (x.ndim, 2))
    except (TypeError, ValueError):
        raise NotStandard("a margin whose width is not known") from None
    if mode in ("reflect", "wrap") and any(w >= n for pair, n in zip(widths, x.shape or (), strict=True) for w in pair):
        raise NotStandard("a margin as wide as the array")
    value = e.constant(constant_values, x.dtype) if mode == "constant" else None
    return e.add("Pad", x, e.ints([*widths[:, 0], *widths[:, 1]]), value, mode=_MODES[mode])


@standard(_pad_with_zeros)
def _pad_zeros(e: Emitter, a: Any, pad_width: Any, mode: Any = "constant", **kw: Any) -> Operand:
    return _pad(e, a, pad_width)


def _many(arrays: Any) -> Any:
    if not isinstance(arrays, tuple | list):
        raise NotStandard("one array, of which the parts are to be joined")
    return arrays


@standard(np.column_stack)
def _column_stack(e: Emitter, tup: Any) -> Operand:
    xs = [e.add("Reshape", x, e.ints([-1, 1])) if x.ndim < 2 else x for x in same_dtype(e, _many(tup))]
    return e.add("Concat", *xs, axis=1)


@standard(np.dstack)
def _dstack(e: Emitter, tup: Any) -> Operand:
    xs = []
    for x in same_dtype(e, _many(tup)):
        if x.ndim < 2:
            x = e.add("Reshape", x, e.ints([1, -1, 1]))
        elif x.ndim == 2:
            x = e.add("Unsqueeze", x, e.ints([2]))
        xs.append(x)
    return e.add("Concat", *xs, axis=2)


@standard(np.append)
def _append(e: Emitter, arr: Any, values: Any, axis: Any = None) -> Operand:
    xs = same_dtype(e, (e.operand(arr), e.operand(values)))
    if axis is None:
        return e.add("Concat", *(_flat(e, x) for x in xs), axis=0)
    return e.add("Concat", *xs, axis=axis_of(axis, xs[0].ndim))


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
        false = e.add("ConstantOfShape", e.add("Shape", x, dtype=np.int64), dtype=np.float32)
        total = false if total is None else e.add("Add", total, false)
    assert total is not None
    shape = e.add("Shape", total, dtype=np.int64)
    return [e.add("Expand", x, shape) for x in xs]


@standard(np.unstack if hasattr(np, "unstack") else None)
def _unstack(e: Emitter, x: Any, /, *, axis: Any = 0) -> list[Operand]:
    x = e.operand(x)
    axis, count = axis_of(axis, x.ndim), len(e.outputs)
    if x.shape is None or x.shape[axis] != count or not count:
        raise NotStandard("an axis of a size that is not known")
    return [e.add("Gather", x, e.constant(k, np.int64), axis=axis) for k in range(count)]
