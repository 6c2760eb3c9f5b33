"""`Formula`: arrays of real numbers in Python's arithmetic, which writes operators."""

from __future__ import annotations

from typing import Any

from .emitter import Emitter, Operand

__all__ = ["Formula"]


class Formula:
    """An array in a formula."""

    __slots__ = ("e", "x")

    def __init__(self, e: Emitter, x: Operand) -> None:
        self.e = e
        self.x = x

    def _other(self, y: Any) -> Operand:
        return y.x if isinstance(y, Formula) else self.e.constant(y, self.x.dtype)

    def do(self, op_type: str, *others: Any, dtype: Any = None, **attributes: Any) -> Formula:
        made = self.e.add(op_type, self.x, *map(self._other, others), dtype=dtype, **attributes)
        return Formula(self.e, made)

    def _from(self, op_type: str, y: Any) -> Formula:
        return Formula(self.e, self._other(y)).do(op_type, self)

    def __add__(self, y: Any) -> Formula:
        return self.do("Add", y)

    def __sub__(self, y: Any) -> Formula:
        return self.do("Sub", y)

    def __mul__(self, y: Any) -> Formula:
        return self.do("Mul", y)

    def __truediv__(self, y: Any) -> Formula:
        return self.do("Div", y)

    def __radd__(self, y: Any) -> Formula:
        return self._from("Add", y)

    def __rsub__(self, y: Any) -> Formula:
        return self._from("Sub", y)

    def __rmul__(self, y: Any) -> Formula:
        return self._from("Mul", y)

    def __rtruediv__(self, y: Any) -> Formula:
        return self._from("Div", y)

    def __neg__(self) -> Formula:
        return self.do("Neg")

    def __abs__(self) -> Formula:
        return self.do("Abs")

    def __lt__(self, y: Any) -> Formula:
        return self.do("Less", y, dtype=bool)

    def __gt__(self, y: Any) -> Formula:
        return self.do("Greater", y, dtype=bool)

    def __and__(self, y: Formula) -> Formula:
        return self.do("And", y, dtype=bool)

    def __or__(self, y: Formula) -> Formula:
        return self.do("Or", y, dtype=bool)

    def is_(self, y: Any) -> Formula:
        """Tell where it is equal to something."""
        return self.do("Equal", y, dtype=bool)

    def is_nan(self) -> Formula:
        return self.do("IsNaN", dtype=bool)

    def is_inf(self, negative: bool = True) -> Formula:
        return self.do("IsInf", dtype=bool, detect_negative=int(negative))

    def choose(self, x: Any, y: Any) -> Formula:
        """Return `x` where this is true, else `y`."""
        like = x if isinstance(x, Formula) else y
        made = self.e.add("Where", self.x, like._other(x), like._other(y), dtype=like.x.dtype)
        return Formula(self.e, made)

    def sqrt(self) -> Formula:
        return self.do("Sqrt")

    def exp(self) -> Formula:
        return self.do("Exp")

    def log(self) -> Formula:
        return self.do("Log")

    def sin(self) -> Formula:
        return self.do("Sin")

    def cos(self) -> Formula:
        return self.do("Cos")

    def floor(self) -> Formula:
        return self.do("Floor")

    def ceil(self) -> Formula:
        return self.do("Ceil")

    def power(self, y: Any) -> Formula:
        return self.do("Pow", y)

    def larger(self, y: Any) -> Formula:
        return self.do("Max", y)

    def smaller(self, y: Any) -> Formula:
        return self.do("Min", y)

    def remainder(self, y: Any) -> Formula:
        """Return the remainder, with the sign of the dividend."""
        return self.do("Mod", y, fmod=1)

    def to(self, dtype: Any) -> Formula:
        return Formula(self.e, self.e.cast(self.x, dtype))

    def negative(self) -> Formula:
        """Tell where the sign is negative, that of zero too."""
        return (self < 0) | (1 / self < 0)

    def signed(self, sign: Formula) -> Formula:
        """Give it the sign of another. By a factor: the Where of onnxruntime loses the sign of zero."""
        return self * (1 - 2 * sign.negative().to(self.x.dtype))
