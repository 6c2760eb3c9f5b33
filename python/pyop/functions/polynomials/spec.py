"""Infer the ``np.poly*`` functions of plain coefficient arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...declare.dims import Extent
from ...declare.spec import Spec
from .. import rule
from ..forms import each
from ..operand import Operand, one, operand, probe
from ..shape import add, least


def _coefficients(p: Any) -> Operand | None:
    """Return an array of coefficients; None for a poly1d, which makes every result a poly1d."""
    return None if isinstance(p, np.poly1d) else operand(p)


def _size(part: Operand) -> Extent:
    if part.shape is None:
        return None
    return part.shape[0] if part.shape else 1


@rule(np.polyval)
def _polyval(p: Any, x: Any) -> Spec:
    if isinstance(x, np.poly1d):
        return Spec()
    part, at = operand(p), operand(x)
    dtype = probe(np.polyval, one(part), one(at))
    # Without coefficients it is zeros of the dtype of x.
    return Spec(dtype if least(_size(part)) or dtype == at.dtype else None, at.shape)


@each(np.polyadd, np.polysub, np.polymul)
def _combined(func: Any, a1: Any, a2: Any) -> Spec:
    a, b = _coefficients(a1), _coefficients(a2)
    if a is None or b is None:
        return Spec()
    dtype = probe(func, one(a), one(b))
    m, n = _size(a), _size(b)
    if func is np.polymul:
        # Leading zeros are dropped first, so that the length depends on the values.
        return Spec(dtype, (None,))
    longest = max(m, n) if isinstance(m, int) and isinstance(n, int) else m if m is not None and m == n else None
    return Spec(dtype, (longest,))


@rule(np.polydiv)
def _polydiv(u: Any, v: Any) -> tuple[Spec, Spec]:
    a, b = _coefficients(u), _coefficients(v)
    if a is None or b is None:
        return Spec(), Spec()
    dtype = probe(np.true_divide, one(a), one(b))
    return Spec(None if dtype is None or dtype.itemsize < 8 else dtype, (None,)), Spec(None, (None,))


@rule(np.polyder)
def _polyder(p: Any, m: Any = 1) -> Spec:
    return Spec(None, None if isinstance(p, np.poly1d) else (None,))


@rule(np.polyint)
def _polyint(p: Any, m: Any = 1, k: Any = None) -> Spec:
    part = _coefficients(p)
    if part is None or isinstance(m, Spec):
        return Spec()
    return Spec(None, (add(_size(part), int(m)),))


@rule(np.roots)
def _roots(p: Any) -> Spec:
    part = operand(p)
    if part.ndim not in (None, 0, 1):
        raise ValueError("Input must be a rank-1 array.")
    return Spec(None, (None,))


@rule(np.poly)
def _poly(seq_of_zeros: Any) -> Spec:
    part = operand(seq_of_zeros)
    size = _size(part)
    return Spec(None, (add(size, 1),) if part.shape and least(size) else None)


@rule(np.polyfit)
def _polyfit(x: Any, y: Any, deg: Any, rcond: Any = None, full: Any = False, w: Any = None, cov: Any = False) -> Any:
    at, values = operand(x), operand(y)
    if at.ndim not in (None, 1):
        raise TypeError("expected 1D vector for x")
    if values.ndim not in (None, 1, 2):
        raise TypeError("expected 1D or 2D array for y")
    shape: tuple[Extent, ...] | None = None
    if isinstance(deg, int):
        if deg < 0:
            raise ValueError("expected deg >= 0")
        shape = None if values.shape is None else (deg + 1, *values.shape[1:])
    result = Spec(None if at.dtype is None or values.dtype is None else _fit_dtype(at, values), shape)
    if full:
        return result, Spec(None, (None,)), Spec(np.intc, ()), Spec(None, (None,)), Spec(np.float64, ())
    return (result, Spec()) if cov else result


def _fit_dtype(x: Operand, y: Operand) -> Any:
    dtype = np.result_type(x.dtype or np.float64, y.dtype or np.float64, np.float64)
    return dtype if dtype.kind in "fc" and dtype.itemsize in (8, 16) and dtype.char in "dD" else None
