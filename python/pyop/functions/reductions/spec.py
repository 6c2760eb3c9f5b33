"""Infer reductions and running reductions: one value, or one running value, along axes.

Arguments that do not affect dtype and shape are `options`: NumPy checks the call before it asks for a rule.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...declare.spec import Spec
from .. import rule
from ..forms import each
from ..operand import BOOL, INTP, DType, Operand, one, operand, probe
from ..shape import add, axis_of, prod, reduced, replaced


def _dtype(func: Any, part: Operand, dtype: Any = None) -> DType | None:
    return probe(func, one(part), **({} if dtype is None else {"dtype": np.dtype(dtype)}))


@each(np.sum, np.prod, np.nansum, np.nanprod, np.mean, np.nanmean)
def _sum(
    func: Any, a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *rest: Any,
    **options: Any,
) -> Spec:  # fmt: skip
    part = operand(a)
    return Spec(_dtype(func, part, dtype), reduced(part.shape, axis, keepdims))


@each(np.std, np.var, np.nanstd, np.nanvar)
def _moment(
    func: Any, a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False,
    **options: Any,
) -> Spec:  # fmt: skip
    return _sum(func, a, axis, dtype, out, keepdims)


@each(np.max, np.min, np.amax, np.amin, np.nanmax, np.nanmin, np.ptp)
def _extreme(
    func: Any, a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True
) -> Spec:
    part = operand(a)
    # An extreme of nothing is refused, which is already sure when a size is the number zero.
    if initial is None and part.shape and isinstance(axis, (int, type(None))):
        sizes = part.shape if axis is None else (part.shape[axis_of(axis, len(part.shape))],)
        rest = reduced(part.shape, axis)
        if 0 in sizes and rest is not None and 0 not in rest:
            raise ValueError(f"zero-size array to reduction operation {func.__name__}, which has no identity")
    return Spec(_dtype(func, part), reduced(part.shape, axis, keepdims))


@rule("all", "any")
def _truth(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, **options: Any) -> Spec:
    part = operand(a)
    # Over objects, `and` and `or` hand back one of the operands.
    dtype = None if part.dtype is None or part.kind == "O" else BOOL
    return Spec(dtype, reduced(part.shape, axis, keepdims))


@rule("argmax", "argmin", "nanargmax", "nanargmin")
def _where_extreme(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Spec:
    part = operand(a)
    if part.shape is not None and axis is None and 0 in part.shape:
        raise ValueError("attempt to get argmax or argmin of an empty sequence")
    if axis is not None and part.shape == ():
        axis_of(axis, 1)
        return Spec(INTP, ())
    return Spec(INTP, reduced(part.shape, axis if axis is None else _single(axis), keepdims))


def _single(axis: Any) -> int:
    if isinstance(axis, (tuple, list)):
        raise TypeError(
            f"'{type(axis).__name__}' object cannot be interpreted as an integer: this function takes one axis"
        )
    return int(axis)


@rule(np.count_nonzero)
def _count_nonzero(a: Any, axis: Any = None, *, keepdims: Any = False) -> Spec:
    return Spec(INTP, reduced(operand(a).shape, axis, keepdims))


@each(np.cumsum, np.cumprod, np.nancumsum, np.nancumprod)
def _running(func: Any, a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Spec:
    part = operand(a)
    result = _dtype(func, part, dtype)
    if axis is None:
        return Spec(result, (None if part.shape is None else prod(part.shape),))
    if part.shape is not None:
        axis_of(axis, max(len(part.shape), 1))
    return Spec(result, (1,) if part.shape == () else part.shape)


@each("cumulative_sum", "cumulative_prod")  # NumPy 2.1
def _cumulative(
    func: Any, x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: Any = False
) -> Spec:
    part = operand(x)
    result = _dtype(func, part, dtype)
    if part.shape is None:
        return Spec(result, None)
    shape = part.shape or (1,)
    if axis is None:
        if len(shape) > 1:
            raise ValueError(f"{func.__name__}: for arrays of more than one dimension, axis= is required")
        axis = 0
    k = axis_of(axis, len(shape))
    return Spec(result, replaced(shape, k, add(shape[k], 1) if include_initial else shape[k]))
