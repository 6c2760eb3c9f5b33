"""What else an ndarray has that a function may ask a Tensor for: answered, or refused where numbers would leave the
record. A missing attribute would send ``hasattr`` and ``except AttributeError`` another way than with arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._core import Tensor
from ..refusals import refusal

__all__ = ["METHODS", "PROPERTIES"]


def __array_namespace__(self: Tensor, *, api_version: Any = None) -> Any:
    return self._numbers.__array_namespace__(api_version=api_version)


def choose(self: Tensor, choices: Any, out: Any = None, mode: Any = "raise") -> Any:
    """As ``np.choose``."""
    return np.choose(self, choices, out=out, mode=mode)


def view(self: Tensor, *args: Any, **kwargs: Any) -> Any:
    """The same memory, as ``ndarray.view()``; as another dtype only where nothing is recorded."""
    if not args and not kwargs:
        return self[...]
    return Tensor(self._give("x.view(dtype)").view(*args, **kwargs))


def to_device(self: Tensor, device: Any, **kwargs: Any) -> Any:
    """The Tensor itself, on the one device that there is."""
    self._numbers.to_device(device, **kwargs)
    return self


def resize(self: Tensor, *args: Any, **kwargs: Any) -> None:
    """Refused: the memory of a Tensor keeps its size."""
    raise refusal("x.resize() changes a Tensor in place, which is not recorded: write x = np.resize(x, shape)")


def setflags(self: Tensor, *args: Any, **kwargs: Any) -> None:
    """As ``ndarray.setflags``."""
    self._numbers.setflags(*args, **kwargs)


def _giving(name: str) -> Callable[..., Any]:
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        found = getattr(self._give(f"x.{name}()"), name)(*args, **kwargs)
        return Tensor(found) if isinstance(found, np.ndarray) else found

    method.__name__ = name
    method.__doc__ = f"As ``ndarray.{name}``: refused while it is recorded."
    return method


METHODS = (
    *(__array_namespace__, choose, view, to_device, resize, setflags),
    *map(_giving, ("byteswap", "dump", "dumps", "getfield", "tofile")),
)


# --- attributes


def _flags(self: Tensor) -> Any:
    return self.numpy().flags


def _device(self: Tensor) -> str:
    return self._numbers.device


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


def _data(self: Tensor) -> Any:
    return self._give("x.data").data


def _ctypes(self: Tensor) -> Any:
    return self._give("x.ctypes").ctypes


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


PROPERTIES = {
    "T": property(lambda self: np.transpose(self), doc="The transpose."),
    "mT": property(lambda self: np.swapaxes(self, -1, -2), doc="The last two axes swapped."),
    "real": property(lambda self: np.real(self), _not_set("real"), doc="The real part."),
    "imag": property(lambda self: np.imag(self), _not_set("imag"), doc="The imaginary part."),
    "flags": property(_flags, doc="As of the array."),
    "device": property(_device, doc="As of the array."),
    "base": property(_base, doc="As of the array: refused for views while it is recorded."),
    "data": property(_data, doc="The memory: refused while it is recorded."),
    "ctypes": property(_ctypes, doc="The memory: refused while it is recorded."),
    "flat": property(_flat, _not_set("flat"), doc="The elements in one dimension."),
    "__array_priority__": property(_priority, doc="As of the array."),
    "__array_interface__": _protocol("__array_interface__"),
    "__array_struct__": _protocol("__array_struct__"),
    "as_integer_ratio": _of_scalars("as_integer_ratio"),
    "hex": _of_scalars("hex"),
    "is_integer": _of_scalars("is_integer"),
}
