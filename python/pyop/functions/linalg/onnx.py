"""Export norms."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...onnx.standard import Emitter, NotStandard, Operand, standard
from ..reductions.onnx import reduced
from ..shape import axes_of


@standard(np.linalg.norm)
def _norm(e: Emitter, x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Operand:
    a = _real(e, x)
    axes = list(axes_of(axis, a.ndim))
    if ord is None or (ord == "fro" and len(axes) == 2):
        return reduced(e, "ReduceL2", a, None if axis is None else tuple(axes), keepdims)
    if isinstance(ord, str):
        raise NotStandard(f"the norm {ord!r:.40}")
    if len(axes) == 1:
        return _vector_norm(e, a, ord, axes[0], keepdims)
    if len(axes) != 2 or abs(ord) not in (1, np.inf):
        raise NotStandard(f"the norm {ord!r:.40} of {len(axes)} axes")
    first, last = axes if abs(ord) == 1 else axes[::-1]
    sums = reduced(e, "ReduceL1", a, first, True).like(a)
    extremes = reduced(e, "ReduceMax" if ord > 0 else "ReduceMin", sums, last, True)
    return extremes if keepdims else e.add("Squeeze", extremes, e.ints(axes))


@standard(np.linalg.vector_norm)
def _flat_norm(e: Emitter, x: Any, /, *, axis: Any = None, keepdims: Any = False, ord: Any = 2) -> Operand:
    a = _real(e, x)
    if axis is None and not keepdims:
        a, axis = e.add("Reshape", a, e.ints([-1])).with_rank(1), 0
    if axis is None or isinstance(axis, tuple):
        raise NotStandard("a norm over several axes")
    return _vector_norm(e, a, ord, axis, keepdims)


def _real(e: Emitter, x: Any) -> Operand:
    a = e.of_kind(x, "biuf", "a norm")
    return a if a.dtype.kind == "f" else e.cast(a, np.float64)


def _vector_norm(e: Emitter, a: Operand, ord: Any, axis: Any, keepdims: Any) -> Operand:
    if ord is None or ord in (1, 2):
        return reduced(e, "ReduceL1" if ord == 1 else "ReduceL2", a, axis, keepdims)
    if not isinstance(ord, int | float):
        raise NotStandard(f"the norm {ord!r:.40}")
    sizes = e.add("Abs", a).like(a)
    if ord in (np.inf, -np.inf):
        return reduced(e, "ReduceMax" if ord > 0 else "ReduceMin", sizes, axis, keepdims)
    if ord == 0:
        raise NotStandard("the number of elements that are not zero as a norm")
    powers = e.add("Pow", sizes, e.constant(ord, a.dtype)).like(a)
    return e.add("Pow", reduced(e, "ReduceSum", powers, axis, keepdims), e.constant(1 / ord, a.dtype))
