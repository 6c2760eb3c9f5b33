"""What a Tensor has of an ndarray's methods and attributes: NumPy functions of the same name."""

from __future__ import annotations

import copy as _copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import _core
from .._core import Tensor
from ..refusals import refusal
from . import array_attributes, writes

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
    if dtype.kind not in "biufc":
        self._give(f"x.astype({dtype})")
    made = Cast.apply(self, dtype)
    made._scalar = self._scalar
    return made


def copy(self: Tensor, order: str = "C") -> Any:
    """A Tensor over memory of its own; gradients go through."""
    from .linear import Cast

    made = Cast.apply(self, self.dtype)
    made._scalar = self._scalar
    return made


def item(self: Tensor, *args: Any) -> Any:
    """The number, as a Python object: refused while it is recorded."""
    found = self.numpy().item(*args)  # what NumPy refuses is NumPy's error
    self._give("x.item()")
    return found


def tolist(self: Tensor) -> Any:
    """The numbers as nested lists: refused while it is recorded."""
    return self._give("x.tolist()").tolist()


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
    """The bytes of the numbers: refused while it is recorded."""
    return self._give("x.tobytes()").tobytes(order)  # type: ignore[arg-type]


# --- what is no function of NumPy


def __reversed__(self: Tensor) -> Iterator[Any]:
    return (self[i] for i in range(len(self) - 1, -1, -1))


def __format__(self: Tensor, spec: str, /) -> str:
    if not spec:  # for people: no number can be read from it by accident, since it says that it is a Tensor
        return str(self)
    found = format(self.numpy()[()], spec)
    self._give(f"formatting, f'{{x:{spec}}}',")
    return found


def __complex__(self: Tensor) -> complex:
    found = complex(self.numpy())
    self._give("complex(x)")
    return found


def __round__(self: Tensor, ndigits: int | None = None) -> Any:
    if not self._scalar:
        raise TypeError("type numpy.ndarray doesn't define __round__ method")
    return int(np.round(self)) if ndigits is None else np.round(self, ndigits)


def __dlpack__(self: Tensor, **kwargs: Any) -> Any:
    if self._watched:
        raise refusal("a Tensor that requires a gradient would lose its history: hand out t.detach()", BufferError)
    return self.numpy().__dlpack__(**kwargs)


def __dlpack_device__(self: Tensor) -> tuple[int, int]:
    return self.numpy().__dlpack_device__()


# --- copies of leaves


def __copy__(self: Tensor) -> Any:
    return copy(self)


def __deepcopy__(self: Tensor, memo: dict[int, Any]) -> Tensor:
    if _core.transformations_running() and self._watched:
        made: Tensor = copy(self)
        memo[id(self)] = made
        return made
    if self.grad_fn is not None:
        raise refusal(
            "a Tensor with a history cannot be deep-copied, since the copy would be without it: copy t.detach(), or "
            "the leaves it was computed from",
            RuntimeError,
        )
    made = _rebuilt(_copy.deepcopy(self.numpy(), memo), self.requires_grad, _copy.deepcopy(self.grad, memo))
    memo[id(self)] = made
    return made


def __reduce__(self: Tensor) -> Any:
    if self.grad_fn is not None or (_core.transformations_running() and self._watched):
        raise refusal(
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
    *(
        __reversed__,
        __format__,
        __complex__,
        __round__,
        __dlpack__,
        __dlpack_device__,
        __copy__,
        __deepcopy__,
        __reduce__,
    ),
    *map(writes.method, ("fill", "put", "sort", "partition", "setfield")),
    *array_attributes.METHODS,
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
    for name, attribute in array_attributes.PROPERTIES.items():
        setattr(tensor, name, attribute)
