"""Compute with sizes that may be unknown: `Dim`, `Extent`, and arithmetic on them.

An extent is an ``int``, a `Dim` (known only at run, but related to other sizes), or ``None`` (nothing is known).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from math import gcd
from typing import TypeAlias

from .dim import Dim, DimTooLarge

__all__ = ["Dim", "DimTooLarge", "Extent", "add", "broadcast_shapes", "floordiv", "mul", "prod", "same", "sub"]

Extent: TypeAlias = int | Dim | None
"""One size: a number, a symbolic size, or None for unknown."""


def _known(operation: Callable[..., int | Dim], a: Extent, b: Extent) -> Extent:
    # An unknown operand makes the result unknown, and so does a result that would grow beyond reason.
    if a is None or b is None:
        return None
    try:
        return operation(a, b)
    except DimTooLarge:
        return None


def add(a: Extent, b: Extent) -> Extent:
    """Return ``a + b``; None if either is unknown."""
    return _known(operator.add, a, b)


def sub(a: Extent, b: Extent) -> Extent:
    """Return ``a - b``; None if either is unknown."""
    return _known(operator.sub, a, b)


def mul(a: Extent, b: Extent) -> Extent:
    """Return ``a * b``; None if either is unknown, except that zero times anything is zero."""
    if (isinstance(a, int) and a == 0) or (isinstance(b, int) and b == 0):
        return 0
    return _known(operator.mul, a, b)


def floordiv(a: Extent, b: Extent) -> Extent:
    """Return ``a // b``; None if either is unknown."""
    return _known(operator.floordiv, a, b)


def prod(extents: Iterable[Extent]) -> Extent:
    """Return the product of sizes: the number of elements of a shape.

    >>> print(prod([2, Dim("n"), 3]), prod([2, None]), prod([None, 0]))
    6*n None 0
    """
    result: Extent = 1
    for extent in extents:
        result = mul(result, extent)
    return result


def same(a: Extent, b: Extent) -> bool | None:
    """Return whether two sizes are equal. True and False are proofs, None means that it depends on the run.

    >>> n = Dim("n")
    >>> same(n + 1, 1 + n), same(n, n + 1), same(2 * n, 3), same(n, 3)
    (True, False, False, None)
    """
    if a is None or b is None:
        return None
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    difference = sub(a, b)
    if difference is None:
        return None
    if isinstance(difference, int):
        return difference == 0
    terms = dict(difference._terms)
    constant = terms.pop((), 0)
    if constant % gcd(*terms.values()):
        return False  # every other term is a multiple of what the constant is not
    if constant and all(isinstance(atom, str) for monomial in terms for atom in monomial):
        # Names are not negative: a sum whose terms all point one way does not come back to zero.
        sign = 1 if constant > 0 else -1
        if all(coef * sign > 0 for coef in terms.values()):
            return False
    return None


def broadcast_shapes(*shapes: tuple[Extent, ...] | None) -> tuple[Extent, ...] | None:
    """Return the shape that arrays of these shapes broadcast to; None (unknown rank) if one of them is None.

    ValueError for two sizes that are different numbers, neither of them 1. A symbolic size broadcast with a number
    other than 1 must be that number (or 1) at run. Two different symbolic sizes give an unknown one.

    >>> n = Dim("n")
    >>> broadcast_shapes((n, 1), (3,)) == (n, 3)
    True
    """
    known = [shape for shape in shapes if shape is not None]
    rank = max(map(len, known), default=0)
    result: list[Extent] = [1] * rank
    for shape in known:
        offset = rank - len(shape)
        for axis, extent in enumerate(shape, offset):
            result[axis] = _broadcast(result[axis], extent, known)
    return tuple(result) if len(known) == len(shapes) else None


def _broadcast(a: Extent, b: Extent, shapes: list[tuple[Extent, ...]]) -> Extent:
    if isinstance(a, int):
        if isinstance(b, int) and a != b and a != 1 and b != 1:
            texts = " ".join("(" + ",".join(map(str, s)) + ("," if len(s) == 1 else "") + ")" for s in shapes)
            raise ValueError(f"operands could not be broadcast together with shapes {texts}".replace("None", "?"))
        return b if a == 1 else a
    if isinstance(b, int):
        return a if b == 1 else b
    return a if a == b else None
