"""Provide Value's methods and attributes of an ndarray that other kinds do not share (`functions/surface.py`).

The C++ type `Value` holds what every call needs; `install` adds the rest when pyop is imported.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .._core import Value
from ..declare.dims import Extent, mul
from ..declare.rebuild import getitem_with_bounds as _getitem_with_bounds  # by this name in pickles
from ..declare.spec import Spec
from ..deferred import methods_of
from ..functions import surface
from ..refusals import refusal
from . import value_refusals
from .array_protocol import to_specs
from .counter import has_counters, with_sizes, with_windows
from .forms import is_scalar
from .known import key_of_numbers, numbers_asked
from .sizes import apply
from .views import share

__all__ = ["getitem", "install", "set_item"]


def copy(self: Any, order: Any = "C") -> Any:
    """Return a copy, as `numpy.copy`; a scalar's copy is a scalar."""
    if self._is_scalar:
        return self
    return np.copy(self, order)


def conj(self: Any) -> Any:
    """Return the conjugate, as `numpy.conjugate`; the Value itself if it is real, which an unknown dtype may be."""
    made = surface.conj(self)
    if self.dtype is None:
        made._may_show((self,))
    return made


def astype(
    self: Any, dtype: Any, order: Any = "K", casting: Any = "unsafe", subok: bool = True, copy: bool = True
) -> Any:
    """Return the elements converted to another dtype."""
    target = np.dtype(dtype)
    if self.dtype is not None and not np.can_cast(self.dtype, target, casting):
        raise TypeError(f"Cannot cast array data from {self.dtype!r} to {target!r} according to the rule {casting!r}")
    kept = target if target.kind not in "US" else np.dtype(target.kind)
    # A length of text that NumPy works out, and an order that only memory has, are left to the run.
    if not copy and self.dtype == target and order in ("K", "A"):
        return self
    args = (self, target, order, casting, subok, copy)
    made = apply(np.ndarray.astype, args, {}, Spec(kept, self.spec.shape), name="astype", scalar=self._is_scalar)
    if self.dtype is None or self.dtype == target:
        share(np.ndarray.astype, args, {}, made)
    return made


_TYPE = type


def view(self: Any, dtype: Any = None, type: Any = None) -> Any:
    """Return the bytes of the elements read as another dtype; without one, a view of the same. A scalar stays one."""
    if isinstance(dtype, _TYPE) and issubclass(dtype, np.ndarray):
        dtype, type = None, dtype
    if type is not None and type is not np.ndarray:
        raise refusal(
            f"Value.view({type.__name__}): a Value stays a Value, it cannot become a {type.__name__}; use a pyop.op, "
            "which is called with arrays"
        )
    if dtype is None:
        return self if self._is_scalar else self[...]
    target = np.dtype(dtype)
    shape: Any = self.shape
    if shape is not None and (self.dtype is None or self.dtype.itemsize != target.itemsize):
        if not shape:
            raise ValueError("Changing the dtype of a 0d array is only supported if the itemsize is unchanged")
        shape = (*shape[:-1], _resized(shape[-1], self.dtype, target))
    made = apply(np.ndarray.view, (self, target), {}, Spec(target, shape), name="view", scalar=self._is_scalar)
    share(np.ndarray.view, (self, target), {}, made)
    return made


def _resized(size: Extent, old: np.dtype[Any] | None, new: np.dtype[Any]) -> Extent:
    if old is None or not old.itemsize or not new.itemsize:
        return None
    if old.itemsize % new.itemsize == 0:
        return mul(size, old.itemsize // new.itemsize)
    if isinstance(size, int):
        if size * old.itemsize % new.itemsize:
            raise ValueError(
                "When changing to a larger dtype, its size must be a divisor of the total size in bytes "
                "of the last axis of the array."
            )
        return size * old.itemsize // new.itemsize
    return None


def byteswap(self: Any, inplace: bool = False) -> Any:
    """Return the elements with their bytes in the other order."""
    if inplace:
        return self._writes.byteswap(self)
    return apply(np.ndarray.byteswap, (self,), {}, self.spec, name="byteswap", scalar=self._is_scalar)


# --- indexing


def getitem(self: Any, key: Any) -> Any:
    """Index as NumPy does, basic and advanced; Values may stand in the index."""
    from ..functions.indexing import spec as indexing  # on first use: `import pyop` stays light

    if has_counters(key):
        return with_sizes(getitem, self, key)
    key = key_of_numbers(self.graph, key)
    spec = indexing.getitem(self.spec, to_specs(with_windows(self, key)))
    if _has_value_bound(key):
        made = apply(_getitem_with_bounds, (self, _spelled(key)), {}, spec, name="getitem", scalar=False)
    else:
        scalar = is_scalar(operator.getitem, (self, key), {})
        made = apply(operator.getitem, (self, key), {}, spec, name="getitem", scalar=scalar)
    share(operator.getitem, (self, key), {}, made)
    return made


def _has_value_bound(key: Any) -> bool:
    """Return whether a slice has a bound that the graph computes."""
    items = key if isinstance(key, tuple) else (key,)
    return any(
        isinstance(item, slice) and any(isinstance(to_specs(b), Spec) for b in (item.start, item.stop, item.step))
        for item in items
    )


def _spelled(key: Any) -> Any:
    """Return slices as tuples of three, in which the graph finds the Values; anything else as a tuple of one."""
    items = key if isinstance(key, tuple) else (key,)
    return tuple((item.start, item.stop, item.step) if isinstance(item, slice) else (item,) for item in items)


def __round__(self: Any, ndigits: int | None = None) -> Any:
    """Round a scalar, as `numpy.round`; an array has no such method in every release of NumPy."""
    if not self._is_scalar and not hasattr(np.ndarray, "__round__"):
        raise TypeError("type numpy.ndarray doesn't define __round__ method: use np.round(x)")
    if self._is_scalar and ndigits is None:
        raise refusal(
            "round(x) of a scalar is a Python int, which a Value gives only when its graph runs: use np.round(x)"
        )
    if self._is_scalar and self.dtype is not None and self.dtype.kind == "c":
        raise TypeError(f"type numpy.{self.dtype.name} doesn't define __round__ method")
    return np.round(self, 0 if ndigits is None else ndigits)


_item: Callable[[Any, tuple[Any, ...]], Any] = lambda value, args: None  # noqa: E731


def set_item(item: Callable[[Any, tuple[Any, ...]], Any]) -> None:
    """Tell how an element becomes a Python number that is not known yet, from above; None where it does not."""
    global _item
    _item = item


def _of_numbers(name: str) -> Any:
    """Return a method that gives numbers away, which the function may have where they are known."""
    refuse = value_refusals.REFUSING[name]

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = numbers_asked(self)
        if found is not None:
            return getattr(found, name)(*args, **kwargs)
        made = _item(self, args) if name == "item" and not kwargs else None
        return refuse(self) if made is None else made

    method.__name__ = method.__qualname__ = name
    return method


# --- attributes


def _set_shape(self: Any) -> Any:
    """Raise AttributeError: TensorFlow's tensors have this method, NumPy's arrays do not."""
    raise AttributeError(
        "Value.set_shape: a shape is declared where the Value is made, and then checked in every run: "
        "Tout='float32[28,28,3]' in py_func and numpy_function, output_shapes= in contrib.py_func, or the spec of an "
        "op's output or an input"
    )


def _set_real(self: Any, values: Any) -> None:
    self._writes.set_real(self, values)


def _set_imag(self: Any, values: Any) -> None:
    self._writes.set_imag(self, values)


def _flat(self: Any) -> Any:
    return self._writes.flat(self)


def _set_flat(self: Any, values: Any) -> None:
    self._writes.set_flat(self, values)


def install() -> None:
    """Add the ndarray surface to the Value type.

    >>> import pyop
    >>> with pyop.Graph() as g:
    ...     x = g.input("float64[n, 4]")
    >>> x.T.shape, x.sum(axis=1).shape, x[:, None, 1:3].shape
    ((4, Dim('n')), (Dim('n'),), (Dim('n'), 1, 2))
    """
    methods = (
        *(copy, conj, astype, view, byteswap, __round__, surface.__reversed__),
        *(value_refusals.__delitem__, value_refusals.__format__),
    )
    surface.install(
        Value,
        {method.__name__: method for method in methods}
        | value_refusals.REFUSING
        | {name: _of_numbers(name) for name in ("item", "tolist", "tobytes")}
        | {"set_shape": property(_set_shape), "__array_priority__": surface.PRIORITY}
        | {"real": property(np.real, _set_real), "imag": property(np.imag, _set_imag)}
        | {"flat": property(_flat, _set_flat)},
    )
    methods_of(Value, "pyop.graph.writes", "__setitem__")
    methods_of(Value, "pyop.graph.writes_by_functions", "fill", "sort", "partition", "put")
    methods_of(Value, "pyop.graph.flat", "_writes")
