"""Reductions and running reductions along axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...gradients.adjoints import along, count, recurrence, reshape_like, shift
from ...gradients.options import refuse_narrowing
from ...gradients.rule import linear, nondifferentiable, spreading, structural
from ...gradients.scalar import Scalar
from ...gradients.table import NoRule
from ...gradients.unbroadcast import broadcast_like, conj, is_complex, shape_of
from ...transforms.composite import composite


def expanded(ct: Any, axis: Any, keepdims: Any) -> Any:
    """Return a reduced array with axes of one element where it was reduced."""
    if keepdims or axis is None:
        return ct
    return np.expand_dims(ct, axis)


def spread(ct: Any, a: Any, axis: Any, keepdims: Any) -> Any:
    """Return a reduced array laid along the axes it was reduced over."""
    return broadcast_like(expanded(ct, axis, keepdims), a)


def _whole(ct: Any, ans: Any) -> Any:
    """Return a cotangent that may be smaller than what it belongs to, of that shape."""
    return broadcast_like(ct.array() if isinstance(ct, Scalar) else ct, ans)


def _narrowed(ct: Any, ans: Any, axis: Any, keepdims: Any) -> Any:
    """Return a cotangent that may be smaller than the reduced array, so that it broadcasts to what was reduced."""
    if isinstance(ct, Scalar) or keepdims or axis is None or shape_of(ct) == ():
        return ct
    have, want = shape_of(ct), shape_of(ans)
    whole = have is not None and want is not None and len(have) == len(want)
    return np.expand_dims(ct if whole else broadcast_like(ct, ans), axis)


def _kept(ct: Any, a: Any, where: Any) -> Any:
    return ct if where is True else np.where(where, ct, 0)


def _sum(ct: Any, ans: Any, a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False,
         initial: Any = 0, where: Any = True) -> Any:  # fmt: skip
    return _kept(spread(ct, a, axis, keepdims), a, where)


def _sum_tangent(t: Any, ans: Any, a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False,
                 initial: Any = 0, where: Any = True) -> Any:  # fmt: skip
    return np.sum(t, axis=axis, dtype=dtype, keepdims=keepdims, where=where)


def _narrow_sum(ct: Any, ans: Any, a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False,
                initial: Any = 0, where: Any = True) -> Any:  # fmt: skip
    if where is not True:
        return _sum(_whole(ct, ans), ans, a, axis, keepdims=keepdims, where=where)
    return _narrowed(ct, ans, axis, keepdims)


spreading(np.sum, _sum, _sum_tangent, _narrow_sum, ("a",))


# --- products


def _axes(a: Any, axis: Any) -> tuple[int, ...]:
    if axis is None:
        shape = shape_of(a)
        if shape is None:
            raise NoRule("np.prod has no gradient rule for an array of unknown rank: declare it, or give axis=")
        return tuple(range(len(shape)))
    return axis if isinstance(axis, tuple) else (axis,)


def _others(a: Any, axes: tuple[int, ...]) -> Any:
    """For each element the product of all others along the axes: zeros among them do no harm."""
    if not axes:
        return np.ones_like(a)
    first, *rest = axes
    left = np.cumprod(shift(a, first, 1.0), axis=first)
    right = np.flip(np.cumprod(shift(np.flip(a, first), first, 1.0), axis=first), first)
    here = left * right
    return here * _others(np.prod(a, axis=first, keepdims=True), tuple(rest)) if rest else here


def _prod(ct: Any, ans: Any, a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False,
          initial: Any = 1, where: Any = True) -> Any:  # fmt: skip
    refuse_narrowing(np.prod, dtype, a)
    masked = a if where is True else np.where(where, a, 1)
    others = _others(masked, _axes(a, axis))
    return _kept(expanded(ct, axis, keepdims) * conj(others if initial is _default(initial) else others * initial), a,
                 where)  # fmt: skip


def _default(initial: Any) -> Any:
    return initial if initial is np._NoValue or (isinstance(initial, int) and initial == 1) else None


def _prod_tangent(t: Any, ans: Any, a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False,
                  initial: Any = 1, where: Any = True) -> Any:  # fmt: skip
    refuse_narrowing(np.prod, dtype, a)
    masked = a if where is True else np.where(where, a, 1)
    others = _others(masked, _axes(a, axis))
    others = others if initial is _default(initial) else others * initial
    return np.sum(t * others, axis=axis, keepdims=keepdims, where=where)


structural(np.prod, (_prod,), (_prod_tangent,), ("a",))


# --- extremes: shared by elements that are equal


def _shares(a: Any, best: Any, axis: Any, where: Any) -> Any:
    mask = a == best if where is True else np.logical_and(a == best, where)
    return mask / np.sum(mask, axis=axis, keepdims=True)


def _extreme(ct: Any, ans: Any, a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = None,
             where: Any = True) -> Any:  # fmt: skip
    return expanded(ct, axis, keepdims) * _shares_or_none(a, expanded(ans, axis, keepdims), axis, where, initial)


def _shares_or_none(a: Any, best: Any, axis: Any, where: Any, initial: Any) -> Any:
    if initial is None or initial is np._NoValue:
        return _shares(a, best, axis, where)
    mask = a == best if where is True else np.logical_and(a == best, where)
    return mask / np.maximum(np.sum(mask, axis=axis, keepdims=True), 1)


def _extreme_tangent(t: Any, ans: Any, a: Any, axis: Any = None, out: Any = None, keepdims: Any = False,
                     initial: Any = None, where: Any = True) -> Any:  # fmt: skip
    shares = _shares_or_none(a, expanded(ans, axis, keepdims), axis, where, initial)
    return np.sum(t * shares, axis=axis, keepdims=keepdims)


for _func in (np.max, np.min, np.amax, np.amin, np.nanmax, np.nanmin):
    structural(_func, (_extreme,), (_extreme_tangent,), ("a",))


# --- moments


def _number(a: Any, axis: Any, where: Any) -> Any:
    if where is True:
        return count(a, axis)
    return np.sum(broadcast_like(where, a), axis=axis, keepdims=True)


def _mean(ct: Any, ans: Any, a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *,
          where: Any = True) -> Any:  # fmt: skip
    ct = expanded(ct, axis, keepdims) / _number(a, axis, where)
    return _kept(broadcast_like(ct, a), a, where)


def _mean_tangent(t: Any, ans: Any, a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False,
                  *, where: Any = True) -> Any:  # fmt: skip
    return np.mean(t, axis=axis, keepdims=keepdims, where=where)


def _narrow_mean(ct: Any, ans: Any, a: Any, axis: Any = None, dtype: Any = None, out: Any = None,
                 keepdims: Any = False, *, where: Any = True) -> Any:  # fmt: skip
    if where is not True:
        return _mean(_whole(ct, ans), ans, a, axis, keepdims=keepdims, where=where)
    return _narrowed(ct, ans, axis, keepdims) / _number(a, axis, where)


spreading(np.mean, _mean, _mean_tangent, _narrow_mean, ("a",))


def _deviation(a: Any, axis: Any, where: Any, mean: Any) -> Any:
    if mean is None or mean is np._NoValue:
        mean = np.mean(a, axis=axis, keepdims=True, where=where)
    return _kept(a - mean, a, where)


def _var(ct: Any, ans: Any, a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0,
         keepdims: Any = False, *, where: Any = True, mean: Any = None, correction: Any = None) -> Any:  # fmt: skip
    refuse_narrowing(np.var, dtype, a)
    n = _number(a, axis, where) - _freedom(ddof, correction)
    return (2 * expanded(_real(ct), axis, keepdims) / n) * _deviation(a, axis, where, mean)


def _var_tangent(t: Any, ans: Any, a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0,
                 keepdims: Any = False, *, where: Any = True, mean: Any = None,
                 correction: Any = None) -> Any:  # fmt: skip
    refuse_narrowing(np.var, dtype, a)
    n = _number(a, axis, where) - _freedom(ddof, correction)
    return 2 * np.sum(_real(conj(_deviation(a, axis, where, mean)) * t / n), axis=axis, keepdims=keepdims)


def _std(ct: Any, ans: Any, a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0,
         keepdims: Any = False, **kw: Any) -> Any:  # fmt: skip
    return _var(0.5 * ct / _beside_zero(ans), ans, a, axis, dtype, out, ddof, keepdims, **kw)


def _std_tangent(t: Any, ans: Any, *args: Any, **kw: Any) -> Any:
    return 0.5 * _var_tangent(t, ans, *args, **kw) / _beside_zero(ans)


def _beside_zero(deviation: Any) -> Any:
    """Return a standard deviation to divide by: where all elements are equal its slope is zero, as a norm's."""
    return np.where(deviation == 0, 1, deviation)


def _freedom(ddof: Any, correction: Any) -> Any:
    return ddof if correction is None or correction is np._NoValue else correction


def _real(x: Any) -> Any:
    return x if is_complex(x) is False else np.real(x)


structural(np.var, (_var,), (_var_tangent,), ("a",))
structural(np.std, (_std,), (_std_tangent,), ("a",))


# --- running reductions


def _flat(a: Any, axis: Any) -> tuple[Any, Any]:
    return (np.ravel(a), 0) if axis is None else (a, axis)


def _cumsum(ct: Any, ans: Any, a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    k = 0 if axis is None else axis
    return reshape_like(np.flip(np.cumsum(np.flip(ct, k), axis=k), k), a)


def _cumprod(ct: Any, ans: Any, a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    refuse_narrowing(np.cumprod, dtype, a)
    x, k = _flat(a, axis)
    later = np.flip(recurrence(np.flip(ct, k), shift(np.flip(conj(x), k), k, 0.0), k), k)
    return reshape_like(conj(shift(ans, k, 1.0)) * later, a)


def _cumprod_tangent(t: Any, ans: Any, a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    refuse_narrowing(np.cumprod, dtype, a)
    x, k = _flat(a, axis)
    return recurrence((np.ravel(t) if axis is None else t) * shift(ans, k, 1.0), x, k)


linear(np.cumsum, _cumsum)
structural(np.cumprod, (_cumprod,), (_cumprod_tangent,), ("a",))


# --- the methods of ufuncs, whose axis is 0 where none is given


def _reduction(vjp: Any, tangent: Any, extreme: bool) -> tuple[Any, Any]:
    def given(axis: Any, dtype: Any, out: Any, keepdims: Any, initial: Any, where: Any) -> dict[str, Any]:
        more = {} if initial is np._NoValue or initial is None else {"initial": initial}
        return {"axis": axis, "keepdims": keepdims, "where": where, **more}

    def back(ct: Any, ans: Any, a: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: Any = False,
             initial: Any = None, where: Any = True) -> Any:  # fmt: skip
        return vjp(ct, ans, a, **given(axis, dtype, out, keepdims, initial, where))

    def forth(t: Any, ans: Any, a: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: Any = False,
              initial: Any = None, where: Any = True) -> Any:  # fmt: skip
        return tangent(t, ans, a, **given(axis, dtype, out, keepdims, initial, where))

    return back, forth


for _ufunc, _vjp, _tangent in (
    (np.add, _sum, _sum_tangent),
    (np.multiply, _prod, _prod_tangent),
    (np.maximum, _extreme, _extreme_tangent),
    (np.minimum, _extreme, _extreme_tangent),
    (np.fmax, _extreme, _extreme_tangent),
    (np.fmin, _extreme, _extreme_tangent),
):
    _back, _forth = _reduction(_vjp, _tangent, False)
    if _ufunc is np.add:
        spreading((_ufunc, "reduce"), _back, _forth, _reduction(_narrow_sum, _tangent, False)[0], ("array",))
    else:
        structural((_ufunc, "reduce"), (_back,), (_forth,), ("array",))


def _one_of(axis: Any) -> Any:
    return axis[0] if isinstance(axis, tuple) else axis


structural(
    (np.add, "accumulate"),
    (lambda ct, ans, a, axis=0, dtype=None, out=None: _cumsum(ct, ans, a, _one_of(axis)),),
    ("same",),
    ("array",),
)
structural(
    (np.multiply, "accumulate"),
    (lambda ct, ans, a, axis=0, dtype=None, out=None: _cumprod(ct, ans, a, _one_of(axis)),),
    (lambda t, ans, a, axis=0, dtype=None, out=None: _cumprod_tangent(t, ans, a, _one_of(axis)),),
    ("array",),
)


def _softmax(a: Any, ans: Any, axis: Any, keepdims: Any, where: Any) -> Any:
    return _kept(np.exp(a - expanded(ans, axis, keepdims)), a, where)


def _logsum(ct: Any, ans: Any, a: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: Any = False,
            initial: Any = None, where: Any = True) -> Any:  # fmt: skip
    return expanded(ct, axis, keepdims) * _softmax(a, ans, axis, keepdims, where)


def _logsum_tangent(t: Any, ans: Any, a: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: Any = False,
                    initial: Any = None, where: Any = True) -> Any:  # fmt: skip
    return np.sum(t * _softmax(a, ans, axis, keepdims, where), axis=axis, keepdims=keepdims)


structural((np.logaddexp, "reduce"), (_logsum,), (_logsum_tangent,), ("array",))


# --- by what they are made of


@composite(np.ptp)
def _ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    return np.max(a, axis=axis, keepdims=keepdims) - np.min(a, axis=axis, keepdims=keepdims)


def _of_dtype(func: Any, dtype: Any, *args: Any) -> dict[str, Any]:
    refuse_narrowing(func, dtype, *args)
    return {} if dtype is None else {"dtype": dtype}


def _present(a: Any) -> Any:
    return np.logical_not(np.isnan(a))


@composite(np.nansum)
def _nansum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    return np.sum(np.where(np.isnan(a), 0, a), axis=axis, keepdims=keepdims, **_of_dtype(np.nansum, dtype))


@composite(np.nanprod)
def _nanprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    return np.prod(np.where(np.isnan(a), 1, a), axis=axis, keepdims=keepdims, **_of_dtype(np.nanprod, dtype, a))


@composite(np.nancumsum)
def _nancumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    return np.cumsum(np.where(np.isnan(a), 0, a), axis=axis, **_of_dtype(np.nancumsum, dtype))


@composite(np.nancumprod)
def _nancumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    return np.cumprod(np.where(np.isnan(a), 1, a), axis=axis, **_of_dtype(np.nancumprod, dtype, a))


@composite(np.nanmean)
def _nanmean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    total = np.sum(np.where(np.isnan(a), 0, a), axis=axis, keepdims=keepdims, **_of_dtype(np.nanmean, dtype))
    return total / np.sum(_present(a), axis=axis, keepdims=keepdims)


@composite(np.nanvar)
def _nanvar(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False) -> Any:
    refuse_narrowing(np.nanvar, dtype, a)
    deviation = np.where(np.isnan(a), 0, a - _nanmean(a, axis=axis, keepdims=True))
    n = np.sum(_present(a), axis=axis, keepdims=keepdims) - ddof
    return np.sum(_real(conj(deviation) * deviation), axis=axis, keepdims=keepdims) / n


@composite(np.nanstd)
def _nanstd(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False) -> Any:
    variance = _nanvar(a, axis=axis, dtype=dtype, ddof=ddof, keepdims=keepdims)
    at_zero = variance == 0
    return np.where(at_zero, 0, np.sqrt(np.where(at_zero, 1, variance)))


def _with_initial(running: Any, first: float) -> Any:
    def function(
        x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: Any = False
    ) -> Any:
        k = 0 if axis is None else axis
        result = running(x, axis=k)
        if not include_initial:
            return result
        return np.concatenate([np.full_like(result[along(k, slice(0, 1))], first), result], axis=k)

    return function


if hasattr(np, "cumulative_sum"):  # NumPy 2.1
    composite(np.cumulative_sum)(_with_initial(np.cumsum, 0.0))
    composite(np.cumulative_prod)(_with_initial(np.cumprod, 1.0))
nondifferentiable(np.any, np.all, np.argmax, np.argmin, np.nanargmax, np.nanargmin, np.count_nonzero)
