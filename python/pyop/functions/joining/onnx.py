"""Arrays put beside each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...onnx.standard import standard
from ...onnx.standard.axes import axis_of
from ...onnx.standard.emitter import Emitter, NotStandard, Operand
from ...onnx.standard.ufuncs import same_dtype
from ..reshaping.onnx import flat


def _many(arrays: Any) -> Any:
    if not isinstance(arrays, tuple | list):
        raise NotStandard("one array, of which the parts are to be joined")
    return arrays


@standard(np.column_stack)
def _column_stack(e: Emitter, tup: Any) -> Operand:
    xs = [e.add("Reshape", x, e.ints([-1, 1])) if x.ndim < 2 else x for x in same_dtype(e, _many(tup))]
    return e.add("Concat", *xs, axis=1)


@standard(np.dstack)
def _dstack(e: Emitter, tup: Any) -> Operand:
    xs = []
    for x in same_dtype(e, _many(tup)):
        if x.ndim < 2:
            x = e.add("Reshape", x, e.ints([1, -1, 1]))
        elif x.ndim == 2:
            x = e.add("Unsqueeze", x, e.ints([2]))
        xs.append(x)
    return e.add("Concat", *xs, axis=2)


@standard(np.append)
def _append(e: Emitter, arr: Any, values: Any, axis: Any = None) -> Operand:
    xs = same_dtype(e, (e.operand(arr), e.operand(values)))
    if axis is None:
        return e.add("Concat", *(flat(e, x) for x in xs), axis=0)
    return e.add("Concat", *xs, axis=axis_of(axis, xs[0].ndim))


@standard(np.concatenate)
def _concatenate(e: Emitter, arrays: Any, /, axis: Any = 0, out: None = None) -> Operand:
    if not isinstance(arrays, tuple | list):
        raise NotStandard("concatenate of one array")
    if axis is None:
        xs = [e.add("Reshape", x, e.ints([-1])) for x in same_dtype(e, arrays)]
        return e.add("Concat", *xs, axis=0)
    return e.add("Concat", *same_dtype(e, arrays), axis=int(axis))


@standard(np.stack)
def _stack(e: Emitter, arrays: Any, axis: Any = 0, out: None = None) -> Operand:
    if not isinstance(arrays, tuple | list):
        raise NotStandard("stack of one array")
    axes = e.ints([axis])
    return e.add("Concat", *(e.add("Unsqueeze", x, axes) for x in same_dtype(e, arrays)), axis=int(axis))


@standard(np.vstack)
def _vstack(e: Emitter, tup: Any) -> Operand:
    if not isinstance(tup, tuple | list):
        raise NotStandard("vstack of one array")
    return e.add("Concat", *(_at_least_2d(e, x) for x in same_dtype(e, tup)), axis=0)


def _at_least_2d(e: Emitter, x: Operand) -> Operand:
    return x if x.ndim >= 2 else e.add("Reshape", x, e.ints([1, -1]))


@standard(np.hstack)
def _hstack(e: Emitter, tup: Any) -> Operand:
    if not isinstance(tup, tuple | list):
        raise NotStandard("hstack of one array")
    xs = [x if x.ndim else e.add("Reshape", x, e.ints([1])) for x in same_dtype(e, tup)]
    return e.add("Concat", *xs, axis=0 if xs and (xs[0].shape is None or len(xs[0].shape) == 1) else 1)
