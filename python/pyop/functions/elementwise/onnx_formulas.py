"""Export functions without an operator in ONNX, or in onnxruntime for float64, by formulas of other operators.

Each is as accurate as NumPy's to a few units in the last place, at both ends of the range too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...onnx.standard import Emitter, NotStandard, Operand, standard
from ...onnx.standard.formula import Formula
from ...onnx.standard.ufuncs import emit_ufunc, loop_dtypes, with_signature

__all__ = ["BY_FORMULA"]


# --- exponentials and logarithms


def _log1p(x: Any) -> Any:
    # What is lost by adding one is lost in the quotient too, and the two errors cancel (Kahan).
    u = 1 + x
    return (u.is_(1) | u.is_inf(negative=False)).choose(x, u.log() * (x / (u - 1)))


def _expm1(x: Any) -> Any:
    u = x.exp()
    quotient = (u - 1) * (x / u.log())
    return u.is_(1).choose(x, (u.is_inf() | u.is_(0)).choose(u - 1, quotient))


def _exp2(x: Any) -> Any:
    return Formula(x.e, x.e.constant(2, x.x.dtype)).power(x)


def _logaddexp(x: Any, y: Any) -> Any:
    # Equal infinities have no difference.
    return x.is_(y).choose(x + math.log(2), x.larger(y) + _log1p((-abs(x - y)).exp()))


def _logaddexp2(x: Any, y: Any) -> Any:
    return x.is_(y).choose(x + 1, x.larger(y) + _log1p(_exp2(-abs(x - y))) / math.log(2))


def _cbrt(x: Any) -> Any:
    root = abs(x).power(1 / 3)
    # One step of Newton, where that is possible: a third is no number of the computer's.
    better = root - (root - abs(x) / (root * root)) / 3
    return (root.is_(0) | root.is_inf()).choose(root, better).signed(x)


def _hypot(x: Any, y: Any) -> Any:
    a, b = abs(x), abs(y)
    large, small = a.larger(b), a.smaller(b)
    ratio = small / large
    length = large.is_(0).choose(large, large * (1 + ratio * ratio).sqrt())
    return (a.is_inf() | b.is_inf()).choose(np.inf, length)


# --- angles


def _small_arctan(x: Any) -> Any:
    """Return arctan of numbers from 0 to 1, in float64: that of float32 with a correction."""
    first = x.to(np.float32).arctan().to(np.float64)
    return first + (x * first.cos() - first.sin()) / (1 + x * x).sqrt()


def _arctan(x: Any) -> Any:
    a = abs(x)
    large = a > 1
    angle = _small_arctan(large.choose(1 / a, a))
    return large.choose(math.pi / 2 - angle, angle).signed(x)


def _unsigned_arctan(y: Any, x: Any) -> Any:
    """Return the angle of two numbers that are not negative."""
    large, small = x.larger(y), x.smaller(y)
    ratio = large.is_(0).choose(large, x.is_(y).choose(1.0, small / large))
    angle = _small_arctan(ratio) if x.x.dtype == np.float64 else ratio.arctan()
    return (y > x).choose(math.pi / 2 - angle, angle)


def _arctan2(y: Any, x: Any) -> Any:
    angle = _unsigned_arctan(abs(y), abs(x))
    signed = x.negative().choose(math.pi - angle, angle).signed(y)
    return (x.is_nan() | y.is_nan()).choose(np.nan, signed)


# --- hyperbolic functions


def _cosh(x: Any) -> Any:
    half = (abs(x) * 0.5).exp()
    return 0.5 * half * half + 0.5 / half / half


def _sinh(x: Any) -> Any:
    a = abs(x)
    m = _expm1(a)
    half = (a * 0.5).exp()
    return (a > 20).choose(0.5 * half * half, 0.5 * (m + m / (m + 1))).signed(x)


_HUGE = 1e100


def _arcsinh(x: Any) -> Any:
    a = abs(x)
    square = a * a
    small = _log1p(a + square / (1 + (square + 1).sqrt()))
    return (a > _HUGE).choose(a.log() + math.log(2), small).signed(x)


def _arccosh(x: Any) -> Any:
    t = x - 1
    result = (x > _HUGE).choose(x.log() + math.log(2), _log1p(t + (2 * t + t * t).sqrt()))
    return (x < 1).choose(np.nan, result)


def _arctanh(x: Any) -> Any:
    a = abs(x)
    return (0.5 * _log1p(2 * a / (1 - a))).signed(x)


_FORMULAS: dict[Any, Callable[..., Any]] = {
    np.log1p: _log1p,
    np.expm1: _expm1,
    np.log2: lambda x: x.log() / math.log(2),
    np.log10: lambda x: x.log() / math.log(10),
    np.exp2: _exp2,
    np.logaddexp: _logaddexp,
    np.logaddexp2: _logaddexp2,
    np.cbrt: _cbrt,
    np.hypot: _hypot,
    np.arctan2: _arctan2,
    np.degrees: lambda x: x * (180 / math.pi),
    np.rad2deg: lambda x: x * (180 / math.pi),
    np.radians: lambda x: x * (math.pi / 180),
    np.deg2rad: lambda x: x * (math.pi / 180),
    np.trunc: lambda x: (x < 0).choose(x.ceil(), x.floor()),
    np.copysign: lambda x, y: abs(x).signed(y),
    np.heaviside: lambda x, y: x.is_nan().choose(x, x.is_(0).choose(y, (x > 0).to(x.x.dtype))),
    np.fmax: lambda x, y: x.is_nan().choose(y, y.is_nan().choose(x, x.larger(y))),
    np.fmin: lambda x, y: x.is_nan().choose(y, y.is_nan().choose(x, x.smaller(y))),
    np.float_power: lambda x, y: x.power(y),
}
# For float64 alone: operators that onnxruntime lacks there serve the other dtypes.
_OF_FLOAT64: dict[Any, Callable[..., Any]] = {
    np.tan: lambda x: x.sin() / x.cos(),
    np.arctan: _arctan,
    np.arcsin: lambda x: _arctan(x / ((1 - x) * (1 + x)).sqrt()),
    np.arccos: lambda x: 2 * _arctan(((1 - x) / (1 + x)).sqrt()),
    np.cosh: _cosh,
    np.sinh: _sinh,
    np.arcsinh: _arcsinh,
    np.arccosh: _arccosh,
    np.arctanh: _arctanh,
}
BY_FORMULA: set[np.ufunc] = {*_FORMULAS, *_OF_FLOAT64}


def _by_formula(ufunc: np.ufunc, make: Callable[..., Any]) -> Callable[..., Operand]:
    def do(e: Emitter, *args: Any) -> Operand:
        loop = loop_dtypes(ufunc, args)
        if ufunc in _OF_FLOAT64 and loop[0] != np.float64:
            return emit_ufunc(e, ufunc, args)
        if loop[0].kind != "f" or loop[0].itemsize > 8:
            raise NotStandard(f"no operator of ONNX does {ufunc.__name__} on {loop[0]}")
        # Formulas need more room than the numbers of two bytes have.
        dtype = np.dtype(np.float32) if loop[0] == np.float16 else loop[0]
        given = [Formula(e, e.cast(e.operand(x) if not np.isscalar(x) else e.constant(x, dtype), dtype)) for x in args]
        return e.cast(make(*given).x, loop[-1])

    return do


for _ufunc, _make in (*_FORMULAS.items(), *_OF_FLOAT64.items()):
    standard(_ufunc)(with_signature(_ufunc, _by_formula(_ufunc, _make)))


# --- functions that are no ufuncs


@standard(np.fix)
def _fix(e: Emitter, x: Any, /, out: None = None) -> Any:
    return _FORMULAS[np.trunc](Formula(e, e.of_kind(x, "f", "fix"))).x


@standard(np.sinc)
def _sinc(e: Emitter, x: Any, /) -> Any:
    angle = Formula(e, e.of_kind(x, "f", "sinc")) * math.pi
    return angle.is_(0).choose(1.0, angle.sin() / angle).x


@standard(np.nan_to_num)
def _nan_to_num(e: Emitter, x: Any, copy: Any = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    elements = Formula(e, e.of_kind(x, "f", "nan_to_num"))
    limits = np.finfo(elements.x.dtype)
    if not all(bound is None or isinstance(bound, int | float) for bound in (nan, posinf, neginf)):
        raise NotStandard("bounds that are arrays")
    plus = elements.is_inf(negative=False).choose(float(limits.max) if posinf is None else posinf, elements)
    both = plus.do("IsInf", dtype=bool, detect_positive=0).choose(float(limits.min) if neginf is None else neginf, plus)
    return elements.is_nan().choose(nan, both).x
