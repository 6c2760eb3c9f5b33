"""Infer elementwise functions that are no ufuncs (`pyop.functions.ufuncs` has those), and bits in bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...declare.dims import Extent
from ...declare.spec import Spec
from ...refusals import refusal
from .. import rule
from ..forms import each, mapped
from ..operand import BOOL, Operand, one, operand, probe
from ..shape import add, axis_of, broadcast, floordiv, mul, prod, replaced


@each(np.fix, np.isneginf, np.isposinf, np.sinc, np.i0)
def _of_number(func: Any, x: Any, out: Any = None) -> Spec:
    return mapped(func, x)


@each(np.real, np.imag)
def _part(func: Any, val: Any) -> Spec:
    return mapped(func, val)


@rule(np.iscomplex, np.isreal)
def _is_real(x: Any) -> Spec:
    part = operand(x)
    return Spec(None if part.kind in ("", "O") else BOOL, part.shape)


@rule(np.angle)
def _angle(z: Any, deg: Any = False) -> Spec:
    return mapped(np.angle, z, bool(deg))


@rule(np.real_if_close)
def _real_if_close(a: Any, tol: Any = 100) -> Spec:
    part = operand(a)
    # Complex input comes back real or complex, as its values say.
    return Spec(None if part.kind in ("", "c", "O") else probe(np.real_if_close, one(part)), part.shape)


@rule(np.round, np.around)
def _round(a: Any, decimals: Any = 0, out: Any = None) -> Spec:
    return mapped(np.round, a, 1 if isinstance(decimals, Spec) else decimals)


@rule(np.clip)
def _clip(
    a: Any, a_min: Any = np._NoValue, a_max: Any = np._NoValue, out: Any = None, *, min: Any = None, max: Any = None,
    **options: Any,
) -> Spec:  # fmt: skip
    given = (min if a_min is np._NoValue else a_min, max if a_max is np._NoValue else a_max)
    bounds = [None if item is None or item is np._NoValue else operand(item) for item in given]
    part, known = operand(a), [bound for bound in bounds if bound is not None]
    dtype = probe(np.clip, one(part), *(None if bound is None else one(bound) for bound in bounds))
    return Spec(dtype, broadcast(part, *known))


@rule(np.nan_to_num)
def _nan_to_num(x: Any, copy: Any = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Spec:
    if copy is not True and not copy:
        raise refusal("np.nan_to_num(copy=False) writes into its argument, and a Value is immutable: leave copy= out")
    return operand(x).spec


@rule(np.isclose)
def _isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: Any = False) -> Spec:
    return Spec(BOOL, broadcast(*(operand(item).shape for item in (a, b, rtol, atol))))


@rule(np.allclose)
def _allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: Any = False) -> Spec:
    broadcast(operand(a), operand(b))
    return Spec(BOOL, ())


@rule(np.array_equal, np.array_equiv)
def _array_equal(a1: Any, a2: Any, equal_nan: Any = False) -> Spec:
    return Spec(BOOL, ())


@rule(np.unwrap)
def _unwrap(p: Any, discont: Any = None, axis: Any = -1, *, period: Any = 2 * np.pi) -> Spec:
    return mapped(np.unwrap, p, period=one(period))


@rule("is_busday")
def _is_busday(dates: Any, weekmask: Any = "", holidays: Any = None, busdaycal: Any = None, out: Any = None) -> Spec:
    return Spec(BOOL, operand(dates).shape)


@rule("busday_count")
def _busday_count(
    begindates: Any, enddates: Any, weekmask: Any = "", holidays: Any = (), busdaycal: Any = None, out: Any = None
) -> Spec:
    return Spec(np.int64, broadcast(operand(begindates), operand(enddates)))


@rule("busday_offset")
def _busday_offset(
    dates: Any, offsets: Any, roll: Any = "", weekmask: Any = "", holidays: Any = None, busdaycal: Any = None,
    out: Any = None,
) -> Spec:  # fmt: skip
    return Spec(np.dtype("datetime64[D]"), broadcast(operand(dates), operand(offsets)))


@rule("datetime_as_string")
def _datetime_as_string(arr: Any, unit: Any = None, timezone: Any = "naive", casting: Any = "same_kind") -> Spec:
    return Spec(np.dtype(str), operand(arr).shape)


@rule(np.packbits)
def _packbits(a: Any, /, axis: Any = None, bitorder: Any = "big") -> Spec:
    part = operand(a)
    if part.kind not in ("", "b", "i", "u"):
        raise TypeError("Expected an input array of integer or boolean data type")
    return _bits(part, axis, lambda size: floordiv(add(size, 7), 8))


@rule(np.unpackbits)
def _unpackbits(a: Any, /, axis: Any = None, count: Any = None, bitorder: Any = "big") -> Spec:
    part = operand(a)
    if part.dtype is not None and part.dtype != np.uint8:
        raise TypeError("Expected an input array of unsigned byte data type")

    def bits(size: Extent) -> Extent:
        full = mul(size, 8)
        if count is None:
            return full
        return int(count) if count >= 0 else add(full, int(count))

    return _bits(part, axis, bits)


def _bits(part: Operand, axis: Any, resize: Any) -> Spec:
    if axis is None:
        return Spec(np.uint8, (resize(None if part.shape is None else prod(part.shape)),))
    if part.shape is None:
        return Spec(np.uint8, None)
    shape = part.shape or (1,)
    k = axis_of(axis, len(shape))
    return Spec(np.uint8, replaced(shape, k, resize(shape[k])))
