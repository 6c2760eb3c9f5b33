"""Map operators of ONNX that move elements, reduce along axes or multiply matrices to NumPy functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .native import NUMBERS, OnnxNode, native

__all__: list[str] = []


def _axes(n: OnnxNode, since: int) -> tuple[int, ...] | None:
    """Return the axes of an operator, an input since some version; None if they are unknown, or wrong."""
    if n.version >= since:
        constant = n.known(1) if len(n.values) == 2 else None
        axes = None if constant is None or constant.ndim != 1 else tuple(map(int, constant))
    else:
        axes = n.ints("axes") if len(n.values) == 1 else None
    return axes or None


def _within(axes: tuple[int, ...], ndim: Any) -> bool:
    """Return whether these are axes, each once, of an array of known rank that is not zero."""
    return (
        bool(ndim) and all(-ndim <= axis < ndim for axis in axes) and len({axis % ndim for axis in axes}) == len(axes)
    )


def _some(x: Any, axes: Any) -> bool:
    """Return whether there certainly are elements along axes."""
    return all(isinstance(x.shape[axis], int) and x.shape[axis] > 0 for axis in axes)


@native("Identity")
def _identity(n: OnnxNode) -> Any:
    return n.values[0]


@native("Transpose", attributes="perm", alike=True)
def _transpose(n: OnnxNode) -> Any:
    (x,), axes = n.values, n.ints("perm")
    return np.transpose(x, axes) if axes is None or sorted(axes) == list(range(x.ndim)) else None


@native("Reshape", inputs=2)
def _reshape(n: OnnxNode) -> Any:
    x, shape = n.values[0], n.known(1)
    if x.shape is None or shape is None or shape.ndim != 1 or any(size == 0 or size < -1 for size in shape):
        return None
    if list(shape).count(-1) > 1:
        return None
    if all(isinstance(size, int) for size in x.shape):
        have, want = math.prod(x.shape), abs(math.prod(map(int, shape)))
        if have % want if -1 in shape else have != want:
            return None
    return np.reshape(x, tuple(map(int, shape)))


@native("MatMul", inputs=2, kinds="f", alike=True)
def _matmul(n: OnnxNode) -> Any:
    return np.matmul(*n.values) if all(x.ndim for x in n.values) else None


@native("Squeeze", inputs=(1, 2), attributes="axes")
def _squeeze(n: OnnxNode) -> Any:
    axes, x = _axes(n, 13), n.values[0]
    # Before, the axes were taken away one after the other.
    if axes is None or (n.version < 13 and len(axes) > 1) or not _within(axes, x.ndim):
        return None
    return np.squeeze(x, axes) if all(x.shape[axis] == 1 for axis in axes) else None


@native("Unsqueeze", inputs=(1, 2), attributes="axes")
def _unsqueeze(n: OnnxNode) -> Any:
    axes, x = _axes(n, 13), n.values[0]
    # Before, the axes were added one after the other.
    if axes is None or (n.version < 13 and len(axes) > 1) or x.ndim is None:
        return None
    return np.expand_dims(x, axes) if _within(axes, x.ndim + len(axes)) else None


@native("Concat", inputs=(1, 2**31), attributes="axis", alike=True)
def _concat(n: OnnxNode) -> Any:
    axis, ranks = n.integer("axis", 0), {v.ndim for v in n.values}
    return np.concatenate(n.values, axis) if len(ranks) == 1 and _within((axis,), *ranks) else None


@native("Slice", inputs=(3, 5), since=10)
def _slice(n: OnnxNode) -> Any:
    x = n.values[0]
    parts = [n.known(k) for k in range(1, len(n.values))]
    if any(part is None or part.ndim != 1 or part.size != parts[0].size for part in parts):
        return None
    starts, ends, *rest = (tuple(map(int, part)) for part in parts)
    axes = rest[0] if rest else tuple(range(len(starts)))
    steps = rest[1] if len(rest) > 1 else (1,) * len(starts)
    if not _within(axes, x.ndim) or 0 in steps:
        return None
    key = [slice(None)] * x.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        key[axis] = slice(start, end, step)
    return x[tuple(key)]


@native("Gather", inputs=2, attributes="axis")
def _gather(n: OnnxNode) -> Any:
    (x, indices), axis = n.values, n.integer("axis", 0)
    if indices.dtype not in (np.int32, np.int64) or indices.ndim is None or not _within((axis,), x.ndim):
        return None
    return np.take(x, indices, axis)


@native("Flatten", attributes="axis")
def _flatten(n: OnnxNode) -> Any:
    (x,) = n.values
    if n.integer("axis", 1) != 1 or not x.ndim or not _some(x, range(x.ndim)):
        return None
    return np.reshape(x, (x.shape[0], -1))


# --- along axes


_REDUCTIONS: dict[str, tuple[Any, int]] = {  # with the version since which the axes are an input
    "ReduceMax": (np.max, 18),
    "ReduceMean": (np.mean, 18),
    "ReduceMin": (np.min, 18),
    "ReduceProd": (np.prod, 18),
    "ReduceSum": (np.sum, 13),
}


@native(*_REDUCTIONS, inputs=(1, 2), attributes="axes keepdims noop_with_empty_axes", kinds=NUMBERS)
def _reduce(n: OnnxNode) -> Any:
    function, since = _REDUCTIONS[n.node.op_type]
    x, axes = n.values[0], _axes(n, since)
    if axes is None and (len(n.values) > 1 or "axes" in n.attributes or n.integer("noop_with_empty_axes", 0)):
        return None
    if x.shape is None or (axes is not None and not _within(axes, x.ndim)):
        return None
    keywords = {"axis": axes, "keepdims": n.integer("keepdims", 1) == 1}
    if function in (np.max, np.min):
        return function(x, **keywords) if _some(x, range(x.ndim) if axes is None else axes) else None
    if function is np.mean and x.dtype.kind != "f":
        return None
    return function(x, dtype=x.dtype, **keywords)


@native("CumSum", inputs=2, attributes="exclusive reverse", kinds=NUMBERS)
def _cumsum(n: OnnxNode) -> Any:
    x, axis = n.values[0], n.known(1)
    if axis is None or axis.ndim or n.integer("exclusive", 0) or n.integer("reverse", 0):
        return None
    return np.cumsum(x, int(axis), dtype=x.dtype) if _within((int(axis),), x.ndim) else None


@native("Softmax", "LogSoftmax", attributes="axis", kinds="f", since=13)
def _softmax(n: OnnxNode) -> Any:
    (x,), axis = n.values, n.integer("axis", -1)
    if not _within((axis,), x.ndim) or not _some(x, (axis,)):
        return None
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    result = e / np.sum(e, axis=axis, keepdims=True)
    return result if n.node.op_type == "Softmax" else np.log(result)


@native("Gemm", inputs=(2, 3), attributes="alpha beta transA transB", kinds="f", alike=True)
def _gemm(n: OnnxNode) -> Any:
    a, b, *rest = n.values
    if a.ndim != 2 or b.ndim != 2:
        return None
    a, b = (x.T if n.integer(name, 0) else x for x, name in ((a, "transA"), (b, "transB")))
    # The reference adds in place, which takes nothing that is larger.
    if rest and (rest[0].ndim != 1 or rest[0].shape[0] is None or rest[0].shape[0] != b.shape[1]):
        return None
    result = np.dot(a, b) * n.number("alpha", 1.0)
    beta = n.number("beta", 1.0)
    return result + rest[0] * beta if rest and beta != 0 else result
