"""Export functions that join arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...onnx.standard import Emitter, NotStandard, Operand, standard
from ...onnx.standard.ufuncs import same_dtype
from ..reshaping.onnx import flat


def _many(arrays: Any) -> Any:
    if not isinstance(arrays, tuple | list):
        raise NotStandard("one array, of which the parts are to be joined")
    return arrays


@standard(np.concatenate)
def _concatenate(e: Emitter, arrays: Any, /, axis: Any = 0, out: None = None) -> Operand:
    xs = same_dtype(e, _many(arrays))
    if axis is None:
        return e.add("Concat", *(flat(e, x) for x in xs), axis=0)
    return e.add("Concat", *xs, axis=int(axis))


@standard(np.append)
def _append(e: Emitter, arr: Any, values: Any, axis: Any = None) -> Operand:
    return _concatenate(e, (e.operand(arr), e.operand(values)), axis)


@standard(np.stack)
def _stack(e: Emitter, arrays: Any, axis: Any = 0, out: None = None) -> Operand:
    xs, axes = same_dtype(e, _many(arrays)), e.ints([axis])
    return e.add("Concat", *(e.add("Unsqueeze", x, axes) for x in xs), axis=int(axis))


def _of_rank(e: Emitter, x: Operand, shape: list[int]) -> Operand:
    if x.ndim == 2 < len(shape):
        return e.add("Unsqueeze", x, e.ints([2]))
    return x if x.ndim >= 2 else e.add("Reshape", x, e.ints(shape))


def _stacked(axis: int, shape: list[int]) -> Callable[..., Operand]:
    """Return the rule that joins along an axis what has as many dimensions, vectors and numbers in this shape."""

    def rule(e: Emitter, tup: Any) -> Operand:
        return e.add("Concat", *(_of_rank(e, x, shape) for x in same_dtype(e, _many(tup))), axis=axis)

    return rule


standard(np.vstack)(_stacked(0, [1, -1]))
standard(np.column_stack)(_stacked(1, [-1, 1]))
standard(np.dstack)(_stacked(2, [1, -1, 1]))


@standard(np.hstack)
def _hstack(e: Emitter, tup: Any) -> Operand:
    xs = [x if x.ndim else e.add("Reshape", x, e.ints([1])) for x in same_dtype(e, _many(tup))]
    return e.add("Concat", *xs, axis=0 if xs and (xs[0].shape is None or len(xs[0].shape) == 1) else 1)
