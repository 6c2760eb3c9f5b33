"""Export quotients that are whole numbers, and remainders."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...onnx.standard import Emitter, NotStandard, Operand, standard
from ...onnx.standard.formula import Formula
from ...onnx.standard.ufuncs import loop_dtypes, with_signature


def _given(e: Emitter, ufunc: np.ufunc, x: Any, y: Any) -> tuple[Operand, Operand]:
    loop = loop_dtypes(ufunc, (x, y))
    if loop[0].kind not in "iuf":
        raise NotStandard(f"quotients of {loop[0]}")
    return tuple(e.cast(e.operand(v), dtype) for v, dtype in zip((x, y), loop, strict=False))  # type: ignore[return-value]


def _of_integers(e: Emitter, x: Operand, y: Operand, divisor: Any) -> tuple[Operand, Operand]:
    """Return quotient and remainder of integers; both are zero for a divisor of zero.

    A zero divisor ends the process of a runtime, and so does the least integer divided by -1.
    """
    if isinstance(divisor, int | np.integer) and divisor not in (0, -1):
        rest = e.add("Mod", x, y)
        return e.add("Div", e.add("Sub", x, rest), y), rest
    one, zero = e.constant(1, y.dtype), e.constant(0, y.dtype)
    is_zero = e.add("Equal", y, zero, dtype=bool)
    safe = e.add("Where", is_zero, one, y, dtype=y.dtype)
    negated = None
    if y.dtype.kind == "i":
        negated = e.add("Equal", y, e.constant(-1, y.dtype), dtype=bool)
        safe = e.add("Where", negated, one, safe, dtype=y.dtype)
    rest = e.add("Mod", x, safe)
    quotient = e.add("Div", e.add("Sub", x, rest), safe)
    if negated is not None:
        quotient = e.add("Where", negated, e.add("Neg", x), quotient, dtype=y.dtype)
    return e.add("Where", is_zero, zero, quotient, dtype=y.dtype), rest


def _of_floats(a: Formula, b: Formula) -> tuple[Formula, Formula]:
    rest = a.remainder(b)
    off = ((rest < 0) & (b > 0)) | ((rest > 0) & (b < 0))
    rest = off.choose(rest + b, rest)
    quotient = (a - rest) / b
    down = quotient.floor()
    whole = (quotient - down > 0.5).choose(down + 1, down)
    return b.is_(0).choose(a / b, whole), rest.is_(0).choose(abs(rest).signed(b), rest)


def _divided(e: Emitter, ufunc: np.ufunc, x: Any, y: Any) -> tuple[Operand, Operand]:
    """Return the quotient rounded down, and the remainder, which has the sign of the divisor."""
    a, b = _given(e, ufunc, x, y)
    if a.dtype.kind in "iu":
        return _of_integers(e, a, b, y)
    quotient, rest = _of_floats(Formula(e, a), Formula(e, b))
    return quotient.x, rest.x


standard(np.floor_divide)(with_signature(np.floor_divide, lambda e, x, y: _divided(e, np.floor_divide, x, y)[0]))
standard(np.remainder)(with_signature(np.remainder, lambda e, x, y: _divided(e, np.remainder, x, y)[1]))
standard(np.divmod)(with_signature(np.divmod, lambda e, x, y: _divided(e, np.divmod, x, y)))


@standard(np.fmod)
def _fmod(e: Emitter, x: Any, y: Any, /) -> Operand:
    a, b = _given(e, np.fmod, x, y)
    if a.dtype.kind != "f":
        raise NotStandard("fmod of integers")
    return Formula(e, a).remainder(Formula(e, b)).x
