"""Real and imaginary parts, angles, conversions of dtype, and elementwise functions that are not ufuncs."""

from __future__ import annotations

from typing import Any

import numpy as np

from .rule import composite, linear, structural, zero
from .unbroadcast import conj, dtype_of, fit, is_complex


def _real(x: Any) -> Any:
    return x if is_complex(x) is False else np.real(x)


def _angle(ct: Any, ans: Any, z: Any, deg: Any = False) -> Any:
    return 1j * (ct * (180 / np.pi if deg else 1.0)) * z / _real(conj(z) * z)


def _angle_tangent(t: Any, ans: Any, z: Any, deg: Any = False) -> Any:
    return np.imag(conj(z) * t) * (180 / np.pi if deg else 1.0) / _real(conj(z) * z)


def _astype(t: Any, ans: Any, x: Any, dtype: Any, *args: Any, **kwargs: Any) -> Any:
    target = np.dtype(dtype)
    if target.kind not in "fc":
        return None
    return t.astype(target) if target.kind == "c" or is_complex(t) is False else np.real(t).astype(target)


def _clip(ct: Any, ans: Any, a: Any, *bounds: Any, **kw: Any) -> Any:
    return ct * (a == ans)


def _bound(t: Any, ans: Any, a: Any, bound: Any) -> Any:
    return t * np.logical_and(ans == bound, a != ans)


def _lower(t: Any, ans: Any, a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, *, min: Any = None,
           max: Any = None, **kw: Any) -> Any:  # fmt: skip
    upper = max if _absent(a_max) else a_max
    # Where the bounds are equal the upper one is taken, as minimum(maximum(a, lower), upper) does.
    t = t if _absent(upper) else t * (ans != upper)
    return _bound(t, ans, a, min if _absent(a_min) else a_min)


def _upper(t: Any, ans: Any, a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, *, min: Any = None,
           max: Any = None, **kw: Any) -> Any:  # fmt: skip
    return _bound(t, ans, a, max if _absent(a_max) else a_max)


def _given(args: Any, kw: Any, k: int) -> Any:
    return args[k] if k < len(args) else kw[("a", "a_min", "a_max")[k]]


def _absent(x: Any) -> bool:
    return x is None or x is np._NoValue


def _sinc(t: Any, ans: Any, x: Any) -> Any:
    # Beside zero what is left of the difference is rounding: there by its series, which has derivatives at zero too.
    beside = np.absolute(x) < 0.05
    square = np.pi**2 * x * x
    series = -(np.pi**2) * x * (1 / 3 - square * (1 / 30 - square * (1 / 840 - square / 45360)))
    away = np.where(beside, 1, x)
    return t * np.where(beside, series, (np.cos(np.pi * x) - ans) / away)


# fmt: off
structural(np.real, (lambda ct, ans, val: ct,), (lambda t, ans, val: np.real(t),), ("val",))
structural(np.imag, (lambda ct, ans, val: 1j * ct,), (lambda t, ans, val: np.imag(t),), ("val",))
structural(np.angle, (_angle,), (_angle_tangent,), ("z", "deg"))
linear(np.real_if_close, lambda ct, ans, a, tol=100: ct)
structural(np.ndarray.astype, (lambda ct, ans, x, *args, **kw: ct,), (_astype,), ("x", "dtype"))
if hasattr(np, "astype"):
    structural(np.astype, (lambda ct, ans, x, *args, **kw: ct,), (_astype,), ("x", "dtype"))
linear(np.copy, lambda ct, ans, a, *args, **kw: ct)

structural(np.clip, (lambda ct, ans, *args, **kw: fit(_clip(ct, ans, *args, **kw), args[0], ans),
                     lambda ct, ans, *args, **kw: fit(_lower(ct, ans, *args, **kw), _given(args, kw, 1), ans),
                     lambda ct, ans, *args, **kw: fit(_upper(ct, ans, *args, **kw), _given(args, kw, 2), ans), None,
                     lambda ct, ans, *args, **kw: fit(_lower(ct, ans, *args, **kw), kw["min"], ans),
                     lambda ct, ans, *args, **kw: fit(_upper(ct, ans, *args, **kw), kw["max"], ans)),
           (_clip, _lower, _upper, None, _lower, _upper), ("a", "a_min", "a_max", "out", "min", "max"))
structural(np.nan_to_num, (lambda ct, ans, x, *args, **kw: np.where(np.isfinite(x), ct, 0),),
           (lambda t, ans, x, *args, **kw: np.where(np.isfinite(x), t, 0),), ("x",))
structural(np.sinc, (lambda ct, ans, x: conj(_sinc(conj(ct), ans, x)),), (_sinc,), ("x",))
linear(np.unwrap, lambda ct, ans, p, *args, **kw: ct, ("p",))
structural(np.unwrap, (lambda ct, ans, p, *args, **kw: ct,), (lambda t, ans, p, *args, **kw: t,), ("p",))

zero(np.round, np.around, np.fix, np.iscomplex, np.isreal, np.isposinf, np.isneginf, np.isclose, np.allclose,
     np.array_equal, np.array_equiv, np.zeros_like, np.ones_like, np.empty_like, np.isin)
# fmt: on


@composite(np.full_like)
def _full_like(a: Any, fill_value: Any, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
    return np.ones_like(a, dtype) * fill_value


_ = dtype_of
