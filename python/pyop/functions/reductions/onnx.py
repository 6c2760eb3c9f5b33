"""Export sums, means, extrema, arguments of extrema, and running sums."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from ...onnx.standard import Emitter, NotStandard, Operand, standard
from ...onnx.standard.ufuncs import loop_dtypes, truth
from ..shape import axes_of


def reduced(e: Emitter, op_type: str, x: Operand, axis: Any, keepdims: Any) -> Operand:
    axes = None if axis is None else axes_of(axis, x.ndim)
    if axes == ():
        return x
    where = None if axes is None else e.ints(axes)
    return e.add(op_type, x, where, keepdims=int(bool(keepdims)), dtype=x.dtype)


def _kept(e: Emitter, x: Operand, where: Any, other: Any) -> Operand:
    """Return the array, with something that does not count in the place of what is left out."""
    if where is True:
        return x
    mask = e.operand(where)
    if mask.dtype != np.bool_ or mask.ndim > x.ndim:
        raise NotStandard("where= that is no mask of the array")
    return e.add("Where", mask, x, e.constant(other, x.dtype), dtype=x.dtype).like(x)


def _summing(ufunc: np.ufunc, op_type: str, default_axis: int | None) -> Callable[..., Operand]:
    """Return the rule of a sum or product as a function, and as a method of the ufunc, whose axis is 0 by default."""
    identity = ufunc.identity

    def rule(
        e: Emitter, a: Any, axis: Any = default_axis, dtype: Any = None, out: None = None, keepdims: Any = False,
        initial: Any = identity, where: Any = True,
    ) -> Operand:  # fmt: skip
        x = e.operand(a)
        if x.dtype is None:
            raise NotStandard("the dtype of the argument is not known")
        result = np.dtype(dtype) if dtype is not None else ufunc.reduce(np.empty(0, x.dtype)).dtype
        if result.kind not in "iuf":
            raise NotStandard(f"{ufunc.__name__}.reduce of {x.dtype}")
        reduction = reduced(e, op_type, _kept(e, e.cast(x, result), where, identity), axis, keepdims)
        if initial == identity:
            return reduction
        if not isinstance(initial, int | float):
            raise NotStandard("initial= that is an array")
        return e.add("Add" if ufunc is np.add else "Mul", reduction, e.constant(initial, result))

    return rule


_sum = _summing(np.add, "ReduceSum", None)
standard(np.sum)(_sum)
standard(np.prod)(_summing(np.multiply, "ReduceProd", None))
standard(np.add.reduce)(_summing(np.add, "ReduceSum", 0))
standard(np.multiply.reduce)(_summing(np.multiply, "ReduceProd", 0))


def _extremum(op_type: str) -> Callable[..., Operand]:
    def rule(
        e: Emitter, a: Any, axis: Any = None, out: None = None, keepdims: Any = False, initial: Any = None
    ) -> Operand:
        x = e.of_kind(a, "biuf", "extremum")
        result = reduced(e, op_type, x, axis, keepdims)
        if initial is None:
            return result
        if not isinstance(initial, int | float) or x.dtype.kind == "b":
            raise NotStandard("initial= that is an array")
        return e.add(op_type.removeprefix("Reduce"), result, e.constant(initial, x.dtype))

    return rule


def _of_truth(op_type: str) -> Callable[..., Operand]:
    def rule(e: Emitter, a: Any, axis: Any = None, out: None = None, keepdims: Any = False) -> Operand:
        x = e.operand(a)
        return reduced(e, op_type, truth(e, x).like(x), axis, keepdims)

    return rule


def _of_method(rule: Callable[..., Operand]) -> Callable[..., Operand]:
    """Return the rule of a ufunc's method ``reduce``, which has a dtype before what the function has."""

    def of_method(
        e: Emitter, a: Any, axis: Any = 0, dtype: None = None, out: None = None, keepdims: Any = False
    ) -> Operand:
        return rule(e, a, axis, keepdims=keepdims)

    return of_method


for _rule, *_functions, _ufunc in (
    (_extremum("ReduceMax"), np.max, np.amax, np.maximum),
    (_extremum("ReduceMin"), np.min, np.amin, np.minimum),
    (_of_truth("ReduceMax"), np.any, np.logical_or),
    (_of_truth("ReduceMin"), np.all, np.logical_and),
):
    standard(*_functions)(_rule)
    standard(_ufunc.reduce)(_of_method(_rule))


@standard(np.ptp)
def _ptp(e: Emitter, a: Any, axis: Any = None, out: None = None, keepdims: Any = False) -> Operand:
    x = e.of_kind(a, "f", "ptp")
    return e.add("Sub", *(reduced(e, op_type, x, axis, keepdims) for op_type in ("ReduceMax", "ReduceMin")))


# --- moments


def _mean_dtype(x: Operand, dtype: Any) -> np.dtype[Any]:
    if dtype is not None:
        result: np.dtype[Any] = np.dtype(dtype)
    else:
        result = np.dtype(np.float64) if x.dtype is not None and x.dtype.kind in "iub" else x.dtype
    if result is None or result.kind != "f":
        raise NotStandard(f"mean of {result}")
    return result


def count(e: Emitter, x: Operand, axis: Any) -> Operand:
    """Return the number of elements along axes, as an int64 of rank 0."""
    if axis is None:
        return e.add("Size", x, dtype=np.int64)
    sizes = e.add("Gather", e.shape(x), e.ints(axes_of(axis, x.ndim)))
    return e.add("ReduceProd", sizes, keepdims=0)


@standard(np.mean)
def mean(
    e: Emitter, a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: Any = False, *,
    where: Any = True,
) -> Operand:  # fmt: skip
    x = e.operand(a)
    result = _mean_dtype(x, dtype)
    # As NumPy, which adds up numbers of two bytes in those of four.
    x = e.cast(x, np.float32 if result.itemsize < 4 else result)
    if where is True:
        return e.cast(reduced(e, "ReduceMean", x, axis, keepdims), result)
    mask = e.add("Expand", e.operand(where), e.shape(x)).like(x)
    total = reduced(e, "ReduceSum", _kept(e, x, mask, 0), axis, keepdims)
    number = reduced(e, "ReduceSum", e.cast(mask, x.dtype), axis, keepdims)
    return e.cast(e.add("Div", total, number), result)


def _of_numbers(function: Callable[..., Operand]) -> Callable[..., Operand]:
    """Return the rule of a function that passes over NaN."""

    def rule(
        e: Emitter, a: Any, axis: Any = None, dtype: None = None, out: None = None, keepdims: Any = False
    ) -> Operand:
        x = e.operand(a)
        if x.dtype is None or x.dtype.kind != "f":
            return function(e, a, axis, dtype, None, keepdims)
        there = e.add("Not", e.add("IsNaN", x, dtype=bool)).like(x)
        return function(e, x, axis, dtype, None, keepdims, where=there)

    return rule


standard(np.nansum)(_of_numbers(_sum))
standard(np.nanmean)(_of_numbers(mean))


@standard(np.var)
def _var(
    e: Emitter, a: Any, axis: Any = None, dtype: None = None, out: None = None, ddof: Any = 0, keepdims: Any = False, *,
    correction: Any = None,
) -> Operand:  # fmt: skip
    if dtype is not None:
        raise NotStandard("dtype=")
    ddof = ddof if correction is None else correction
    x = e.operand(a)
    result = _mean_dtype(x, None)
    wide = np.dtype(np.float32) if result.itemsize < 4 else result
    x = e.cast(x, wide)
    deviation = e.add("Sub", x, reduced(e, "ReduceMean", x, axis, True)).like(x)
    squares = e.add("Mul", deviation, deviation).like(x)
    if ddof == 0:
        return e.cast(reduced(e, "ReduceMean", squares, axis, keepdims), result)
    if not isinstance(ddof, int | float):
        raise NotStandard("ddof= that is an array")
    number = e.add("Sub", e.cast(count(e, x, axis), wide), e.constant(ddof, wide))
    number = e.add("Max", number, e.constant(0, wide))
    return e.cast(e.add("Div", reduced(e, "ReduceSum", squares, axis, keepdims), number), result)


@standard(np.std)
@wraps(_var)
def _std(e: Emitter, *args: Any, **kwargs: Any) -> Operand:
    return e.add("Sqrt", _var(e, *args, **kwargs))


@standard(np.count_nonzero)
def _count_nonzero(e: Emitter, a: Any, axis: Any = None, *, keepdims: Any = False) -> Operand:
    x = e.operand(a)
    return reduced(e, "ReduceSum", e.cast(truth(e, x).like(x), np.int64), axis, keepdims)


def _place(op_type: str) -> Callable[..., Operand]:
    def rule(e: Emitter, a: Any, axis: Any = None, out: None = None, *, keepdims: Any = False) -> Operand:
        x = e.of_kind(a, "iuf", "argument of the extremum")
        if axis is None:
            if keepdims:
                raise NotStandard("keepdims of all axes")
            return e.add(op_type, e.add("Reshape", x, e.ints([-1])), axis=0, keepdims=0, dtype=np.int64)
        return e.add(op_type, x, axis=int(axis), keepdims=int(bool(keepdims)), dtype=np.int64)

    return rule


standard(np.argmax)(_place("ArgMax"))
standard(np.argmin)(_place("ArgMin"))


@standard(np.add.accumulate)
def _accumulated(e: Emitter, array: Any, axis: Any = 0, dtype: Any = None, out: None = None) -> Operand:
    x = e.operand(array)
    if dtype is None and (x.dtype is None or x.dtype.kind != "f"):
        raise NotStandard(f"running sums of {x.dtype}")
    return _cumsum(e, x, axis, dtype)


@standard(np.cumsum)
def _cumsum(e: Emitter, a: Any, axis: Any = None, dtype: Any = None, out: None = None) -> Operand:
    x = e.operand(a)
    result = np.dtype(dtype) if dtype is not None else loop_dtypes(np.add, (x, x))[-1]
    if dtype is None and result.kind in "biu" and result.itemsize < 8:
        result = np.dtype(np.uint64 if result.kind == "u" else np.int64)
    x = e.cast(x, result)
    if axis is None:
        x, axis = e.add("Reshape", x, e.ints([-1])), 0
    return e.add("CumSum", x, e.constant(int(axis), np.int64))
