"""What a Tensor has of an ndarray's methods and attributes: NumPy functions of the same name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._core import Tensor

__all__ = ["install"]

# Methods that take what the function of the same name takes after the array.
_FUNCTIONS = (
    *("all", "any", "argmax", "argmin", "argpartition", "argsort", "clip", "cumprod", "cumsum", "diagonal", "dot"),
    *("max", "mean", "min", "nonzero", "prod", "ravel", "repeat", "round", "searchsorted", "squeeze", "std", "sum"),
    *("swapaxes", "take", "trace", "var"),
)


def _method(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"As ``np.{name}``."
    return method


def _dims(arguments: tuple[Any, ...]) -> Any:
    return arguments[0] if len(arguments) == 1 else arguments


def reshape(self: Tensor, *shape: Any, order: str = "C") -> Any:
    """As ``np.reshape``; the shape as one tuple or as several numbers."""
    return np.reshape(self, _dims(shape), order=order)  # type: ignore[call-overload]


def transpose(self: Tensor, *axes: Any) -> Any:
    """As ``np.transpose``; the axes as one tuple or as several numbers."""
    return np.transpose(self, None if not axes else _dims(axes))


def flatten(self: Tensor, order: str = "C") -> Any:
    """A copy in one dimension."""
    return np.reshape(self, -1, order=order).copy()  # type: ignore[call-overload]


def astype(self: Tensor, dtype: Any, order: str = "K", casting: str = "unsafe", copy: bool = True) -> Any:
    """The Tensor in another dtype."""
    from .linear import Cast

    dtype = np.dtype(dtype)
    if dtype == self.dtype and not copy:
        return self
    if not np.can_cast(self.dtype, dtype, casting):  # type: ignore[arg-type]
        raise TypeError(f"cannot cast {self.dtype} to {dtype} under the rule {casting!r}")
    return Cast.apply(self, dtype)


def copy(self: Tensor, order: str = "C") -> Any:
    """A Tensor over memory of its own; gradients go through."""
    from .linear import Cast

    return Cast.apply(self, self.dtype)


def item(self: Tensor, *args: Any) -> Any:
    """The number, as a Python object; no gradient goes through it."""
    return self.numpy().item(*args)


def tolist(self: Tensor) -> Any:
    """The numbers as nested lists; no gradient goes through them."""
    return self.numpy().tolist()


def conj(self: Tensor) -> Any:
    """The complex conjugate."""
    return np.conjugate(self)


def clone(self: Tensor) -> Any:
    """As `copy`."""
    return copy(self)


def install(tensor: Any) -> None:
    """Give the C++ type the methods of this module."""
    for name in _FUNCTIONS:
        setattr(tensor, name, _method(getattr(np, name), name))
    for function in (reshape, transpose, flatten, astype, copy, item, tolist, conj, clone):
        function.__qualname__ = f"Tensor.{function.__name__}"
        setattr(tensor, function.__name__, function)
    tensor.conjugate = conj
    tensor.T = property(lambda self: np.transpose(self), doc="The transpose.")
    tensor.mT = property(lambda self: np.swapaxes(self, -1, -2), doc="The last two axes swapped.")
    tensor.real = property(lambda self: np.real(self), doc="The real part.")
    tensor.imag = property(lambda self: np.imag(self), doc="The imaginary part.")
