"""Differentiate ufuncs, by what a tangent `t` of each argument becomes, and other elementwise functions."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...gradients import table
from ...gradients.rule import PerArgument, derivatives_of, elementwise, linear, nondifferentiable, structural
from ...gradients.unbroadcast import broadcast_like, conj, is_complex, number_of, unbroadcast

LN2 = float(np.log(2.0))
LN10 = float(np.log(10.0))
_ufunc: Any


def _share(x: Any, y: Any, ans: Any) -> Any:
    """Return the part of a change of `x` that the larger (or smaller) of `x` and `y` follows.

    It is half of it where they are equal.
    """
    return np.where(x == y, 0.5, x == ans)


def _power_x(t: Any, ans: Any, x: Any, y: Any) -> Any:
    number = number_of(y)
    if number is not None:
        return None if number == 0 else t if number == 1 else t * (2 * x) if number == 2 else t * (y * x ** (y - 1))
    return t * (y * np.power(x, np.where(y == 0, 1, y - 1)))


def _power_y(t: Any, ans: Any, x: Any, y: Any) -> Any:
    return t * (np.log(np.where(x == 0, 1, x)) * ans)


def _turn(t: Any, ans: Any, x: Any) -> Any:
    """Differentiate the sign: that of a complex number is its direction, which turns; that of a real one jumps."""
    if is_complex(x) is False:
        return None
    size = np.absolute(x)
    return (t - ans * np.real(conj(ans) * t)) / np.where(size == 0, np.inf, size)


# fmt: off
elementwise(np.positive, 1)
elementwise(np.negative, -1)
elementwise(np.add, 1, 1)
elementwise(np.subtract, 1, -1)
elementwise(np.multiply, lambda t, ans, x, y: t * y, lambda t, ans, x, y: t * x)
elementwise(np.divide, lambda t, ans, x, y: t / y, lambda t, ans, x, y: -t * ans / y)
elementwise(np.power, _power_x, _power_y)
elementwise(np.float_power, _power_x, _power_y)
elementwise(np.reciprocal, lambda t, ans, x: -t * ans * ans)
elementwise(np.square, lambda t, ans, x: t * (2 * x))
elementwise(np.sqrt, lambda t, ans, x: 0.5 * t / ans)
elementwise(np.cbrt, lambda t, ans, x: t / (3 * ans * ans))
elementwise(np.exp, lambda t, ans, x: t * ans)
elementwise(np.exp2, lambda t, ans, x: t * (LN2 * ans))
elementwise(np.expm1, lambda t, ans, x: t * (ans + 1))
elementwise(np.log, lambda t, ans, x: t / x)
elementwise(np.log2, lambda t, ans, x: t / (LN2 * x))
elementwise(np.log10, lambda t, ans, x: t / (LN10 * x))
elementwise(np.log1p, lambda t, ans, x: t / (x + 1))
elementwise(np.logaddexp, lambda t, ans, x, y: t * np.exp(x - ans), lambda t, ans, x, y: t * np.exp(y - ans))
elementwise(np.logaddexp2, lambda t, ans, x, y: t * np.exp2(x - ans), lambda t, ans, x, y: t * np.exp2(y - ans))
elementwise(np.sin, lambda t, ans, x: t * np.cos(x))
elementwise(np.cos, lambda t, ans, x: -t * np.sin(x))
elementwise(np.tan, lambda t, ans, x: t * (1 + ans * ans))
elementwise(np.arcsin, lambda t, ans, x: t / np.sqrt(1 - x * x))
elementwise(np.arccos, lambda t, ans, x: -t / np.sqrt(1 - x * x))
elementwise(np.arctan, lambda t, ans, x: t / (1 + x * x))
elementwise(np.sinh, lambda t, ans, x: t * np.cosh(x))
elementwise(np.cosh, lambda t, ans, x: t * np.sinh(x))
elementwise(np.tanh, lambda t, ans, x: t * (1 - ans * ans))
elementwise(np.arcsinh, lambda t, ans, x: t / np.sqrt(x * x + 1))
elementwise(np.arccosh, lambda t, ans, x: t / (np.sqrt(x - 1) * np.sqrt(x + 1)))
elementwise(np.arctanh, lambda t, ans, x: t / (1 - x * x))
elementwise(np.arctan2, lambda t, ans, y, x: t * x / (x * x + y * y), lambda t, ans, y, x: -t * y / (x * x + y * y))
elementwise(np.hypot, lambda t, ans, x, y: t * x / ans, lambda t, ans, x, y: t * y / ans)
for _ufunc, _factor in ((np.degrees, 180 / np.pi), (np.rad2deg, 180 / np.pi), (np.radians, np.pi / 180),
                        (np.deg2rad, np.pi / 180)):
    elementwise(_ufunc, float(_factor))
elementwise(np.fabs, lambda t, ans, x: t * np.sign(x))
for _ufunc in (np.maximum, np.minimum, np.fmax, np.fmin):
    elementwise(_ufunc, lambda t, ans, x, y: t * _share(x, y, ans), lambda t, ans, x, y: t * _share(y, x, ans))
elementwise(np.copysign, lambda t, ans, x, y: t * (np.copysign(1.0, x) * np.copysign(1.0, y)), None)
elementwise(np.fmod, 1, lambda t, ans, x, y: -t * np.trunc(x / y))
elementwise(np.remainder, 1, lambda t, ans, x, y: -t * np.floor(x / y))
elementwise(np.ldexp, lambda t, ans, x, i: t * np.ldexp(1.0, i), None)
elementwise(np.nextafter, 1, None)
elementwise(np.heaviside, None, lambda t, ans, x, h: t * (x == 0))
# Not holomorphic: with a vjp and a jvp of their own.
structural(np.absolute, (lambda ct, ans, x: ct * np.sign(x),),
           (lambda t, ans, x: t * np.sign(x) if is_complex(x) is False else np.real(conj(np.sign(x)) * t),), ("x",))
structural(np.sign, (lambda ct, ans, x: _turn(ct, ans, x),), (_turn,), ("x",))
structural(np.conjugate, (lambda ct, ans, x: conj(ct),), (lambda t, ans, x: conj(t),), ("x",))
# More than one result.
structural(np.modf, (lambda ct, ans, x: ct[0],), (lambda t, ans, x: (t, None),), ("x",))
structural(np.frexp, (lambda ct, ans, x: None if ct[0] is None else np.ldexp(ct[0], -ans[1]),),
           (lambda t, ans, x: (np.ldexp(t, -ans[1]), None),), ("x",))
structural(np.divmod, (lambda ct, ans, x, y: unbroadcast(ct[1], x, ans[1]),
                       lambda ct, ans, x, y: None if ct[1] is None else unbroadcast(-ct[1] * ans[0], y, ans[1])),
           (lambda t, ans, x, y: (None, broadcast_like(t, ans[1])), lambda t, ans, x, y: (None, -t * ans[0])),
           ("x1", "x2"))
nondifferentiable(np.floor, np.ceil, np.rint, np.trunc, np.floor_divide, np.spacing, np.signbit,
     np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal,
     np.isfinite, np.isinf, np.isnan, np.isnat,
     np.logical_and, np.logical_or, np.logical_not, np.logical_xor,
     np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.invert, np.left_shift, np.right_shift, np.gcd, np.lcm,
     np.round, np.around, np.fix, np.iscomplex, np.isreal, np.isposinf, np.isneginf,
     np.isclose, np.allclose, np.array_equal, np.array_equiv)
# fmt: on
if hasattr(np, "bitwise_count"):
    nondifferentiable(np.bitwise_count)
# What an operator adds to a graph where the dtypes are not known.
for _operator, _ufunc in (
    *((operator.add, np.add), (operator.sub, np.subtract), (operator.mul, np.multiply)),
    *((operator.truediv, np.divide), (operator.pow, np.power), (operator.mod, np.remainder)),
    *((operator.neg, np.negative), (operator.pos, np.positive)),
):
    elementwise(_operator, *derivatives_of(_ufunc))
structural(
    operator.abs, (lambda ct, ans, x: ct * np.sign(x),), (lambda t, ans, x: np.real(conj(np.sign(x)) * t),), ("x",)
)
nondifferentiable(operator.floordiv, operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)


def _degrees(deg: Any) -> float:
    return 180 / np.pi if deg else 1.0


def _real(x: Any) -> Any:
    return x if is_complex(x) is False else np.real(x)


def _clip(ct: Any, ans: Any, a: Any, *bounds: Any, **kw: Any) -> Any:
    return ct * (a == ans)


def _bounds(a_min: Any = None, a_max: Any = None, out: Any = None, *, min: Any = None, max: Any = None,
            **kw: Any) -> tuple[Any, Any]:  # fmt: skip
    return min if _absent(a_min) else a_min, max if _absent(a_max) else a_max


def _lower(t: Any, ans: Any, a: Any, *args: Any, **kw: Any) -> Any:
    lower, upper = _bounds(*args, **kw)
    # Where the bounds are equal the upper one is taken, as minimum(maximum(a, lower), upper) does.
    t = t if _absent(upper) else t * (ans != upper)
    return t * np.logical_and(ans == lower, a != ans)


def _upper(t: Any, ans: Any, a: Any, *args: Any, **kw: Any) -> Any:
    return t * np.logical_and(ans == _bounds(*args, **kw)[1], a != ans)


def _absent(x: Any) -> bool:
    return x is None or x is np._NoValue


def _sinc(t: Any, ans: Any, x: Any) -> Any:
    # Beside zero what is left of the difference is rounding: there by its series, which has derivatives at zero too.
    beside = np.absolute(x) < 0.05
    square = np.pi**2 * x * x
    series = -(np.pi**2) * x * (1 / 3 - square * (1 / 30 - square * (1 / 840 - square / 45360)))
    away = np.where(beside, 1, x)
    return t * np.where(beside, series, (np.cos(np.pi * x) - ans) / away)


structural(np.real, (lambda ct, ans, val: ct,), (lambda t, ans, val: np.real(t),), ("val",))
structural(np.imag, (lambda ct, ans, val: 1j * ct,), (lambda t, ans, val: np.imag(t),), ("val",))
structural(
    np.angle,
    (lambda ct, ans, z, deg=False: 1j * (ct * _degrees(deg)) * z / _real(conj(z) * z),),
    (lambda t, ans, z, deg=False: np.imag(conj(z) * t) * _degrees(deg) / _real(conj(z) * z),),
    ("z", "deg"),
)
linear(np.real_if_close, lambda ct, ans, a, tol=100: ct)
_BY_ARGUMENT = (_clip, _lower, _upper, None, _lower, _upper)
_CLIPPED = ("a", "a_min", "a_max", "out", "min", "max")
table.add(PerArgument(np.clip, _BY_ARGUMENT, _BY_ARGUMENT, _CLIPPED, unbroadcast))
structural(
    np.nan_to_num,
    (lambda ct, ans, x, *args, **kw: np.where(np.isfinite(x), ct, 0),),
    (lambda t, ans, x, *args, **kw: np.where(np.isfinite(x), t, 0),),
    ("x",),
)
structural(np.sinc, (lambda ct, ans, x: conj(_sinc(conj(ct), ans, x)),), (_sinc,), ("x",))
structural(np.unwrap, (lambda ct, ans, p, *args, **kw: ct,), (lambda t, ans, p, *args, **kw: t,), ("p",))
