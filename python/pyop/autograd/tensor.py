"""What a Tensor has of an ndarray's methods and attributes: NumPy functions of the same name."""

from __future__ import annotations

import copy as _copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import _core
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


def compress(self: Tensor, condition: Any, axis: Any = None) -> Any:
    """As ``np.compress``."""
    return np.compress(condition, self, axis)


def tobytes(self: Tensor, order: str = "C") -> bytes:
    """The bytes of the numbers."""
    return self.numpy().tobytes(order)  # type: ignore[arg-type]


def _changing(name: str) -> Callable[..., None]:
    """A method of ndarray that works in place: where nothing is recorded, and counted."""

    def method(self: Tensor, *args: Any, **kwargs: Any) -> None:
        if _core.is_recording() and self.requires_grad:
            raise RuntimeError(
                f"{name}() changes a Tensor in place, which is not recorded: do it under no_grad(), or on a copy"
            )
        getattr(self.numpy(), name)(*args, **kwargs)
        self._bump()

    method.__name__ = name
    method.__doc__ = f"As ``ndarray.{name}``, in place; not while it is recorded."
    return method


# --- what is no function of NumPy


def __reversed__(self: Tensor) -> Iterator[Any]:
    return (self[i] for i in range(len(self) - 1, -1, -1))


def __format__(self: Tensor, spec: str, /) -> str:
    return format(self.numpy(), spec) if spec else str(self)


def __complex__(self: Tensor) -> complex:
    return complex(self.numpy())


def __dlpack__(self: Tensor, **kwargs: Any) -> Any:
    if _core.is_recording() and self.requires_grad:
        raise BufferError("a Tensor that requires a gradient would lose its history: hand out t.detach()")
    return self.numpy().__dlpack__(**kwargs)


def __dlpack_device__(self: Tensor) -> tuple[int, int]:
    return self.numpy().__dlpack_device__()


# --- copies of leaves


def __copy__(self: Tensor) -> Any:
    return copy(self)


def __deepcopy__(self: Tensor, memo: dict[int, Any]) -> Tensor:
    if self.grad_fn is not None:
        raise RuntimeError(
            "a Tensor with a history cannot be deep-copied, since the copy would be without it: copy t.detach(), or "
            "the leaves it was computed from"
        )
    made = _rebuilt(_copy.deepcopy(self.numpy(), memo), self.requires_grad, _copy.deepcopy(self.grad, memo))
    memo[id(self)] = made
    return made


def __reduce__(self: Tensor) -> Any:
    if self.grad_fn is not None:
        raise TypeError(
            "a Tensor with a history cannot be pickled, since it would come back without it: pickle t.detach(), or the "
            "leaves it was computed from"
        )
    return _rebuilt, (self.numpy(), self.requires_grad, self.grad)


def _rebuilt(array: Any, requires_grad: bool, grad: Any) -> Tensor:
    made = Tensor(array, requires_grad)
    made.grad = grad
    return made


_METHODS = (
    *(reshape, transpose, flatten, astype, copy, item, tolist, conj, clone, compress, tobytes),
    *(__reversed__, __format__, __complex__, __dlpack__, __dlpack_device__, __copy__, __deepcopy__, __reduce__),
    *map(_changing, ("fill", "put", "sort", "partition")),
)


def install(tensor: Any) -> None:
    """Give the C++ type the methods of this module."""
    for name in _FUNCTIONS:
        setattr(tensor, name, _method(getattr(np, name), name))
    for function in _METHODS:
        function.__qualname__ = f"Tensor.{function.__name__}"
        setattr(tensor, function.__name__, function)
    tensor.conjugate = conj
    tensor.__pandas_priority__ = 100_000  # containers of pandas leave operators with it to it, which refuses them
    tensor.T = property(lambda self: np.transpose(self), doc="The transpose.")
    tensor.mT = property(lambda self: np.swapaxes(self, -1, -2), doc="The last two axes swapped.")
    tensor.real = property(lambda self: np.real(self), doc="The real part.")
    tensor.imag = property(lambda self: np.imag(self), doc="The imaginary part.")
