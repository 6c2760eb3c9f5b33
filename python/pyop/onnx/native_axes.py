"""Operators of ONNX that move elements, reduce along axes or multiply matrices, as NumPy functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .native import OnnxNode, native

__all__: list[str] = []


@native("Identity")
def _identity(n: OnnxNode) -> Any:
    return n.values[0] if len(n.values) == 1 and n.only() else None


@native("Transpose")
def _transpose(n: OnnxNode) -> Any:
    if len(n.values) != 1:
        return None
    (x,) = n.values
    axes = n.ints("perm")
    if not n.only("perm") or x.ndim is None or (axes is not None and sorted(axes) != list(range(x.ndim))):
        return None
    return np.transpose(x, axes)


@native("Reshape")
def _reshape(n: OnnxNode) -> Any:
    shape = n.known(1)
    if not n.only() or shape is None or shape.ndim != 1 or any(size == 0 or size < -1 for size in shape):
        return None
    x = n.values[0]
    if x.shape is None or list(shape).count(-1) > 1:
        return None
    if all(isinstance(size, int) for size in x.shape):
        have, want = math.prod(x.shape), abs(math.prod(map(int, shape)))
        if have % want if -1 in shape else have != want:
            return None
    return np.reshape(x, tuple(map(int, shape)))


@native("MatMul")
def _matmul(n: OnnxNode) -> Any:
    if len(n.values) != 2:
        return None
    x, y = n.values
    if x.dtype != y.dtype or x.dtype.kind != "f" or not x.ndim or not y.ndim:
        return None
    return np.matmul(x, y)


def _axes(n: OnnxNode, since: int) -> tuple[int, ...] | None:
    """The axes that an operator has, since some version as its second input; None if they are not known, or wrong."""
    if n.version >= since:
        found = n.known(1) if len(n.values) == 2 else None
        axes = None if found is None or found.ndim != 1 else tuple(map(int, found))
    else:
        axes = n.ints("axes") if len(n.values) == 1 else None
    return axes or None


def _within(axes: tuple[int, ...], ndim: int) -> bool:
    return all(-ndim <= axis < ndim for axis in axes) and len({axis % ndim for axis in axes}) == len(axes)


@native("Squeeze")
def _squeeze(n: OnnxNode) -> Any:
    axes, x = _axes(n, 13), n.values[0]
    # Before, the axes were taken away one after the other.
    if axes is None or (n.version < 13 and len(axes) > 1) or not n.only("axes") or x.shape is None:
        return None
    if not _within(axes, x.ndim):
        return None
    return np.squeeze(x, axes) if all(x.shape[axis] == 1 for axis in axes) else None


@native("Unsqueeze")
def _unsqueeze(n: OnnxNode) -> Any:
    axes, x = _axes(n, 13), n.values[0]
    # Before, the axes were added one after the other.
    if axes is None or (n.version < 13 and len(axes) > 1) or not n.only("axes") or x.ndim is None:
        return None
    return np.expand_dims(x, axes) if _within(axes, x.ndim + len(axes)) else None


@native("Concat")
def _concat(n: OnnxNode) -> Any:
    axis = n.integer("axis", 0)
    ranks = {v.ndim for v in n.values}
    if (
        not n.only("axis")
        or len({v.dtype for v in n.values}) != 1
        or len(ranks) != 1
        or not ranks.isdisjoint({None, 0})
    ):
        return None
    return np.concatenate(n.values, axis) if _within((axis,), *ranks) else None


@native("Slice")
def _slice(n: OnnxNode) -> Any:
    x = n.values[0]
    parts = [n.known(k) for k in range(1, len(n.values))]
    if n.version < 10 or not n.only() or x.ndim is None or not 2 <= len(parts) <= 4:
        return None
    if any(part is None or part.ndim != 1 or part.size != parts[0].size for part in parts):
        return None
    starts, ends, *rest = (tuple(map(int, part)) for part in parts)
    axes = rest[0] if rest else tuple(range(len(starts)))
    steps = rest[1] if len(rest) > 1 else (1,) * len(starts)
    if not x.ndim or not _within(axes, x.ndim) or 0 in steps:
        return None
    key = [slice(None)] * x.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        key[axis] = slice(start, end, step)
    return x[tuple(key)]


@native("Gather")
def _gather(n: OnnxNode) -> Any:
    if len(n.values) != 2 or not n.only("axis"):
        return None
    x, indices = n.values
    axis = n.integer("axis", 0)
    if indices.dtype not in (np.int32, np.int64) or not x.ndim or indices.ndim is None or not _within((axis,), x.ndim):
        return None
    return np.take(x, indices, axis)


@native("Flatten")
def _flatten(n: OnnxNode) -> Any:
    (x, *rest) = n.values
    if (
        rest
        or not n.only("axis")
        or n.integer("axis", 1) != 1
        or x.shape is None
        or not x.ndim
        or not _some(x, range(x.ndim))
    ):
        return None
    return np.reshape(x, (x.shape[0], -1))


# --- along axes


def _some(x: Any, axes: Any) -> bool:
    """Whether there are elements along axes, for certain."""
    return all(isinstance(x.shape[axis], int) and x.shape[axis] > 0 for axis in axes)


_REDUCTIONS: dict[str, tuple[Any, int]] = {  # with the version since which the axes are an input
    "ReduceMax": (np.max, 18),
    "ReduceMean": (np.mean, 18),
    "ReduceMin": (np.min, 18),
    "ReduceProd": (np.prod, 18),
    "ReduceSum": (np.sum, 13),
}


@native(*_REDUCTIONS)
def _reduce(n: OnnxNode) -> Any:
    function, since = _REDUCTIONS[n.node.op_type]
    x = n.values[0]
    if not n.only("axes", "keepdims", "noop_with_empty_axes") or x.shape is None or x.dtype.kind not in "iuf":
        return None
    axes = _axes(n, since)
    if axes is None and (len(n.values) > 1 or "axes" in n.attributes or n.integer("noop_with_empty_axes", 0)):
        return None
    if axes is not None and not _within(axes, x.ndim):
        return None
    keywords = {"axis": axes, "keepdims": n.integer("keepdims", 1) == 1}
    if function in (np.max, np.min):
        return function(x, **keywords) if _some(x, range(x.ndim) if axes is None else axes) else None
    if function is np.mean and x.dtype.kind != "f":
        return None
    return function(x, dtype=x.dtype, **keywords)


@native("CumSum")
def _cumsum(n: OnnxNode) -> Any:
    axis, x = n.known(1), n.values[0]
    if axis is None or axis.ndim or n.integer("exclusive", 0) or n.integer("reverse", 0):
        return None
    if (
        not n.only("exclusive", "reverse")
        or x.dtype.kind not in "iuf"
        or not x.ndim
        or not _within((int(axis),), x.ndim)
    ):
        return None
    return np.cumsum(x, int(axis), dtype=x.dtype)


@native("Softmax", "LogSoftmax")
def _softmax(n: OnnxNode) -> Any:
    (x, *rest) = n.values
    axis = n.integer("axis", -1)
    if rest or n.version < 13 or not n.only("axis") or x.dtype.kind != "f" or x.shape is None:
        return None
    if not _within((axis,), x.ndim) or not _some(x, (axis,)):
        return None
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    found = e / np.sum(e, axis=axis, keepdims=True)
    return found if n.node.op_type == "Softmax" else np.log(found)


@native("Gemm")
def _gemm(n: OnnxNode) -> Any:
    if not 2 <= len(n.values) <= 3 or not n.only("alpha", "beta", "transA", "transB"):
        return None
    a, b, *rest = n.values
    if len({v.dtype for v in n.values}) != 1 or a.dtype.kind != "f" or a.ndim != 2 or b.ndim != 2:
        return None
    a, b = (x.T if n.integer(name, 0) else x for x, name in ((a, "transA"), (b, "transB")))
    # The reference adds in place, which takes nothing that is larger.
    if rest and (rest[0].ndim != 1 or rest[0].shape[0] is None or rest[0].shape[0] != b.shape[1]):
        return None
    found = np.dot(a, b) * n.number("alpha", 1.0)
    beta = n.number("beta", 1.0)
    return found + rest[0] * beta if rest and beta != 0 else found
