"""Export functions that make arrays like others, copies, and conversions of dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import helper

from ...declare.dims import Dim
from ...onnx.elements import code_of
from ...onnx.standard import Emitter, NotStandard, Operand, standard
from ...onnx.standard.ufuncs import same_dtype, truth


@standard(np.ndarray.astype)
def _astype(
    e: Emitter, a: Any, dtype: Any, order: Any = "K", casting: Any = "unsafe", subok: Any = True, copy: Any = True
) -> Operand:
    x = e.operand(a)
    target = np.dtype(dtype)
    return truth(e, x) if target.kind == "b" else e.cast(x, dtype)


@standard(np.copy, np.ascontiguousarray)
def _copy(e: Emitter, a: Any, order: Any = "K", subok: Any = False) -> Operand:
    return e.operand(a)


def filling(dtype: np.dtype[Any], value: Any) -> Any:
    """Return the attribute of ConstantOfShape that says what it fills with."""
    return helper.make_tensor("value", code_of(dtype), [1], np.full(1, value, dtype))


def _filled(e: Emitter, a: Any, value: Any, dtype: Any, shape: Any) -> Operand:
    x = e.operand(a)
    kind = np.dtype(dtype) if dtype is not None else x.dtype
    if kind is None or kind.kind not in "biuf":
        raise NotStandard(f"an array of {kind}")
    if isinstance(value, Operand | Dim) or np.ndim(value):
        raise NotStandard("a fill value that is an array")
    sizes = e.shape(x) if shape is None else e.ints(shape)
    return e.add("ConstantOfShape", sizes, dtype=kind, value=filling(kind, value))


def _of_number(value: int) -> Callable[..., Operand]:
    def rule(e: Emitter, a: Any, dtype: Any = None, order: Any = "K", subok: Any = True, shape: Any = None) -> Operand:
        return _filled(e, a, value, dtype, shape)

    return rule


standard(np.zeros_like)(_of_number(0))
standard(np.ones_like)(_of_number(1))


@standard(np.full_like)
def _full_like(
    e: Emitter, a: Any, fill_value: Any, dtype: Any = None, order: Any = "K", subok: Any = True, shape: Any = None
) -> Operand:
    return _filled(e, a, fill_value, dtype, shape)


@standard(np.logspace)
def _logspace(e: Emitter, start: Any, stop: Any, num: Any = 50, endpoint: Any = True, base: Any = 10.0) -> Operand:
    if not isinstance(num, int) or not isinstance(base, int | float):
        raise NotStandard("a number of points, or a base, that is not known")
    low, high, radix = same_dtype(e, (start, stop, float(base)))
    steps = np.arange(num) / max(num - 1 if endpoint else num, 1)
    grid = e.constant(steps.reshape(num, *(1,) * max(low.ndim, high.ndim)), low.dtype)
    powers = e.add("Add", low, e.add("Mul", e.add("Sub", high, low), grid))
    return e.add("Pow", radix, powers, dtype=low.dtype)
