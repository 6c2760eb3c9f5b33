"""Provide ``x.flat`` of a Value, with reads and writes in row order, and ``x.real = ...``, ``x.imag = ...``."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import numpy as np

from .._core import Value
from ..declare.rebuild import replaced
from ..gradients.performed import fill_flat, set_flat
from ..refusals import refusal
from . import writes_by_functions
from .rehearsal import rehearse
from .writes import assign
from .writes_by_functions import perform

__all__ = ["Flat"]


class Flat:
    """Stand for NumPy's ``flatiter``: reading makes copies, writing writes into the array.

    >>> import numpy as np, pyop
    >>> @pyop.compile
    ... def f(x):
    ...     y = x * 1.0
    ...     y.T.flat[:2] = 0.0
    ...     return y
    >>> f(np.ones((2, 2)))
    array([[0., 1.],
           [0., 1.]])
    """

    __slots__ = ("_at", "base")

    def __init__(self, base: Any) -> None:
        self.base = base
        self._at = 0

    def copy(self) -> Any:
        """Return a copy of the elements in one dimension."""
        return self.base.flatten()

    def __len__(self) -> int:
        size = self.base.size
        if not isinstance(size, int):
            raise refusal(f"len(x.flat) at {Value._here()}, where the size of x is not known: use x.size")
        return size

    def __iter__(self) -> Iterator[Any]:
        return map(self.__getitem__, range(self._at, len(self)))

    def __next__(self) -> Any:
        if self._at >= len(self):
            raise StopIteration
        self._at += 1
        return self[self._at - 1]

    def __getitem__(self, key: Any) -> Any:
        place = self._place(key)
        if place is not None:
            return self.base[place]
        elements = self.copy()[key]
        return elements if elements._is_scalar else elements.copy()

    def __setitem__(self, key: Any, value: Any) -> None:
        place = self._place(key)
        if place is not None and np.ndim(value) == 0:
            assign(self.base, place, value)
        else:
            perform(set_flat, (self.base, key, _raveled(value)), {}, ((0,),), "x.flat[key] = y")

    def _place(self, key: Any) -> tuple[Any, ...] | None:
        """Return the index of an element in the array, or None where it is not known."""
        shape = self.base.shape
        if not issubclass(type(key), (int, np.integer)) or type(key) is bool or shape is None:
            return None
        if not shape or not all(type(n) is int for n in shape):
            return None
        key, size = operator.index(key), len(self)
        if not -size <= key < size:
            raise IndexError(f"index {key} is out of bounds for size {size}")
        return tuple(map(int, np.unravel_index(key % size, shape)))

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.copy().__array__()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return getattr(ufunc, method)(*replaced(inputs, _raveled), **replaced(kwargs, _raveled))

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return func(*replaced(args, _raveled), **replaced(kwargs, _raveled))

    @property
    def index(self) -> int:
        """Return the number of elements that ``next`` has given."""
        return self._at

    @property
    def shape(self) -> tuple[Any, ...]:
        """Return the shape, of one dimension."""
        return (self.base.size,)


def _raveled(x: Any) -> Any:
    return x.copy() if type(x) is Flat else x


def _set_flat(self: Any, values: Any) -> None:
    if type(values) is Flat and values.base is self:
        return
    perform(fill_flat, (self, _raveled(values)), {}, ((0,),), "x.flat = y")


def _write_imag(x: Any, values: Any) -> None:
    x.imag = values


def _set_real(self: Any, values: Any) -> None:
    _check_written(self, "real")
    assign(np.real(self), ..., values)


def _set_imag(self: Any, values: Any) -> None:
    _check_written(self, "imag")
    if self.dtype is not None and self.dtype.kind != "c":
        rehearse(_write_imag, (self, values), {})
    assign(np.imag(self), ..., values)


def _check_written(self: Any, name: str) -> None:
    if self._is_scalar:
        raise AttributeError(f"attribute '{name}' of 'numpy.generic' objects is not writable")


class Writes:
    """Hold the functions that modules call which the modules of writes import: an attribute of Value."""

    call_with_out = staticmethod(writes_by_functions.call_with_out)
    ufunc_with_out = staticmethod(writes_by_functions.ufunc_with_out)
    ufunc_at = staticmethod(writes_by_functions.ufunc_at)
    write_by = staticmethod(writes_by_functions.write_by)
    byteswap = staticmethod(writes_by_functions.byteswap)
    nan_to_num = staticmethod(writes_by_functions.nan_to_num)
    flat = Flat
    set_flat = staticmethod(_set_flat)
    set_real = staticmethod(_set_real)
    set_imag = staticmethod(_set_imag)


setattr(Value, "_writes", Writes)  # noqa: B010
