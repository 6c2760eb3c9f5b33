"""Sums, means, extrema, arguments of extrema, running sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import standard
from .elementwise import loop_dtypes
from .emitter import Emitter, NotStandard, Operand

__all__: list[str] = []


def _axes(x: Operand, axis: Any) -> list[int] | None:
    """The axes, not negative; None for all."""
    if axis is None:
        return None
    given = list(axis) if isinstance(axis, tuple) else [axis]
    try:
        return [int(k) % x.ndim for k in given]
    except (TypeError, ZeroDivisionError):
        raise NotStandard(f"axis={axis!r:.80}") from None


def _reduce(e: Emitter, op_type: str, x: Operand, axis: Any, keepdims: Any) -> Operand:
    axes = _axes(x, axis)
    if axes == []:
        return x
    where = None if axes is None else e.ints(axes)
    return e.add(op_type, x, where, keepdims=int(bool(keepdims)), dtype=x.dtype)


def _sum(e: Emitter, ufunc: np.ufunc, op_type: str, a: Any, axis: Any, dtype: Any, keepdims: Any) -> Operand:
    x = e.operand(a)
    if x.dtype is None:
        raise NotStandard("the dtype of the argument is not known")
    result = np.dtype(dtype) if dtype is not None else ufunc.reduce(np.empty(0, x.dtype)).dtype
    if result.kind not in "iuf":
        raise NotStandard(f"{ufunc.__name__}.reduce of {x.dtype}")
    return _reduce(e, op_type, e.cast(x, result), axis, keepdims)


@standard(np.sum)
def _np_sum(
    e: Emitter, a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: Any = False
) -> Operand:
    return _sum(e, np.add, "ReduceSum", a, axis, dtype, keepdims)


@standard(np.prod)
def _np_prod(
    e: Emitter, a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: Any = False
) -> Operand:
    return _sum(e, np.multiply, "ReduceProd", a, axis, dtype, keepdims)


@standard(np.add.reduce)
def _add_reduce(
    e: Emitter, a: Any, axis: Any = 0, dtype: Any = None, out: None = None, keepdims: Any = False
) -> Operand:
    return _sum(e, np.add, "ReduceSum", a, axis, dtype, keepdims)


@standard(np.multiply.reduce)
def _multiply_reduce(
    e: Emitter, a: Any, axis: Any = 0, dtype: Any = None, out: None = None, keepdims: Any = False
) -> Operand:
    return _sum(e, np.multiply, "ReduceProd", a, axis, dtype, keepdims)


def _extremum(e: Emitter, op_type: str, a: Any, axis: Any, keepdims: Any) -> Operand:
    x = e.operand(a)
    if x.dtype is None or x.dtype.kind not in "iuf":
        raise NotStandard(f"extremum of {x.dtype}")
    return _reduce(e, op_type, x, axis, keepdims)


@standard(np.max, np.amax)
def _max(e: Emitter, a: Any, axis: Any = None, out: None = None, keepdims: Any = False) -> Operand:
    return _extremum(e, "ReduceMax", a, axis, keepdims)


@standard(np.min, np.amin)
def _min(e: Emitter, a: Any, axis: Any = None, out: None = None, keepdims: Any = False) -> Operand:
    return _extremum(e, "ReduceMin", a, axis, keepdims)


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


def _mean_dtype(x: Operand, dtype: Any) -> np.dtype[Any]:
    if dtype is not None:
        result: np.dtype[Any] = np.dtype(dtype)
    else:
        result = np.dtype(np.float64) if x.dtype is not None and x.dtype.kind in "iub" else x.dtype
    if result is None or result.kind != "f" or result.itemsize < 4:
        raise NotStandard(f"mean of {result}")
    return result


@standard(np.mean)
def _mean(e: Emitter, a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: Any = False) -> Operand:
    x = e.operand(a)
    return _reduce(e, "ReduceMean", e.cast(x, _mean_dtype(x, dtype)), axis, keepdims)


def _variance(e: Emitter, a: Any, axis: Any, ddof: Any, keepdims: Any) -> Operand:
    x = e.operand(a)
    dtype = _mean_dtype(x, None)
    shape = x.shape
    x = e.cast(x, dtype)
    deviation = e.add("Sub", x, _reduce(e, "ReduceMean", x, axis, True))
    deviation = Operand(deviation.name, dtype, shape)
    squares = Operand(e.add("Mul", deviation, deviation).name, dtype, shape)
    if ddof == 0:
        return _reduce(e, "ReduceMean", squares, axis, keepdims)
    axes = _axes(x, axis)
    sizes = [] if shape is None else [shape[k] for k in (range(len(shape)) if axes is None else axes)]
    if shape is None or not all(isinstance(size, int) for size in sizes) or not isinstance(ddof, int | float):
        raise NotStandard("ddof where the number of elements is not known")
    count = max(int(np.prod(sizes)) - ddof, 0)
    return e.add("Div", _reduce(e, "ReduceSum", squares, axis, keepdims), e.constant(count, dtype))


@standard(np.var)
def _var(
    e: Emitter, a: Any, axis: Any = None, dtype: None = None, out: None = None, ddof: Any = 0, keepdims: Any = False
) -> Operand:
    if dtype is not None:
        raise NotStandard("dtype=")
    return _variance(e, a, axis, ddof, keepdims)


@standard(np.std)
def _std(
    e: Emitter, a: Any, axis: Any = None, dtype: None = None, out: None = None, ddof: Any = 0, keepdims: Any = False
) -> Operand:
    if dtype is not None:
        raise NotStandard("dtype=")
    return e.add("Sqrt", _variance(e, a, axis, ddof, keepdims))


def _truth(e: Emitter, op_type: str, a: Any, axis: Any, keepdims: Any) -> Operand:
    x = e.operand(a)
    if x.dtype is None or x.dtype.kind not in "biu":
        raise NotStandard("any and all of floats, of which NaN is true")
    truth = e.cast(e.cast(x, bool), np.int32)
    return e.cast(_reduce(e, op_type, Operand(truth.name, truth.dtype, x.shape), axis, keepdims), bool)


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
