"""Export products of arrays."""

from __future__ import annotations

import string
from collections.abc import Callable
from typing import Any

import numpy as np

from ...onnx.standard import Emitter, NotStandard, Operand, standard
from ...onnx.standard.ufuncs import emit_ufunc, rule_of, same_dtype

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


def _matrix_and_vector(vector: int, axis: int) -> Callable[..., Operand]:
    """Return the rule of a product in which one argument is a vector, that becomes a matrix along an axis."""

    def rule(e: Emitter, a: Any, b: Any, /) -> Operand:
        xs = [e.operand(a), e.operand(b)]
        x = xs[vector]
        xs[vector] = e.add("Unsqueeze", x, e.ints([axis])).with_rank(x.ndim + 1)
        return e.add("Squeeze", emit_ufunc(e, np.matmul, tuple(xs)), e.ints([axis]))

    return rule


standard(getattr(np, "matvec", None))(_matrix_and_vector(1, -1))
standard(getattr(np, "vecmat", None))(_matrix_and_vector(0, -2))
standard(np.matmul)(rule_of(np.matmul))


@standard(np.outer)
def _outer(e: Emitter, a: Any, b: Any) -> Operand:
    x, y = same_dtype(e, (e.operand(a), e.operand(b)))
    return e.add("Mul", e.add("Reshape", x, e.ints([-1, 1])), e.add("Reshape", y, e.ints([1, -1])))
