"""Export means with weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...onnx.standard import Emitter, NotStandard, Operand, standard
from ...onnx.standard.ufuncs import same_dtype
from ..reductions.onnx import mean, reduced


@standard(np.average)
def _average(
    e: Emitter, a: Any, axis: Any = None, weights: Any = None, returned: Any = False, *, keepdims: Any = False
) -> Operand:
    if returned or keepdims:
        raise NotStandard("an average with returned= or keepdims=")
    if weights is None:
        return mean(e, a, axis)
    x, w = same_dtype(e, (e.operand(a), e.operand(weights)))
    if x.dtype.kind != "f" or x.shape is None or x.shape != w.shape:
        raise NotStandard("weights of another shape")
    total = reduced(e, "ReduceSum", e.add("Mul", x, w).like(x), axis, keepdims)
    return e.add("Div", total, reduced(e, "ReduceSum", w, axis, keepdims))
