"""Export ufuncs that are operators of ONNX, and elementwise functions that are no ufuncs."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...onnx.standard import Emitter, NotStandard, Operand, standard
from ...onnx.standard.ufuncs import (
    LOGICAL,
    SIMPLE,
    converted,
    emit_ufunc,
    loop_dtypes,
    rule_of,
    same_dtype,
    with_signature,
)
from . import onnx_formulas, onnx_quotients  # noqa: F401  the rest of the family

for _ufunc in {*SIMPLE, *LOGICAL} - {np.matmul} - onnx_formulas.BY_FORMULA:
    standard(_ufunc)(rule_of(_ufunc))


standard(np.not_equal)(
    with_signature(np.not_equal, lambda e, x, y: e.add("Not", emit_ufunc(e, np.equal, (x, y)), dtype=bool))
)


@standard(operator.pow, np.power)
def _power(e: Emitter, x: Any, y: Any, /) -> Operand:
    (dtype, *_) = loop_dtypes(np.power, (x, y))
    if dtype.kind in "iu" and isinstance(y, int | np.integer) and 1 <= y <= 8:
        # The operator goes through float64; a product wraps around as NumPy's does.
        factor = power_of_x = converted(e, x, dtype)
        for _ in range(int(y) - 1):
            power_of_x = e.add("Mul", power_of_x, factor)
        return power_of_x
    return emit_ufunc(e, np.power, (x, y))


@standard(np.square)
def _square(e: Emitter, x: Any, /) -> Operand:
    (dtype, _) = loop_dtypes(np.square, (x,))
    if dtype.kind not in "fiu":
        raise NotStandard(f"no operator of ONNX does square on {dtype}")
    x = converted(e, x, dtype)
    return e.add("Mul", x, x)


@standard(np.isfinite)
def _isfinite(e: Emitter, x: Any, /) -> Operand:
    x = e.of_kind(x, "f", "isfinite")
    return e.add("Not", e.add("Or", e.add("IsNaN", x, dtype=bool), e.add("IsInf", x, dtype=bool)))


@standard(np.conjugate, np.real)
def _real(e: Emitter, x: Any, /) -> Operand:
    return e.of_kind(x, "biuf", "the real part")


@standard(np.clip)
def _clip(
    e: Emitter, a: Any, a_min: Any = None, a_max: Any = None, out: None = None, *, min: Any = None, max: Any = None
) -> Operand:
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    x = e.operand(a)
    for bound, ufunc in ((low, np.maximum), (high, np.minimum)):
        if bound is not None:
            x = emit_ufunc(e, ufunc, (x, bound))
    return x


@standard(np.round, np.around)
def _round(e: Emitter, a: Any, decimals: Any = 0) -> Operand:
    x = e.of_kind(a, "f", "rounding")
    if not isinstance(decimals, int) or abs(decimals) > 22:
        raise NotStandard(f"rounding to {decimals!r:.80} decimals")
    if decimals == 0:
        return e.add("Round", x)
    scale = e.constant(10.0 ** abs(decimals), x.dtype)
    there, back = ("Mul", "Div") if decimals > 0 else ("Div", "Mul")
    return e.add(back, e.add("Round", e.add(there, x, scale)), scale)


def _outer_of(ufunc: np.ufunc) -> Any:
    def outer(e: Emitter, A: Any, B: Any, /) -> Operand:
        x, y = e.operand(A), e.operand(B)
        if y.ndim:
            x = e.add("Unsqueeze", x, e.ints([x.ndim + k for k in range(y.ndim)]))
        return emit_ufunc(e, ufunc, (x, y))

    return outer


for _ufunc in (np.add, np.subtract, np.multiply, np.divide, np.maximum, np.minimum, np.less, np.greater, np.equal):
    standard(_ufunc.outer)(_outer_of(_ufunc))


@standard(np.isclose)
def _isclose(e: Emitter, a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: Any = False) -> Operand:
    x, y = same_dtype(e, (a, b))
    if x.dtype.kind != "f" or equal_nan or not all(isinstance(t, int | float) for t in (rtol, atol)):
        raise NotStandard("isclose of arrays that are not float, or with equal_nan")
    bound = e.add("Add", e.constant(atol, x.dtype), e.add("Mul", e.constant(rtol, x.dtype), e.add("Abs", y)))
    near = e.add("LessOrEqual", e.add("Abs", e.add("Sub", x, y)), bound, dtype=bool)
    both = e.add("And", near, _isfinite(e, y))
    return e.add("Or", both, e.add("Equal", x, y, dtype=bool))
