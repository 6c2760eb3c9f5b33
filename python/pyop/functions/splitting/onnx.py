"""Export functions that split an array."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...onnx.standard import Emitter, NotStandard, Operand, standard
from ..shape import axis_of


@standard(np.array_split)
def _array_split(e: Emitter, ary: Any, indices_or_sections: Any, axis: Any = 0) -> list[Operand]:
    return _split(e, ary, None, axis)


@standard(np.hsplit)
def _hsplit(e: Emitter, ary: Any, indices_or_sections: Any) -> list[Operand]:
    return _split(e, ary, indices_or_sections, int(e.operand(ary).ndim > 1))


@standard(np.split, np.vsplit)
def _split(e: Emitter, ary: Any, indices_or_sections: Any, axis: Any = 0) -> list[Operand]:
    x = e.operand(ary)
    axis = axis_of(axis, x.ndim)
    count = len(e.outputs)
    size = None if x.shape is None else x.shape[axis]
    sizes = [None if out.shape is None else out.shape[axis] for out in e.outputs]
    if all(isinstance(s, int) for s in sizes) and isinstance(size, int) and count:
        return e.add_many("Split", count, x, e.ints(sizes), axis=axis)
    if isinstance(indices_or_sections, int) and count == indices_or_sections:
        whole = e.shape(x, axis)
        part = e.add("Div", whole, e.ints([count]))
        return e.add_many("Split", count, x, e.add("Concat", *[part] * count, axis=0), axis=axis)
    raise NotStandard("a split at places that are not known")


@standard(getattr(np, "unstack", None))
def _unstack(e: Emitter, x: Any, /, *, axis: Any = 0) -> list[Operand]:
    x = e.operand(x)
    axis, count = axis_of(axis, x.ndim), len(e.outputs)
    if x.shape is None or x.shape[axis] != count or not count:
        raise NotStandard("an axis of a size that is not known")
    return [e.add("Gather", x, e.constant(k, np.int64), axis=axis) for k in range(count)]
