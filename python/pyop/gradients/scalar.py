"""Represent cotangents that are the same number everywhere: they cost a graph nothing until they meet an array."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from .._core import Value

__all__ = ["Scalar"]


class Scalar(float):
    """Stand for a cotangent of some dtype and of any shape whose elements are all this number.

    Arithmetic with numbers is done at once; one times an array of the same dtype is that array. In all else it stands
    for an array of its dtype, so results have the bits and the dtype that this would give.
    """

    dtype: np.dtype[Any]

    def __new__(cls, value: float, dtype: np.dtype[Any]) -> Self:
        made = super().__new__(cls, value)
        made.dtype = dtype
        return made

    def array(self) -> Any:
        """Return it as an array without dimensions."""
        return np.asarray(float(self), self.dtype)

    def astype(self, dtype: Any) -> Scalar:
        """Return the same for an argument of another dtype."""
        return Scalar(self, np.dtype(dtype))

    @property
    def real(self) -> Scalar:
        """Return the real part: all of it."""
        return Scalar(self, np.zeros((), self.dtype).real.dtype)

    def __neg__(self) -> Scalar:
        return Scalar(-float(self), self.dtype)

    def __mul__(self, other: Any) -> Any:
        if issubclass(type(other), (int, float)):
            return self._joined(float(self) * other, other)
        if isinstance(other, Value) and other.dtype == self.dtype and self in (1.0, -1.0):
            return other if self == 1.0 else -other
        return self.array() * other

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if issubclass(type(other), (int, float)) and other:
            return self._joined(float(self) / other, other)
        return self.array() / other

    def __add__(self, other: Any) -> Any:
        return (
            self._joined(float(self) + other, other) if issubclass(type(other), (int, float)) else self.array() + other
        )

    __radd__ = __add__

    def _joined(self, value: float, other: Any) -> Scalar:
        dtype = np.result_type(self.dtype, other.dtype) if hasattr(other, "dtype") else self.dtype
        return Scalar(value, dtype)
