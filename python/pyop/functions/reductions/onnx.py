"""Sums, means, extrema, arguments of extrema, running sums."""

from __future__ import annotations

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
    """The array, with something that does not count in the place of what is left out."""
    if where is True:
        return x
    mask = e.operand(where)
    if mask.dtype != np.bool_ or mask.ndim > x.ndim:
        raise NotStandard("where= that is no mask of the array")
    return e.add("Where", mask, x, e.constant(other, x.dtype), dtype=x.dtype).like(x)


def _sum(
    e: Emitter,
    ufunc: np.ufunc,
    op_type: str,
    a: Any,
    axis: Any,
    dtype: Any,
    keepdims: Any,
    initial: Any,
    where: Any,
) -> Operand:
    x = e.operand(a)
    if x.dtype is None:
        raise NotStandard("the dtype of the argument is not known")
    result = np.dtype(dtype) if dtype is not None else ufunc.reduce(np.empty(0, x.dtype)).dtype
    if result.kind not in "iuf":
        raise NotStandard(f"{ufunc.__name__}.reduce of {x.dtype}")
    x = _kept(e, e.cast(x, result), where, ufunc.identity)
    found = reduced(e, op_type, x, axis, keepdims)
    if initial == ufunc.identity:
        return found
    if not isinstance(initial, int | float):
        raise NotStandard("initial= that is an array")
    return e.add("Add" if ufunc is np.add else "Mul", found, e.constant(initial, result))


@standard(np.sum)
def _np_sum(
    e: Emitter,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: Any = False,
    initial: Any = 0,
    where: Any = True,
) -> Operand:
    return _sum(e, np.add, "ReduceSum", a, axis, dtype, keepdims, initial, where)


@standard(np.prod)
def _np_prod(
    e: Emitter,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: Any = False,
    initial: Any = 1,
    where: Any = True,
) -> Operand:
    return _sum(e, np.multiply, "ReduceProd", a, axis, dtype, keepdims, initial, where)


@standard(np.add.reduce)
def _add_reduce(
    e: Emitter,
    a: Any,
    axis: Any = 0,
    dtype: Any = None,
    out: None = None,
    keepdims: Any = False,
    initial: Any = 0,
    where: Any = True,
) -> Operand:
    return _sum(e, np.add, "ReduceSum", a, axis, dtype, keepdims, initial, where)


@standard(np.multiply.reduce)
def _multiply_reduce(
    e: Emitter,
    a: Any,
    axis: Any = 0,
    dtype: Any = None,
    out: None = None,
    keepdims: Any = False,
    initial: Any = 1,
    where: Any = True,
) -> Operand:
    return _sum(e, np.multiply, "ReduceProd", a, axis, dtype, keepdims, initial, where)


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


@standard(np.maximum.reduce)
def _maximum_reduce(
    e: Emitter, a: Any, axis: Any = 0, dtype: None = None, out: None = None, keepdims: Any = False
) -> Operand:
    return _extremum(e, "ReduceMax", a, axis, keepdims)


@standard(np.minimum.reduce)
def _minimum_reduce(
    e: Emitter, a: Any, axis: Any = 0, dtype: None = None, out: None = None, keepdims: Any = False
) -> Operand:
    return _extremum(e, "ReduceMin", a, axis, keepdims)


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
    """How many elements lie along axes, as an int64 of rank 0."""
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
        return _np_sum(e, a, axis, dtype, None, keepdims)
    there = e.add("Not", e.add("IsNaN", x, dtype=bool)).like(x)
    return _np_sum(e, _kept(e, x, there, 0), axis, dtype, None, keepdims)


@standard(np.nanmean)
def _nanmean(
    e: Emitter, a: Any, axis: Any = None, dtype: None = None, out: None = None, keepdims: Any = False
) -> Operand:
    x = e.operand(a)
    if x.dtype is None or x.dtype.kind != "f":
        return mean(e, a, axis, dtype, None, keepdims)
    return mean(e, x, axis, dtype, None, keepdims, where=e.add("Not", e.add("IsNaN", x, dtype=bool)).like(x))


def _variance(e: Emitter, a: Any, axis: Any, ddof: Any, keepdims: Any) -> Operand:
    x = e.operand(a)
    result = _mean_dtype(x, None)
    dtype = np.dtype(np.float32) if result.itemsize < 4 else result
    x = e.cast(x, dtype)
    deviation = e.add("Sub", x, reduced(e, "ReduceMean", x, axis, True)).like(x)
    squares = e.add("Mul", deviation, deviation).like(x)
    if ddof == 0:
        return e.cast(reduced(e, "ReduceMean", squares, axis, keepdims), result)
    if not isinstance(ddof, int | float):
        raise NotStandard("ddof= that is an array")
    number = e.add("Sub", e.cast(count(e, x, axis), dtype), e.constant(ddof, dtype))
    number = e.add("Max", number, e.constant(0, dtype))
    return e.cast(e.add("Div", reduced(e, "ReduceSum", squares, axis, keepdims), number), result)


@standard(np.var)
def _var(
    e: Emitter,
    a: Any,
    axis: Any = None,
    dtype: None = None,
    out: None = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    correction: Any = None,
) -> Operand:
    if dtype is not None:
        raise NotStandard("dtype=")
    ddof = ddof if correction is None else correction
    return _variance(e, a, axis, ddof, keepdims)


@standard(np.std)
def _std(
    e: Emitter,
    a: Any,
    axis: Any = None,
    dtype: None = None,
    out: None = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    correction: Any = None,
) -> Operand:
    if dtype is not None:
        raise NotStandard("dtype=")
    ddof = ddof if correction is None else correction
    return e.add("Sqrt", _variance(e, a, axis, ddof, keepdims))


def _truth(e: Emitter, op_type: str, a: Any, axis: Any, keepdims: Any) -> Operand:
    x = e.operand(a)
    return reduced(e, op_type, truth(e, x).like(x), axis, keepdims)


@standard(np.logical_or.reduce)
def _or_reduce(
    e: Emitter, a: Any, axis: Any = 0, dtype: None = None, out: None = None, keepdims: Any = False
) -> Operand:
    return _truth(e, "ReduceMax", a, axis, keepdims)


@standard(np.logical_and.reduce)
def _and_reduce(
    e: Emitter, a: Any, axis: Any = 0, dtype: None = None, out: None = None, keepdims: Any = False
) -> Operand:
    return _truth(e, "ReduceMin", a, axis, keepdims)


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
