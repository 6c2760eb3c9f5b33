"""Differentiate reductions and running reductions along axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...gradients.adjoints import along, count, recurrence, reshape_like, shift
from ...gradients.options import refuse_narrowing
from ...gradients.rule import nondifferentiable, spreading, structural
from ...gradients.scalar import Scalar
from ...gradients.table import NoRule
from ...gradients.unbroadcast import broadcast_like, conj, is_complex, shape_of
from ...transforms.composite import composite

_func: Any


class Options:
    """Hold the arguments of a reduction beside its array."""

    axis: Any = None
    dtype: Any = None
    out: Any = None
    ddof: Any = 0
    keepdims: Any = False
    initial: Any = None
    where: Any = True
    mean: Any = None
    correction: Any = None

    def __init__(self, given: dict[str, Any]) -> None:
        self.__dict__ = {name: x for name, x in given.items() if x is not np._NoValue}


def _read(rule: Any, order: Sequence[str], axis: Any) -> Any:
    """Return a rule of ``(x, ans, a, options)`` as one of the arguments of the call."""
    if not callable(rule):
        return rule

    def of_call(x: Any, ans: Any, a: Any, *args: Any, **kwargs: Any) -> Any:
        return rule(x, ans, a, Options({"axis": axis, **dict(zip(order, args, strict=False)), **kwargs}))

    return of_call


def _reduction(func: Any, vjp: Any, jvp: Any, order: str, narrow: Any = None) -> None:
    """Add the rule of a reduction whose parameters stand in this order, by rules of ``(x, ans, a, options)``."""
    is_method = isinstance(func, tuple)  # of a ufunc, whose axis is 0 where none is given
    names = ("array",) if is_method else ("a",)
    vjp, jvp, narrow = (_read(rule, order.split(), 0 if is_method else None) for rule in (vjp, jvp, narrow))
    if narrow is None:
        structural(func, (vjp,), (jvp,), names)
    else:
        spreading(func, vjp, jvp, narrow, names)


def expanded(ct: Any, axis: Any, keepdims: Any) -> Any:
    """Return a reduced array with axes of one element where it was reduced."""
    if keepdims or axis is None:
        return ct
    return np.expand_dims(ct, axis)


def _kept(ct: Any, where: Any) -> Any:
    return ct if where is True else np.where(where, ct, 0)


# --- sums and means


def _sum(ct: Any, ans: Any, a: Any, o: Options) -> Any:
    return _kept(broadcast_like(expanded(ct, o.axis, o.keepdims), a), o.where)


def _sum_tangent(t: Any, ans: Any, a: Any, o: Options) -> Any:
    return np.sum(t, axis=o.axis, dtype=o.dtype, keepdims=o.keepdims, where=o.where)


def _mean(ct: Any, ans: Any, a: Any, o: Options) -> Any:
    return _kept(broadcast_like(expanded(ct, o.axis, o.keepdims) / _number(a, o), a), o.where)


def _number(a: Any, o: Options) -> Any:
    """Return the number of elements that are reduced to one."""
    if o.where is True:
        return count(a, o.axis)
    return np.sum(broadcast_like(o.where, a), axis=o.axis, keepdims=True)


def _narrow_sum(ct: Any, ans: Any, a: Any, o: Options) -> Any:
    return _narrowed(ct, ans, o) if o.where is True else _sum(_whole(ct, ans), ans, a, o)


def _narrow_mean(ct: Any, ans: Any, a: Any, o: Options) -> Any:
    return _narrowed(ct, ans, o) / _number(a, o) if o.where is True else _mean(_whole(ct, ans), ans, a, o)


def _whole(ct: Any, ans: Any) -> Any:
    """Return a cotangent that may be smaller than what it belongs to, of that shape."""
    return broadcast_like(ct.array() if isinstance(ct, Scalar) else ct, ans)


def _narrowed(ct: Any, ans: Any, o: Options) -> Any:
    """Return a cotangent that may be smaller than the reduced array, so that it broadcasts to what was reduced."""
    if isinstance(ct, Scalar) or o.keepdims or o.axis is None or shape_of(ct) == ():
        return ct
    have, want = shape_of(ct), shape_of(ans)
    whole = have is not None and want is not None and len(have) == len(want)
    return np.expand_dims(ct if whole else broadcast_like(ct, ans), o.axis)


_OF_SUMS = "axis dtype out keepdims initial where"
_reduction(np.sum, _sum, _sum_tangent, _OF_SUMS, _narrow_sum)
_reduction((np.add, "reduce"), _sum, _sum_tangent, _OF_SUMS, _narrow_sum)
_reduction(
    np.mean,
    _mean,
    lambda t, ans, a, o: np.mean(t, axis=o.axis, keepdims=o.keepdims, where=o.where),
    "axis dtype out keepdims",
    _narrow_mean,
)


# --- by how much the result follows each element


def _weighted(weights: Callable[..., Any]) -> tuple[Any, Any]:
    """Return both rules of a reduction, by the derivative of the result by each element, of ``(ans, a, options)``."""

    def vjp(ct: Any, ans: Any, a: Any, o: Options) -> Any:
        return _kept(expanded(ct, o.axis, o.keepdims) * conj(weights(ans, a, o)), o.where)

    def jvp(t: Any, ans: Any, a: Any, o: Options) -> Any:
        return np.sum(t * weights(ans, a, o), axis=o.axis, keepdims=o.keepdims, where=o.where)

    return vjp, jvp


def _others(a: Any, axes: tuple[int, ...]) -> Any:
    """Return for each element the product of all others along the axes; zeros among them are safe."""
    if not axes:
        return np.ones_like(a)
    first, *rest = axes
    left = np.cumprod(shift(a, first, 1.0), axis=first)
    right = np.flip(np.cumprod(shift(np.flip(a, first), first, 1.0), axis=first), first)
    here = left * right
    return here * _others(np.prod(a, axis=first, keepdims=True), tuple(rest)) if rest else here


def _by_others(ans: Any, a: Any, o: Options) -> Any:
    refuse_narrowing(np.prod, o.dtype, a)
    axes = o.axis if isinstance(o.axis, tuple) else (o.axis,)
    if o.axis is None:
        shape = shape_of(a)
        if shape is None:
            raise NoRule("np.prod has no gradient rule for an array of unknown rank: declare it, or give axis=")
        axes = tuple(range(len(shape)))
    others = _others(a if o.where is True else np.where(o.where, a, 1), axes)
    return others if o.initial is None or (isinstance(o.initial, int) and o.initial == 1) else others * o.initial


def _by_equals(ans: Any, a: Any, o: Options) -> Any:
    """Return the shares of elements in an extreme: those that are equal have equal ones."""
    mask = a == expanded(ans, o.axis, o.keepdims)
    mask = mask if o.where is True else np.logical_and(mask, o.where)
    number = np.sum(mask, axis=o.axis, keepdims=True)
    return mask / (number if o.initial is None else np.maximum(number, 1))  # none is where the initial value is


def _by_exponents(ans: Any, a: Any, o: Options) -> Any:
    return np.exp(a - expanded(ans, o.axis, o.keepdims))


for _func in (np.max, np.min, np.amax, np.amin, np.nanmax, np.nanmin):
    _reduction(_func, *_weighted(_by_equals), "axis out keepdims initial where")
for _ufunc in (np.maximum, np.minimum, np.fmax, np.fmin):
    _reduction((_ufunc, "reduce"), *_weighted(_by_equals), _OF_SUMS)
_reduction(np.prod, *_weighted(_by_others), _OF_SUMS)
_reduction((np.multiply, "reduce"), *_weighted(_by_others), _OF_SUMS)
_reduction((np.logaddexp, "reduce"), *_weighted(_by_exponents), _OF_SUMS)


# --- variances


def _deviation(a: Any, o: Options) -> tuple[Any, Any]:
    """Return how far the elements are from their mean, and by what the sum of the squares is divided."""
    refuse_narrowing(np.var, o.dtype, a)
    n = _number(a, o) - (o.ddof if o.correction is None else o.correction)
    mean = np.mean(a, axis=o.axis, keepdims=True, where=o.where) if o.mean is None else o.mean
    return _kept(a - mean, o.where), n


def _var(ct: Any, ans: Any, a: Any, o: Options) -> Any:
    deviation, n = _deviation(a, o)
    return (2 * expanded(_real(ct), o.axis, o.keepdims) / n) * deviation


def _var_tangent(t: Any, ans: Any, a: Any, o: Options) -> Any:
    deviation, n = _deviation(a, o)
    return 2 * np.sum(_real(conj(deviation) * t / n), axis=o.axis, keepdims=o.keepdims)


def _beside_zero(deviation: Any) -> Any:
    """Return a standard deviation to divide by: where all elements are equal its slope is zero, as a norm's."""
    return np.where(deviation == 0, 1, deviation)


def _real(x: Any) -> Any:
    return x if is_complex(x) is False else np.real(x)


_reduction(np.var, _var, _var_tangent, "axis dtype out ddof keepdims")
_reduction(
    np.std,
    lambda ct, ans, a, o: _var(0.5 * ct / _beside_zero(ans), ans, a, o),
    lambda t, ans, a, o: 0.5 * _var_tangent(t, ans, a, o) / _beside_zero(ans),
    "axis dtype out ddof keepdims",
)


# --- running reductions


def _line(a: Any, o: Options) -> tuple[Any, Any]:
    """Return the array and the axis along which it runs: without one it is flattened first."""
    return (np.ravel(a), 0) if o.axis is None else (a, o.axis[0] if isinstance(o.axis, tuple) else o.axis)


def _cumsum(ct: Any, ans: Any, a: Any, o: Options) -> Any:
    _, k = _line(ct, o)
    return reshape_like(np.flip(np.cumsum(np.flip(ct, k), axis=k), k), a)


def _cumprod(ct: Any, ans: Any, a: Any, o: Options) -> Any:
    refuse_narrowing(np.cumprod, o.dtype, a)
    x, k = _line(a, o)
    later = np.flip(recurrence(np.flip(ct, k), shift(np.flip(conj(x), k), k, 0.0), k), k)
    return reshape_like(conj(shift(ans, k, 1.0)) * later, a)


def _cumprod_tangent(t: Any, ans: Any, a: Any, o: Options) -> Any:
    refuse_narrowing(np.cumprod, o.dtype, a)
    x, k = _line(a, o)
    return recurrence(_line(t, o)[0] * shift(ans, k, 1.0), x, k)


for _func in (np.cumsum, (np.add, "accumulate")):
    _reduction(_func, _cumsum, "same", "axis dtype out")
for _func in (np.cumprod, (np.multiply, "accumulate")):
    _reduction(_func, _cumprod, _cumprod_tangent, "axis dtype out")


# --- by what they are made of


@composite(np.ptp)
def _ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    return np.max(a, axis=axis, keepdims=keepdims) - np.min(a, axis=axis, keepdims=keepdims)


def _of_dtype(func: Any, dtype: Any, *args: Any) -> dict[str, Any]:
    refuse_narrowing(func, dtype, *args)
    return {} if dtype is None else {"dtype": dtype}


def _present(a: Any) -> Any:
    return np.logical_not(np.isnan(a))


def _without_nans(func: Any, plain: Any, neutral: float) -> Any:
    def made_of(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False) -> Any:
        kept = {"keepdims": True} if keepdims else {}
        return plain(np.where(np.isnan(a), neutral, a), axis=axis, **kept, **_of_dtype(func, dtype, a))

    return made_of


for _func, _plain, _neutral in (
    (np.nansum, np.sum, 0),
    (np.nanprod, np.prod, 1),
    (np.nancumsum, np.cumsum, 0),
    (np.nancumprod, np.cumprod, 1),
):
    composite(_func)(_without_nans(_func, _plain, _neutral))


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
