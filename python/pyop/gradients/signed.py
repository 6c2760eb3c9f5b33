"""Keep the sign of a cotangent in a graph apart: a subtraction replaces a negation and a sum.

Rounding is symmetric, so products and quotients of real numbers have the same bits whether the sign is changed before
or after; so has ``a - b`` in place of ``a + (-b)``. A sum of two negated ones is not the negated sum where that is
zero: there one of them is negated.
"""

from __future__ import annotations

from typing import Any, Self

from .._core import Value
from .scalar import Scalar

__all__ = ["Signed", "plain", "total"]


class Signed:
    """Stand for a cotangent: a Value of real numbers, or its negation.

    It supports the operations of those rules of ufuncs that only multiply and divide a tangent (`Elementwise.signed`).
    """

    __slots__ = ("negated", "value")
    __array_ufunc__ = None  # an array of constants leaves the product to this class

    def __init__(self, value: Value, negated: bool = False) -> None:
        self.value = value
        self.negated = negated

    @classmethod
    def of(cls, ct: Any) -> Self | None:
        """Return a cotangent in this form, or None if it has no dtype of real numbers."""
        if type(ct) is cls:
            return ct
        return cls(ct) if type(ct) is Value and ct.dtype is not None and ct.dtype.kind == "f" else None

    def plain(self) -> Value:
        """Return it as a Value."""
        return -self.value if self.negated else self.value

    def __neg__(self) -> Signed:
        return Signed(self.value, not self.negated)

    def __mul__(self, other: Any) -> Signed:
        return Signed(self.value * other, self.negated)

    def __rmul__(self, other: Any) -> Signed:
        return Signed(other * self.value, self.negated)

    def __truediv__(self, other: Any) -> Signed:
        return Signed(self.value / other, self.negated)


def plain(ct: Any) -> Any:
    """Return a cotangent as what everybody computes with."""
    return ct.plain() if type(ct) is Signed else ct


def total(a: Any, b: Any) -> Any:
    """Return the sum of two cotangents."""
    if (type(a) is not Signed and type(b) is not Signed) or not {type(a), type(b)} <= {Signed, Value}:
        a, b = plain(a), plain(b)
        return b + a if type(b) is Scalar else a + b  # a number knows its dtype when it is the first operand
    x, a_negated = (a.value, a.negated) if type(a) is Signed else (a, False)
    y, b_negated = (b.value, b.negated) if type(b) is Signed else (b, False)
    if a_negated and not b_negated:
        return y - x
    x = -x if a_negated else x
    return x - y if b_negated else x + y
