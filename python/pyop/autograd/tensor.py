"""Provide Tensor's names of an ndarray that other kinds do not share (`functions/surface.py`).

They are answered, or refused where numbers would leave the record. A missing attribute would send ``hasattr`` and
``except AttributeError`` another way than with arrays.
"""

from __future__ import annotations

import copy as _copy
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from .._core import Tensor
from ..functions import surface
from ..refusals import refusal
from . import writes

__all__ = ["install"]


def astype(self: Tensor, dtype: Any, order: str = "K", casting: str = "unsafe", copy: bool = True) -> Any:
    """Return the Tensor in another dtype."""
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
    """Return a Tensor over memory of its own; gradients go through."""
    from .linear import Cast

    made = Cast.apply(self, self.dtype)
    made._scalar = self._scalar
    return made


def clone(self: Tensor) -> Any:
    """Return a copy, as `copy`."""
    return copy(self)


def view(self: Tensor, *args: Any, **kwargs: Any) -> Any:
    """Return the same memory, as ``ndarray.view()``; as another dtype only where nothing is recorded."""
    if not args and not kwargs:
        return self[...]
    return Tensor(self._give("x.view(dtype)").view(*args, **kwargs))


def resize(self: Tensor, *args: Any, **kwargs: Any) -> None:
    """Raise: the memory of a Tensor keeps its size."""
    raise refusal("x.resize() changes a Tensor in place, which is not recorded: write x = np.resize(x, shape)")


def setflags(self: Tensor, *args: Any, **kwargs: Any) -> None:
    """Set flags of the array, as ``ndarray.setflags``."""
    self._numbers.setflags(*args, **kwargs)


def item(self: Tensor, *args: Any) -> Any:
    """Return the number as a Python object; raise while it is recorded."""
    number = self.numpy().item(*args)  # what NumPy refuses is NumPy's error
    self._give("x.item()")
    return number


def _giving(name: str) -> Callable[..., Any]:
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        result = getattr(self._give(f"x.{name}()"), name)(*args, **kwargs)
        return Tensor(result) if isinstance(result, np.ndarray) else result

    method.__name__ = name
    method.__doc__ = f"As ``ndarray.{name}``: refused while it is recorded."
    return method


def __format__(self: Tensor, spec: str, /) -> str:
    if not spec:  # for people: no number can be read from it by accident, since it says that it is a Tensor
        return str(self)
    text = format(self.numpy()[()], spec)
    self._give(f"formatting, f'{{x:{spec}}}',")
    return text


def __complex__(self: Tensor) -> complex:
    number = complex(self.numpy())
    self._give("complex(x)")
    return number


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


# --- attributes


def _priority(self: Tensor) -> float:
    if self._watched:  # pandas asks for it to decide who computes, and takes for an array what says that it is one
        raise refusal(
            "x.__array_priority__ of a Tensor that is recorded: a container of another library that asks for it would "
            "compute by rules of its own, which the record does not know: give it plain arrays (series.to_numpy()) "
            "beside Tensors, or a plain array (x.detach().numpy()) beside it"
        )
    return -1000000.0 if self._scalar else 0.0


def _base(self: Tensor) -> Any:
    base = self.numpy().base
    return None if base is None else self._give("x.base").base


def _given(name: str) -> property:
    return property(
        lambda self: getattr(self._give(f"x.{name}"), name), doc="The memory: refused while it is recorded."
    )


def _flat(self: Tensor) -> Any:
    return np.ravel(self) if self._watched else self.numpy().flat


def _not_set(name: str) -> Callable[[Tensor, Any], None]:
    def setter(self: Tensor, value: Any) -> None:
        raise refusal(
            f"x.{name} = ... changes a Tensor in place, which is not recorded: write a new one instead "
            "(x = v + 1j * x.imag, say, or np.where)",
            RuntimeError,
        )

    return setter


def _protocol(name: str) -> property:
    # NumPy asks for these before __array__: what is not recorded goes that way, which keeps the array the same object.
    def get(self: Tensor) -> Any:
        try:
            self._give(f"x.{name}, or conversion to an array,")
        except TypeError as error:
            raise refusal(str(error), AttributeError) from None
        raise AttributeError(f"a Tensor has no {name}: use x.numpy()")

    return property(get, doc="Refused.")


def _of_scalars(name: str) -> property:
    def get(self: Tensor) -> Any:
        if not self._scalar or not hasattr(self.dtype.type, name):
            raise AttributeError(f"'numpy.ndarray' object has no attribute {name!r}")
        return lambda *args: getattr(self._give(f"x.{name}()")[()], name)(*args)

    return property(get, doc=f"As of a NumPy scalar: ``{name}()``.")


_METHODS = (
    *(astype, copy, clone, view, resize, setflags, item, __format__, __complex__, __round__),
    *(__dlpack__, __dlpack_device__, __deepcopy__, __reduce__),
    *map(writes.method, ("fill", "put", "sort", "partition", "setfield")),
    *map(_giving, ("byteswap", "dump", "dumps", "getfield", "tobytes", "tofile", "tolist")),
)
_ATTRIBUTES = {
    "real": property(np.real, _not_set("real"), doc="The real part."),
    "imag": property(np.imag, _not_set("imag"), doc="The imaginary part."),
    "flat": property(_flat, _not_set("flat"), doc="The elements in one dimension."),
    "flags": property(lambda self: self.numpy().flags, doc="As of the array."),
    "base": property(_base, doc="As of the array: refused for views while it is recorded."),
    "__array_priority__": property(_priority, doc="As of the array."),
    **{name: _given(name) for name in ("data", "ctypes")},
    **{name: _protocol(name) for name in ("__array_interface__", "__array_struct__")},
    **{name: _of_scalars(name) for name in ("as_integer_ratio", "hex", "is_integer")},
}


def install() -> None:
    """Add the surface of an ndarray to the C++ type."""
    for method in _METHODS:
        method.__qualname__ = f"Tensor.{method.__name__}"
    methods = (*_METHODS, surface.__reversed__)
    surface.install(Tensor, {method.__name__: method for method in methods} | _ATTRIBUTES)
