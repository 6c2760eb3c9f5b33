"""Sums, means, extrema, arguments of extrema, running sums."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from ...onnx.standard import standard
from ...onnx.standard.axes import axes_of
from ...onnx.standard.emitter import Emitter, NotStandard, Operand
from ...onnx.standard.ufuncs import loop_dtypes, truth


def reduced(e: Emitter, op_type: str, x: Operand, axis: Any, keepdims: Any) -> Operand:
    axes = axes_of(x, axis)
    if axes == []:
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
    """Return the rule of a sum or product: of the function, and of the method of the ufunc, whose axis is 0 by
    default."""
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
        found = reduced(e, op_type, _kept(e, e.cast(x, result), where, identity), axis, keepdims)
        if initial == identity:
            return found
        if not isinstance(initial, int | float):
            raise NotStandard("initial= that is an array")
        return e.add("Add" if ufunc is np.add else "Mul", found, e.constant(initial, result))

    return rule


_sum = _summing(np.add, "ReduceSum", None)
standard(np.sum)(_sum)
standard(np.prod)(_summing(np.multiply, "ReduceProd", None))
standard(np.add.reduce)(_summing(np.add, "ReduceSum", 0))
standard(np.multiply.reduce)(_summing(np.multiply, "ReduceProd", 0))


def _extremum(e: Emitter, op_type: str, a: Any, axis: Any, keepdims: Any, initial: Any = None) -> Operand:
    x = e.operand(a)
    if x.dtype is None or x.dtype.kind not in "biuf":
        raise NotStandard(f"extremum of {x.dtype}")
    found = reduced(e, op_type, x, axis, keepdims)
    if initial is None:
        return found
    if not isinstance(initial, int | float) or x.dtype.kind == "b":
        raise NotStandard("initial= that is an array")
    return e.add(op_type.removeprefix("Reduce"), found, e.constant(initial, x.dtype))


@standard(np.max, np.amax)
def _max(e: Emitter, a: Any, axis: Any = None, out: None = None, keepdims: Any = False, initial: Any = None) -> Operand:
    return _extremum(e, "ReduceMax", a, axis, keepdims, initial)


@standard(np.min, np.amin)
def _min(e: Emitter, a: Any, axis: Any = None, out: None = None, keepdims: Any = False, initial: Any = None) -> Operand:
    return _extremum(e, "ReduceMin", a, axis, keepdims, initial)


@standard(np.ptp)
def _ptp(e: Emitter, a: Any, axis: Any = None, out: None = None, keepdims: Any = False) -> Operand:
    x = e.operand(a)
    if x.dtype is None or x.dtype.kind != "f":
        raise NotStandard(f"ptp of {x.dtype}")
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
    """Tell how many elements lie along axes, as an int64 of rank 0."""
    axes = axes_of(x, axis)
    if axes is None:
        return e.add("Size", x, dtype=np.int64)
    sizes = e.add("Gather", e.add("Shape", x, dtype=np.int64), e.ints(axes))
    return e.add("ReduceProd", sizes, keepdims=0)


@standard(np.mean)
def mean(
    e: Emitter,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: Any = False,
    *,
    where: Any = True,
) -> Operand:
    x = e.operand(a)
    result = _mean_dtype(x, dtype)
    # As NumPy, which adds up numbers of two bytes in those of four.
    x = e.cast(x, np.float32 if result.itemsize < 4 else result)
    if where is True:
        return e.cast(reduced(e, "ReduceMean", x, axis, keepdims), result)
    mask = e.add("Expand", e.operand(where), e.add("Shape", x, dtype=np.int64)).like(x)
    total = reduced(e, "ReduceSum", _kept(e, x, mask, 0), axis, keepdims)
    number = reduced(e, "ReduceSum", e.cast(mask, x.dtype), axis, keepdims)
    return e.cast(e.add("Div", total, number), result)


@standard(np.nansum)
def _nansum(
    e: Emitter, a: Any, axis: Any = None, dtype: None = None, out: None = None, keepdims: Any = False
) -> Operand:
    x = e.operand(a)
    if x.dtype is None or x.dtype.kind != "f":
        return _sum(e, a, axis, dtype, None, keepdims)
    there = e.add("Not", e.add("IsNaN", x, dtype=bool)).like(x)
    return _sum(e, _kept(e, x, there, 0), axis, dtype, None, keepdims)


@standard(np.nanmean)
def _nanmean(
    e: Emitter, a: Any, axis: Any = None, dtype: None = None, out: None = None, keepdims: Any = False
) -> Operand:
    x = e.operand(a)
    if x.dtype is None or x.dtype.kind != "f":
        return mean(e, a, axis, dtype, None, keepdims)
    return mean(e, x, axis, dtype, None, keepdims, where=e.add("Not", e.add("IsNaN", x, dtype=bool)).like(x))


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


def _truth(e: Emitter, op_type: str, a: Any, axis: Any, keepdims: Any) -> Operand:
    x = e.operand(a)
    return reduced(e, op_type, truth(e, x).like(x), axis, keepdims)


@standard(np.count_nonzero)
def _count_nonzero(e: Emitter, a: Any, axis: Any = None, *, keepdims: Any = False) -> Operand:
    x = e.operand(a)
    return reduced(e, "ReduceSum", e.cast(truth(e, x).like(x), np.int64), axis, keepdims)


@standard(np.any)
def _any(e: Emitter, a: Any, axis: Any = None, out: None = None, keepdims: Any = False) -> Operand:
    return _truth(e, "ReduceMax", a, axis, keepdims)


@standard(np.all)
def _all(e: Emitter, a: Any, axis: Any = None, out: None = None, keepdims: Any = False) -> Operand:
    return _truth(e, "ReduceMin", a, axis, keepdims)


def _of_method(rule: Callable[..., Operand]) -> Callable[..., Operand]:
    """Return the rule of a ufunc's method ``reduce``, by that of the function: its axis is 0 by default."""

    def of_method(
        e: Emitter, a: Any, axis: Any = 0, dtype: None = None, out: None = None, keepdims: Any = False
    ) -> Operand:
        return rule(e, a, axis, keepdims=keepdims)

    return of_method


standard(np.maximum.reduce)(_of_method(_max))
standard(np.minimum.reduce)(_of_method(_min))
standard(np.logical_or.reduce)(_of_method(_any))
standard(np.logical_and.reduce)(_of_method(_all))


def _argument(e: Emitter, op_type: str, a: Any, axis: Any, keepdims: Any) -> Operand:
    x = e.operand(a)
    if x.dtype is None or x.dtype.kind not in "iuf":
        raise NotStandard(f"argument of the extremum of {x.dtype}")
    if axis is None:
        if keepdims:
            raise NotStandard("keepdims of all axes")
        return e.add(op_type, e.add("Reshape", x, e.ints([-1])), axis=0, keepdims=0, dtype=np.int64)
    return e.add(op_type, x, axis=int(axis), keepdims=int(bool(keepdims)), dtype=np.int64)


@standard(np.argmax)
def _argmax(e: Emitter, a: Any, axis: Any = None, out: None = None, *, keepdims: Any = False) -> Operand:
    return _argument(e, "ArgMax", a, axis, keepdims)


@standard(np.argmin)
def _argmin(e: Emitter, a: Any, axis: Any = None, out: None = None, *, keepdims: Any = False) -> Operand:
    return _argument(e, "ArgMin", a, axis, keepdims)


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
