"""Export functions of diagonals, traces and triangles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...onnx.standard import Emitter, NotStandard, Operand, standard


@standard(np.trace)
def _trace(e: Emitter, a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Operand:
    diagonal = _diagonal(e, a, offset, axis1, axis2)
    if diagonal.dtype.kind not in "f" and diagonal.dtype != np.int64:
        raise NotStandard(f"trace of {diagonal.dtype}")
    return e.add("ReduceSum", diagonal, keepdims=0)


@standard(np.diagonal)
def _diagonal(e: Emitter, a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Operand:
    x = e.operand(a)
    if x.ndim != 2 or (axis1, axis2) != (0, 1) or not isinstance(offset, int):
        raise NotStandard("a diagonal of an array that is no matrix")
    rows, columns = (e.shape(x, k) for k in (0, 1))
    down, right = max(-offset, 0), max(offset, 0)
    count = e.add("Min", e.add("Sub", rows, e.ints([down])), e.add("Sub", columns, e.ints([right])))
    count = e.add("Squeeze", e.add("Max", count, e.ints([0])), e.ints([0]))
    numbers = e.add("Range", e.constant(0, np.int64), count, e.constant(1, np.int64))
    numbers = e.add("Unsqueeze", numbers, e.ints([1]))
    places = e.add("Concat", e.add("Add", numbers, e.ints([down])), e.add("Add", numbers, e.ints([right])), axis=1)
    return e.add("GatherND", x, places).with_rank(1)


def _triangle(upper: int) -> Callable[..., Operand]:
    def rule(e: Emitter, m: Any, k: Any = 0) -> Operand:
        x = e.operand(m)
        if x.ndim < 2 or x.dtype is None or x.dtype.kind not in "biuf":
            raise NotStandard("a triangle of an array that is no matrix")
        return e.add("Trilu", x, e.constant(int(k), np.int64), upper=upper)

    return rule


standard(np.triu)(_triangle(1))
standard(np.tril)(_triangle(0))
