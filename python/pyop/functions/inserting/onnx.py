"""Export functions that repeat elements, and margins."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...onnx.standard import Emitter, NotStandard, Operand, standard
from ..reshaping.onnx import flat
from ..shape import axis_of
from .grad import pad_with_zeros


@standard(np.tile)
def _tile(e: Emitter, A: Any, reps: Any) -> Operand:
    x = e.operand(A)
    counts = list(reps) if isinstance(reps, tuple | list) else [reps]
    if len(counts) > x.ndim:
        x = e.add("Unsqueeze", x, e.ints(list(range(len(counts) - x.ndim))))
    else:
        counts = [1] * (x.ndim - len(counts)) + counts
    return e.add("Tile", x, e.ints(counts))


@standard(np.repeat)
def _repeat(e: Emitter, a: Any, repeats: Any, axis: Any = None) -> Operand:
    x = e.operand(a)
    if not isinstance(repeats, int) or repeats < 0:
        raise NotStandard("numbers of repetitions that differ")
    if axis is None:
        x, axis = flat(e, x), 0
    axis = axis_of(axis, x.ndim)
    factors = [repeats if k == axis else 1 for k in range(x.ndim)]
    shape = e.add("Mul", e.shape(x), e.ints(factors))
    wide = e.add("Unsqueeze", x, e.ints([axis + 1]))
    wide = e.add("Tile", wide, e.ints([*factors[:axis], 1, repeats, *factors[axis + 1 :]]))
    return e.add("Reshape", wide, shape, allowzero=1)


@standard(np.pad)
def _pad(e: Emitter, array: Any, pad_width: Any, mode: Any = "constant", *, constant_values: Any = 0) -> Operand:
    x = e.operand(array)
    if (
        mode not in ("constant", "edge", "reflect", "wrap")
        or x.dtype is None
        or not isinstance(constant_values, int | float)
    ):
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
    return e.add("Pad", x, e.ints([*widths[:, 0], *widths[:, 1]]), value, mode=mode)


@standard(pad_with_zeros)
def _pad_zeros(e: Emitter, a: Any, pad_width: Any, mode: Any = "constant", **kw: Any) -> Operand:
    return _pad(e, a, pad_width)
