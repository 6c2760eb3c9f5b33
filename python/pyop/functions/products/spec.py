"""Infer sums of products: dot, tensordot, einsum, kron, cross."""

from __future__ import annotations

from string import ascii_lowercase, ascii_uppercase
from typing import Any

import numpy as np

from ...declare.dims import Extent
from ...declare.spec import Spec
from .. import rule, ufuncs
from ..forms import each
from ..operand import Operand, Sample, Shape, one, operand, probe
from ..shape import axis_of, broadcast, dropped, merge, mul, prod, same, text


def _pair_dtype(func: Any, a: Operand, b: Operand) -> Any:
    return probe(func, one(a), one(b))


def contracted(a: Shape, b: Shape, axis: int, what: str) -> Shape:
    """Return the last axis of ``a`` summed against an axis of ``b``."""
    if a is None or b is None:
        return None
    if not a or not b:
        return a + b
    k = axis if len(b) > 1 else 0
    merge(
        a[-1],
        b[k],
        f"{what}: shapes {text(a)} and {text(b)} not aligned: {a[-1]} (dim {len(a) - 1}) != {b[k]} (dim {k % len(b)})",
    )
    return a[:-1] + dropped(b, k % len(b))


@each(np.dot, np.inner)
def _dot(func: Any, a: Any, b: Any, out: Any = None) -> Spec:
    left, right = operand(a), operand(b)
    shape = contracted(left.shape, right.shape, -2 if func is np.dot else -1, f"np.{func.__name__}")
    return Spec(_pair_dtype(func, left, right), shape)


@rule(np.vdot)
def _vdot(a: Any, b: Any, /) -> Spec:
    left, right = operand(a), operand(b)
    if left.shape is not None and right.shape is not None:
        merge(prod(left.shape), prod(right.shape), "cannot multiply vectors of different sizes in np.vdot")
    return Spec(_pair_dtype(np.vdot, left, right), ())


@rule(np.outer)
def _outer(a: Any, b: Any, out: Any = None) -> Spec:
    left, right = operand(a), operand(b)
    sizes = tuple(None if part.shape is None else prod(part.shape) for part in (left, right))
    return Spec(_pair_dtype(np.outer, left, right), sizes)


@rule("linalg.outer")
def _vector_outer(x1: Any, x2: Any, /) -> Spec:
    for part in (operand(x1), operand(x2)):
        if part.ndim not in (None, 1):
            raise ValueError("Input arrays must be one-dimensional, but they are not")
    return _outer(x1, x2)


@each("linalg.matmul", "linalg.vecdot")
def _of_ufunc(func: Any, x1: Any, x2: Any, /, **options: Any) -> Any:
    return ufuncs.infer(getattr(np, func.__name__), "__call__", (x1, x2), options)


@rule("tensordot", "linalg.tensordot")
def _tensordot(a: Any, b: Any, axes: Any = 2) -> Spec:
    left, right = operand(a), operand(b)
    dtype = _pair_dtype(np.outer, left, right)
    dtype = probe(np.tensordot, one(left), one(right), 0) if dtype is not None else None
    if left.shape is None or right.shape is None:
        return Spec(dtype, None)
    if isinstance(axes, (int, np.integer)):
        if axes > min(len(left.shape), len(right.shape)):
            raise ValueError("shape-mismatch for sum: more axes to sum over than an array has")
        first = tuple(range(len(left.shape) - axes, len(left.shape)))
        second = tuple(range(axes))
    else:
        first, second = (tuple(item) if isinstance(item, (list, tuple)) else (item,) for item in axes)
        if len(first) != len(second):
            raise ValueError("shape-mismatch for sum")
        first = tuple(axis_of(k, len(left.shape)) for k in first)
        second = tuple(axis_of(k, len(right.shape)) for k in second)
    for i, j in zip(first, second, strict=True):
        merge(left.shape[i], right.shape[j], f"shape-mismatch for sum over axis {i} of a and axis {j} of b")
    return Spec(dtype, dropped(left.shape, *first) + dropped(right.shape, *second))


@rule(np.kron)
def _kron(a: Any, b: Any) -> Spec:
    left, right = operand(a), operand(b)
    dtype = _pair_dtype(np.kron, left, right)
    if left.shape is None or right.shape is None:
        return Spec(dtype, None)
    ndim = max(len(left.shape), len(right.shape))
    first = (1,) * (ndim - len(left.shape)) + left.shape
    second = (1,) * (ndim - len(right.shape)) + right.shape
    return Spec(dtype, tuple(mul(m, n) for m, n in zip(first, second, strict=True)))


def _crossed(a: Any, b: Any, axisa: int, axisb: int, axisc: int, *, three: bool) -> Spec:
    left, right = operand(a), operand(b)
    dtype = probe(np.multiply, one(left), one(right))
    if left.shape is None or right.shape is None:
        return Spec(dtype, None)
    if not left.shape or not right.shape:
        raise ValueError("At least one array has zero dimension")
    i, j = axis_of(axisa, len(left.shape)), axis_of(axisb, len(right.shape))
    m, n = left.shape[i], right.shape[j]
    for size in (m, n):
        if isinstance(size, int) and size not in ((3,) if three else (2, 3)):
            raise ValueError(
                f"incompatible dimensions for cross product (must be {'3' if three else '2 or 3'}): {m} and {n}"
            )
    rest = broadcast(dropped(left.shape, i), dropped(right.shape, j))
    if rest is None:
        return Spec(dtype, None)
    if m == 2 and n == 2:
        return Spec(dtype, rest)
    if m != 3 and n != 3 and not three:
        return Spec(dtype, None)
    k = axis_of(axisc, len(rest) + 1)
    return Spec(dtype, (*rest[:k], 3, *rest[k:]))


@rule(np.cross)
def _cross(a: Any, b: Any, axisa: Any = -1, axisb: Any = -1, axisc: Any = -1, axis: Any = None) -> Spec:
    if axis is not None:
        axisa = axisb = axisc = axis
    return _crossed(a, b, axisa, axisb, axisc, three=False)


@rule("linalg.cross")
def _cross3(x1: Any, x2: Any, /, *, axis: Any = -1) -> Spec:
    return _crossed(x1, x2, axis, axis, axis, three=True)


@rule(np.einsum)
def _einsum(
    *operands: Any, out: Any = None, dtype: Any = None, order: Any = "K", casting: Any = "safe", optimize: Any = False
) -> Spec:
    text, arrays = subscripts(operands)
    parts = [operand(item) for item in arrays]
    result = None
    if dtype is not None:
        result = np.dtype(dtype)
    elif all(part.dtype is not None for part in parts):
        result = probe(np.einsum, ",".join("a" * len(parts)) + "->", *(Sample(part.dtype, (1,)) for part in parts))
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(parts):
        raise ValueError(
            "more operands provided to einstein sum function than specified in the subscripts string"
            if len(terms) < len(parts)
            else "fewer operands provided to einstein sum function than specified in the subscripts string"
        )
    sizes: dict[str, Extent] = {}
    loops: list[Shape] = []
    for k, (term, part) in enumerate(zip(terms, parts, strict=True)):
        _read(term, part.shape, k, sizes, loops)
    loop = broadcast(*loops) if loops else ()
    labels = right if arrow else implicit(left)
    if "..." not in labels:
        return Spec(result, tuple(sizes[label] for label in _known(labels, sizes)))
    before, after = (tuple(sizes[label] for label in _known(half, sizes)) for half in labels.split("..."))
    return Spec(result, None if loop is None else before + loop + after)


LETTERS = ascii_uppercase + ascii_lowercase


def subscripts(args: tuple[Any, ...]) -> tuple[str, list[Any]]:
    """Return the text of subscripts and the arrays, from either spelling of einsum's arguments."""
    if not args:
        raise ValueError("must specify the einstein sum subscripts string and at least one operand")
    if isinstance(args[0], str):
        return args[0].replace(" ", ""), list(args[1:])

    def text(labels: Any) -> str:
        return "".join("..." if label is Ellipsis else LETTERS[int(label)] for label in labels)

    pairs = len(args) // 2
    result = ",".join(text(args[2 * k + 1]) for k in range(pairs))
    if len(args) % 2:
        result += "->" + text(args[-1])
    return result, [args[2 * k] for k in range(pairs)]


def _read(term: str, shape: Shape, k: int, sizes: dict[str, Extent], loops: list[Shape]) -> None:
    """Bind the labels of one operand to the sizes of its axes."""
    before, dots, after = term.partition("...")
    if shape is None:
        for label in before + after:
            sizes.setdefault(label, None)
        loops.extend([None] if dots else [])
        return
    named = len(before) + len(after)
    if named > len(shape) or (named < len(shape) and not dots):
        raise ValueError(
            f"operand {k} has {len(shape)} dimensions, which does not match the subscripts {term!r} of einsum"
        )
    if dots:
        loops.append(shape[len(before) : len(shape) - len(after)])
    axes = shape[: len(before)] + shape[len(shape) - len(after) :]
    for label, size in zip(before + after, axes, strict=True):
        have = sizes.get(label, 1)
        if label not in sizes or same(have, 1):
            sizes[label] = size
        elif not same(size, 1):
            # One stretches to any size, so a label is as long as its longest axis.
            if isinstance(have, int) and isinstance(size, int) and have != size:
                raise ValueError(
                    f"operands could not be broadcast together: label {label!r} is {have} and {size} in einsum"
                )
            if isinstance(size, int):
                sizes[label] = size
            elif not isinstance(have, int) and not same(have, size):
                sizes[label] = None


def implicit(left: str) -> str:
    letters = left.replace("...", "").replace(",", "")
    return ("..." if "..." in left else "") + "".join(sorted(c for c in set(letters) if letters.count(c) == 1))


def _known(labels: str, sizes: dict[str, Extent]) -> str:
    for label in labels:
        if label not in sizes:
            raise ValueError(
                f"einstein sum subscripts string included output subscript '{label}' which never appeared in an input"
            )
    return labels
