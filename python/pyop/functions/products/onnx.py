"""Products of arrays, norms, and what stands on diagonals."""

from __future__ import annotations

import string
from typing import Any

import numpy as np

from ...onnx.standard import standard
from ...onnx.standard.emitter import Emitter, NotStandard, Operand
from ..elementwise.onnx import emit_ufunc, same_dtype
from ..reductions.onnx import axes_of, reduced

__all__: list[str] = []

_EINSUM = (np.float16, np.float32, np.float64, np.int32, np.int64)


def _einsum_of(e: Emitter, equation: str, xs: Any) -> Operand:
    given = same_dtype(e, xs)
    if equation.partition("->")[0].count("...") > 1 and len({x.shape for x in given}) > 1:
        raise NotStandard("an ellipsis that stands for different axes")
    if given[0].dtype not in _EINSUM:
        raise NotStandard(f"einsum of {given[0].dtype}")
    return e.add("Einsum", *given, equation=equation)


@standard(np.einsum)
def _einsum(e: Emitter, subscripts: Any, /, *operands: Any, optimize: Any = False) -> Operand:
    if not isinstance(subscripts, str):
        raise NotStandard("einsum with lists of axes")
    return _einsum_of(e, subscripts.replace(" ", ""), operands)


@standard(np.inner)
def _inner(e: Emitter, a: Any, b: Any, /) -> Operand:
    x, y = e.operand(a), e.operand(b)
    if x.ndim == 0 or y.ndim == 0:
        return emit_ufunc(e, np.multiply, (x, y))
    left, right = _letters(x.ndim - 1, y.ndim - 1)
    return _einsum_of(e, f"{left}z,{right}z->{left}{right}", (x, y))


def _letters(*counts: int) -> list[str]:
    names = iter(string.ascii_letters[:25])
    try:
        return ["".join(next(names) for _ in range(count)) for count in counts]
    except (StopIteration, RuntimeError):
        raise NotStandard("more axes than an equation has letters") from None


@standard(np.dot)
def _dot(e: Emitter, a: Any, b: Any, /) -> Operand:
    x, y = e.operand(a), e.operand(b)
    if x.ndim == 0 or y.ndim == 0:
        return emit_ufunc(e, np.multiply, (x, y))
    if (x.ndim > 2 and y.ndim > 1) or y.ndim > 2:
        left, right, last = _letters(x.ndim - 1, y.ndim - 2, 1)
        return _einsum_of(e, f"{left}z,{right}z{last}->{left}{right}{last}", (x, y))
    return emit_ufunc(e, np.matmul, (x, y))


@standard(np.vdot)
def _vdot(e: Emitter, a: Any, b: Any, /) -> Operand:
    x, y = (e.add("Reshape", e.operand(v), e.ints([-1])).with_rank(1) for v in (a, b))
    return emit_ufunc(e, np.matmul, (x, y))


@standard(np.tensordot)
def _tensordot(e: Emitter, a: Any, b: Any, axes: Any = 2) -> Operand:
    x, y = e.operand(a), e.operand(b)
    if isinstance(axes, int):
        pairs = [(x.ndim - axes + k, k) for k in range(axes)]
    else:
        one, two = ([part] if isinstance(part, int) else list(part) for part in axes)
        pairs = [(int(i) % x.ndim, int(j) % y.ndim) for i, j in zip(one, two, strict=True)]
    (names,) = _letters(x.ndim + y.ndim)
    left, right = list(names[: x.ndim]), list(names[x.ndim :])
    for i, j in pairs:
        right[j] = left[i]
    summed = {left[i] for i, _ in pairs}
    result = "".join(c for c in (*left, *right) if c not in summed)
    return _einsum_of(e, f"{''.join(left)},{''.join(right)}->{result}", (x, y))


@standard(getattr(np, "vecdot", None), getattr(np.linalg, "vecdot", None))
def _vecdot(e: Emitter, a: Any, b: Any, /, *, axis: Any = -1) -> Operand:
    if axis != -1:
        raise NotStandard("vecdot along another axis")
    return e.add("ReduceSum", emit_ufunc(e, np.multiply, (e.operand(a), e.operand(b))), e.ints([-1]), keepdims=0)


@standard(getattr(np, "matvec", None))
def _matvec(e: Emitter, a: Any, b: Any, /) -> Operand:
    y = e.operand(b)
    column = e.add("Unsqueeze", y, e.ints([-1])).with_rank(y.ndim + 1)
    return e.add("Squeeze", emit_ufunc(e, np.matmul, (e.operand(a), column)), e.ints([-1]))


@standard(getattr(np, "vecmat", None))
def _vecmat(e: Emitter, a: Any, b: Any, /) -> Operand:
    x = e.operand(a)
    row = e.add("Unsqueeze", x, e.ints([-2])).with_rank(x.ndim + 1)
    return e.add("Squeeze", emit_ufunc(e, np.matmul, (row, e.operand(b))), e.ints([-2]))


@standard(np.trace)
def _trace(e: Emitter, a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Operand:
    found = _diagonal(e, a, offset, axis1, axis2)
    if found.dtype.kind not in "f" and found.dtype != np.int64:
        raise NotStandard(f"trace of {found.dtype}")
    return e.add("ReduceSum", found, keepdims=0)


@standard(np.diagonal)
def _diagonal(e: Emitter, a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Operand:
    x = e.operand(a)
    if x.ndim != 2 or (axis1, axis2) != (0, 1) or not isinstance(offset, int):
        raise NotStandard("a diagonal of what is no matrix")
    rows, columns = (e.add("Shape", x, dtype=np.int64, start=k, end=k + 1) for k in (0, 1))
    down, right = max(-offset, 0), max(offset, 0)
    count = e.add("Min", e.add("Sub", rows, e.ints([down])), e.add("Sub", columns, e.ints([right])))
    count = e.add("Squeeze", e.add("Max", count, e.ints([0])), e.ints([0]))
    numbers = e.add("Range", e.constant(0, np.int64), count, e.constant(1, np.int64))
    numbers = e.add("Unsqueeze", numbers, e.ints([1]))
    places = e.add("Concat", e.add("Add", numbers, e.ints([down])), e.add("Add", numbers, e.ints([right])), axis=1)
    return e.add("GatherND", x, places).with_rank(1)


# --- norms


@standard(np.linalg.norm)
def _norm(e: Emitter, x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Operand:
    a = _real(e, x)
    axes = list(range(a.ndim)) if axis is None else axes_of(a, axis) or []
    if ord is None or (ord == "fro" and len(axes) == 2):
        return reduced(e, "ReduceL2", a, None if axis is None else tuple(axes), keepdims)
    if isinstance(ord, str):
        raise NotStandard(f"the norm {ord!r:.40}")
    if len(axes) == 1:
        return _vector_norm(e, a, ord, axes[0], keepdims)
    if len(axes) != 2 or abs(ord) not in (1, np.inf):
        raise NotStandard(f"the norm {ord!r:.40} of {len(axes)} axes")
    first, last = axes if abs(ord) == 1 else axes[::-1]
    sums = reduced(e, "ReduceL1", a, first, True).like(a)
    found = reduced(e, "ReduceMax" if ord > 0 else "ReduceMin", sums, last, True)
    return found if keepdims else e.add("Squeeze", found, e.ints(axes))


@standard(np.linalg.vector_norm)
def _flat_norm(e: Emitter, x: Any, /, *, axis: Any = None, keepdims: Any = False, ord: Any = 2) -> Operand:
    a = _real(e, x)
    if axis is None and not keepdims:
        a, axis = e.add("Reshape", a, e.ints([-1])).with_rank(1), 0
    if axis is None or isinstance(axis, tuple):
        raise NotStandard("a norm over several axes")
    return _vector_norm(e, a, ord, axis, keepdims)


def _real(e: Emitter, x: Any) -> Operand:
    a = e.operand(x)
    if a.dtype is None or a.dtype.kind not in "biuf":
        raise NotStandard(f"a norm of {a.dtype}")
    return a if a.dtype.kind == "f" else e.cast(a, np.float64)


def _vector_norm(e: Emitter, a: Operand, ord: Any, axis: Any, keepdims: Any) -> Operand:
    if ord is None or ord in (1, 2):
        return reduced(e, "ReduceL1" if ord == 1 else "ReduceL2", a, axis, keepdims)
    if not isinstance(ord, int | float):
        raise NotStandard(f"the norm {ord!r:.40}")
    sizes = e.add("Abs", a).like(a)
    if ord in (np.inf, -np.inf):
        return reduced(e, "ReduceMax" if ord > 0 else "ReduceMin", sizes, axis, keepdims)
    if ord == 0:
        raise NotStandard("the number of elements that are not zero as a norm")
    powers = e.add("Pow", sizes, e.constant(ord, a.dtype)).like(a)
    return e.add("Pow", reduced(e, "ReduceSum", powers, axis, keepdims), e.constant(1 / ord, a.dtype))
