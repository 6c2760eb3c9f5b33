"""Export functions that choose elements by conditions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...onnx.standard import Emitter, NotStandard, Operand, standard
from ...onnx.standard.ufuncs import same_dtype, truth
from ..indexing.onnx import nonzero


@standard(np.select)
def _select(e: Emitter, condlist: Any, choicelist: Any, default: Any = 0) -> Operand:
    if not all(isinstance(part, list | tuple) for part in (condlist, choicelist)):
        raise NotStandard("select of one array")
    *choices, chosen = same_dtype(e, (*choicelist, default))
    for condition, choice in reversed(list(zip(condlist, choices, strict=True))):
        chosen = e.add("Where", e.cast(e.operand(condition), bool), choice, chosen, dtype=choice.dtype)
    return chosen


@standard(np.compress, np.extract)
def _compress(e: Emitter, condition: Any, a: Any, axis: Any = None, out: None = None) -> Operand:
    x = e.operand(a)
    mask = truth(e, e.operand(condition))
    if axis is None:
        return e.add("Compress", e.add("Reshape", x, e.ints([-1])), e.add("Reshape", mask, e.ints([-1])), axis=0)
    return e.add("Compress", x, mask, axis=int(axis))


@standard(np.where)
def _where(e: Emitter, condition: Any, x: Any = None, y: Any = None, /) -> Any:
    if x is None and y is None:
        return nonzero(e, condition)
    x, y = same_dtype(e, (x, y))
    return e.add("Where", truth(e, e.operand(condition)), x, y, dtype=x.dtype)
