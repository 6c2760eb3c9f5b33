"""Define `Formula`: arrays of real numbers in Python's arithmetic, which writes operators."""

from __future__ import annotations

from typing import Any

from .emitter import Emitter, Operand

__all__ = ["Formula"]


def _operator(op_type: str, dtype: Any = None) -> Any:
    """Return a method that writes an operator of the array and its arguments."""
    return lambda self, *others: self.do(op_type, *others, dtype=dtype)


def _reflected(op_type: str) -> Any:
    return lambda self, other: Formula(self.e, self.other(other)).do(op_type, self)


class Formula:
    """Represent an array in a formula."""

    __slots__ = ("e", "x")

    def __init__(self, e: Emitter, x: Operand) -> None:
        self.e = e
        self.x = x

    def other(self, y: Any) -> Operand:
        """Return an operand of the same dtype: an array, or a number."""
        return y.x if isinstance(y, Formula) else self.e.constant(y, self.x.dtype)

    def do(self, op_type: str, *others: Any, dtype: Any = None, **attributes: Any) -> Formula:
        """Write an operator."""
        made = self.e.add(op_type, self.x, *map(self.other, others), dtype=dtype, **attributes)
        return Formula(self.e, made)

    __add__, __radd__ = _operator("Add"), _reflected("Add")
    __sub__, __rsub__ = _operator("Sub"), _reflected("Sub")
    __mul__, __rmul__ = _operator("Mul"), _reflected("Mul")
    __truediv__, __rtruediv__ = _operator("Div"), _reflected("Div")
    __neg__, __abs__ = _operator("Neg"), _operator("Abs")
    __lt__, __gt__ = _operator("Less", bool), _operator("Greater", bool)
    __and__, __or__ = _operator("And", bool), _operator("Or", bool)
    is_, is_nan = _operator("Equal", bool), _operator("IsNaN", bool)
    sqrt, exp, log, power = map(_operator, ("Sqrt", "Exp", "Log", "Pow"))
    sin, cos, arctan = map(_operator, ("Sin", "Cos", "Atan"))
    floor, ceil, larger, smaller = map(_operator, ("Floor", "Ceil", "Max", "Min"))

    def is_inf(self, negative: bool = True) -> Formula:
        return self.do("IsInf", dtype=bool, detect_negative=int(negative))

    def choose(self, x: Any, y: Any) -> Formula:
        """Return `x` where this is true, else `y`."""
        like = x if isinstance(x, Formula) else y
        made = self.e.add("Where", self.x, like.other(x), like.other(y), dtype=like.x.dtype)
        return Formula(self.e, made)

    def remainder(self, y: Any) -> Formula:
        """Return the remainder, with the sign of the dividend."""
        return self.do("Mod", y, fmod=1)

    def to(self, dtype: Any) -> Formula:
        return Formula(self.e, self.e.cast(self.x, dtype))

    def negative(self) -> Formula:
        """Return where the sign is negative, that of zero too."""
        mask: Formula = (self < 0) | (1 / self < 0)
        return mask

    def signed(self, sign: Formula) -> Formula:
        """Return the array with the sign of another. By a factor: the Where of onnxruntime loses the sign of zero."""
        result: Formula = self * (1 - 2 * sign.negative().to(self.x.dtype))
        return result
