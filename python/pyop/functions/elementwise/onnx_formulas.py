"""Functions that ONNX has no operator for, or onnxruntime none for float64, by formulas of those that there are.

Each is as accurate as NumPy's to a few units in the last place, at both ends of the range too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...onnx.standard import standard
from ...onnx.standard.emitter import Emitter, NotStandard, Operand
from ...onnx.standard.formula import Formula
from ...onnx.standard.ufuncs import emit_ufunc, loop_dtypes

Maker = Callable[..., Formula]

BY_FORMULA: set[np.ufunc] = (
    set()
)  # those of them, too, that have an operator in `SIMPLE`, which runtimes lack for some dtype


def _formula(*ufuncs: Any, only: str = "") -> Callable[[Maker], Maker]:
    """Register a formula for real numbers; with `only`, for that dtype, where an operator serves the others."""

    def register(make: Maker) -> Maker:
        for ufunc in ufuncs:
            if ufunc is not None:
                _register(ufunc, make, only)
        return make

    return register


def _register(ufunc: np.ufunc, make: Maker, only: str) -> None:
    def do(e: Emitter, *args: Any) -> Operand:
        loop = loop_dtypes(ufunc, args)
        if only and loop[0] != only:
            return emit_ufunc(e, ufunc, args)
        if loop[0].kind != "f" or loop[0].itemsize > 8:
            raise NotStandard(f"no operator of ONNX does {ufunc.__name__} on {loop[0]}")
        # Formulas need more room than the numbers of two bytes have.
        dtype = np.dtype(np.float32) if loop[0] == np.float16 else loop[0]
        given = [Formula(e, e.cast(e.operand(x) if not np.isscalar(x) else e.constant(x, dtype), dtype)) for x in args]
        return e.cast(make(*given).x, loop[-1])

    def unary(e: Emitter, x: Any, /) -> Operand:
        return do(e, x)

    def binary(e: Emitter, x: Any, y: Any, /) -> Operand:
        return do(e, x, y)

    standard(ufunc)(unary if ufunc.nin == 1 else binary)
    BY_FORMULA.add(ufunc)


# --- exponentials and logarithms


@_formula(np.log1p)
def _log1p(x: Formula) -> Formula:
    # What is lost by adding one is lost in the quotient too, and the two errors cancel (Kahan).
    u = 1 + x
    return (u.is_(1) | u.is_inf(negative=False)).choose(x, u.log() * (x / (u - 1)))


@_formula(np.expm1)
def _expm1(x: Formula) -> Formula:
    u = x.exp()
    found = (u - 1) * (x / u.log())
    return u.is_(1).choose(x, (u.is_inf() | u.is_(0)).choose(u - 1, found))


@_formula(np.log2)
def _log2(x: Formula) -> Formula:
    return x.log() / math.log(2)


@_formula(np.log10)
def _log10(x: Formula) -> Formula:
    return x.log() / math.log(10)


@_formula(np.exp2)
def _exp2(x: Formula) -> Formula:
    return Formula(x.e, x.e.constant(2, x.x.dtype)).power(x)


@_formula(np.logaddexp)
def _logaddexp(x: Formula, y: Formula) -> Formula:
    # Equal infinities have no difference.
    return x.is_(y).choose(x + math.log(2), x.larger(y) + _log1p((-abs(x - y)).exp()))


@_formula(np.logaddexp2)
def _logaddexp2(x: Formula, y: Formula) -> Formula:
    return x.is_(y).choose(x + 1, x.larger(y) + _log1p(_exp2(-abs(x - y))) / math.log(2))


@_formula(np.cbrt)
def _cbrt(x: Formula) -> Formula:
    root = abs(x).power(1 / 3)
    # One step of Newton, where that is possible: a third is no number of the computer's.
    better = root - (root - abs(x) / (root * root)) / 3
    return (root.is_(0) | root.is_inf()).choose(root, better).signed(x)


@_formula(np.hypot)
def _hypot(x: Formula, y: Formula) -> Formula:
    a, b = abs(x), abs(y)
    large, small = a.larger(b), a.smaller(b)
    ratio = small / large
    found = large.is_(0).choose(large, large * (1 + ratio * ratio).sqrt())
    return (a.is_inf() | b.is_inf()).choose(np.inf, found)


# --- angles


@_formula(np.tan, only="float64")
def _tan(x: Formula) -> Formula:
    return x.sin() / x.cos()


def _small_arctan(x: Formula) -> Formula:
    """Of numbers from 0 to 1, in float64: that of float32, and what it is off by."""
    first = x.to(np.float32).do("Atan").to(np.float64)
    return first + (x * first.cos() - first.sin()) / (1 + x * x).sqrt()


def _unsigned_arctan(y: Formula, x: Formula) -> Formula:
    """Return the angle of two numbers that are not negative."""
    large, small = x.larger(y), x.smaller(y)
    ratio = large.is_(0).choose(large, x.is_(y).choose(1.0, small / large))
    angle = _small_arctan(ratio) if x.x.dtype == np.float64 else ratio.do("Atan")
    return (y > x).choose(math.pi / 2 - angle, angle)


@_formula(np.arctan, only="float64")
def _arctan(x: Formula) -> Formula:
    a = abs(x)
    large = a > 1
    angle = _small_arctan(large.choose(1 / a, a))
    return large.choose(math.pi / 2 - angle, angle).signed(x)


@_formula(np.arctan2)
def _arctan2(y: Formula, x: Formula) -> Formula:
    angle = _unsigned_arctan(abs(y), abs(x))
    found = x.negative().choose(math.pi - angle, angle).signed(y)
    return (x.is_nan() | y.is_nan()).choose(np.nan, found)


@_formula(np.arcsin, only="float64")
def _arcsin(x: Formula) -> Formula:
    return _arctan(x / ((1 - x) * (1 + x)).sqrt())


@_formula(np.arccos, only="float64")
def _arccos(x: Formula) -> Formula:
    return 2 * _arctan(((1 - x) / (1 + x)).sqrt())


@_formula(np.degrees, np.rad2deg)
def _degrees(x: Formula) -> Formula:
    return x * (180 / math.pi)


@_formula(np.radians, np.deg2rad)
def _radians(x: Formula) -> Formula:
    return x * (math.pi / 180)


# --- hyperbolic functions


@_formula(np.cosh, only="float64")
def _cosh(x: Formula) -> Formula:
    half = (abs(x) * 0.5).exp()
    return 0.5 * half * half + 0.5 / half / half


@_formula(np.sinh, only="float64")
def _sinh(x: Formula) -> Formula:
    a = abs(x)
    m = _expm1(a)
    half = (a * 0.5).exp()
    return (a > 20).choose(0.5 * half * half, 0.5 * (m + m / (m + 1))).signed(x)


_HUGE = 1e100


@_formula(np.arcsinh, only="float64")
def _arcsinh(x: Formula) -> Formula:
    a = abs(x)
    square = a * a
    small = _log1p(a + square / (1 + (square + 1).sqrt()))
    return (a > _HUGE).choose(a.log() + math.log(2), small).signed(x)


@_formula(np.arccosh, only="float64")
def _arccosh(x: Formula) -> Formula:
    t = x - 1
    found = (x > _HUGE).choose(x.log() + math.log(2), _log1p(t + (2 * t + t * t).sqrt()))
    return (x < 1).choose(np.nan, found)


@_formula(np.arctanh, only="float64")
def _arctanh(x: Formula) -> Formula:
    a = abs(x)
    return (0.5 * _log1p(2 * a / (1 - a))).signed(x)


# --- signs and parts of numbers


@_formula(np.trunc)
def _trunc(x: Formula) -> Formula:
    return (x < 0).choose(x.ceil(), x.floor())


standard(np.fix)(lambda e, x, /, out=None: _whole(e, x))


def _whole(e: Emitter, x: Any) -> Operand:
    x = e.operand(x)
    if x.dtype is None or x.dtype.kind != "f":
        raise NotStandard(f"fix of {x.dtype}")
    return _trunc(Formula(e, x)).x


@_formula(np.copysign)
def _copysign(x: Formula, y: Formula) -> Formula:
    return abs(x).signed(y)


@_formula(np.heaviside)
def _heaviside(x: Formula, y: Formula) -> Formula:
    return x.is_nan().choose(x, x.is_(0).choose(y, (x > 0).to(x.x.dtype)))


@_formula(np.fmax)
def _fmax(x: Formula, y: Formula) -> Formula:
    return x.is_nan().choose(y, y.is_nan().choose(x, x.larger(y)))


@_formula(np.fmin)
def _fmin(x: Formula, y: Formula) -> Formula:
    return x.is_nan().choose(y, y.is_nan().choose(x, x.smaller(y)))


@standard(np.sinc)
def _sinc(e: Emitter, x: Any, /) -> Operand:
    angle = Formula(e, _real(e, x)) * math.pi
    found: Operand = angle.is_(0).choose(1.0, angle.sin() / angle).x
    return found


@standard(np.nan_to_num)
def _nan_to_num(
    e: Emitter, x: Any, copy: Any = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Operand:
    found = Formula(e, _real(e, x))
    limits = np.finfo(found.x.dtype)
    if not all(bound is None or isinstance(bound, int | float) for bound in (nan, posinf, neginf)):
        raise NotStandard("bounds that are arrays")
    plus = found.is_inf(negative=False).choose(float(limits.max) if posinf is None else posinf, found)
    both = plus.do("IsInf", dtype=bool, detect_positive=0).choose(float(limits.min) if neginf is None else neginf, plus)
    return found.is_nan().choose(nan, both).x


def _real(e: Emitter, x: Any) -> Operand:
    made = e.operand(x)
    if made.dtype is None or made.dtype.kind != "f":
        raise NotStandard(f"what is no array of real numbers: {made.dtype}")
    return made


@_formula(np.float_power)
def _float_power(x: Formula, y: Formula) -> Formula:
    return x.power(y)
