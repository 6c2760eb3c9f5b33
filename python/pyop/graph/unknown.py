"""Stand for facts of a Value that are unknown until its graph runs, where the function under trace sees them.

Such a fact may be passed around. A decision by it gets the number that it is in the call that is traced
(`deciding.py`), or a refusal.

``y = x[x > 0]`` has as many elements as there are positive numbers. Authors of graphs see None in ``y.shape``. A
traced function would take it for a number (``if y.size == 0:``), and silently take another path.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from .._core import Value, shown
from ..declare.spec import Spec
from ..refusals import refusal
from .calls import apply
from .deciding import size_of

__all__ = ["Unknown", "unknown_attribute"]

_ATTRIBUTES = frozenset(("shape", "ndim", "dtype", "size", "nbytes", "itemsize"))


_COUNT = Spec(np.dtype(np.int64), ())


def _size_of(array: Any, axis: int) -> int:
    return int(array.shape[axis])


def _size(array: Any) -> int:
    return int(array.size)


def _bytes_of(array: Any) -> int:
    return int(array.nbytes)


class Unknown:
    """Stand for a size, a shape or a dtype that is not known yet; every use of it is refused."""

    __slots__ = ("_of", "_refused", "_what")

    def __init__(self, what: str, of: Value) -> None:
        self._what, self._of = what, of
        self._refused: Exception | None = None

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return {"the shape": tuple, "the dtype": np.dtype}.get(self._what, int)

    def __repr__(self) -> str:
        if self._refused is not None:  # NumPy makes of an error one with the text in it
            raise self._refused
        return shown("?", f"{self._what} of {self._of.node.name!r}")

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return self.__repr__() if not spec else self._refuse()

    def _refuse(self, *args: Any) -> NoReturn:
        from .cells import shown_place

        error = self._refused = refusal(
            f"{self._what} of {Value.__repr__(self._of)} (node {self._of.node.name!r}, created at "
            f"{shown_place(self._of.node.origin)}) is not known when the graph is built, and the function depends on "
            "it: choose by value with np.where, use the where= of reductions (np.sum(x, where=mask) for "
            "x[mask].sum()), declare what an op returns, or do this part in a pyop.op, which is called with arrays"
        )
        raise error

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # copy, pickle, protocols: a plain object has none of these
            raise AttributeError(name)
        return getattr(self._number(), name)

    def _number(self) -> int:
        """Return the number that it is in the call that is traced, the same in every call of that path."""
        shape = Value.shape.__get__(self._of)
        if self._what.startswith("size"):
            known = size_of(self._of, int(self._what.split()[1]))
        elif self._what in ("the size", "the nbytes") and shape is not None:
            sizes = [size_of(self._of, axis) if n is None else n for axis, n in enumerate(shape)]
            known = None if None in sizes else math.prod(sizes)  # type: ignore[arg-type]
            if self._what == "the nbytes":
                known = None if known is None or self._of.dtype is None else known * self._of.dtype.itemsize
        else:
            known = None
        return self._refuse() if known is None else known

    def computed(self) -> Any:
        """Return the number as a node, for a function that only returns it."""
        if self._what.startswith("size"):
            return apply(_size_of, (self._of, int(self._what.split()[1])), {}, _COUNT, name="size")
        if self._what not in ("the size", "the nbytes"):
            self._refuse()
        return apply(_size if self._what == "the size" else _bytes_of, (self._of,), {}, _COUNT, name="size")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return getattr(ufunc, method)(*[x._number() if type(x) is Unknown else x for x in inputs], **kwargs)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self._number(), dtype)

    def _has_none(self, *args: Any) -> NoReturn:
        raise TypeError(f"'{type(self._number()).__name__}' object has no parts, and cannot be called")

    __len__ = __iter__ = __contains__ = __getitem__ = __call__ = _has_none


def _unary(does: Callable[[Any], Any]) -> Callable[[Unknown], Any]:
    return lambda self, *args: does(self._number(), *args)


def _forward(does: Callable[[Any, Any], Any]) -> Callable[[Unknown, Any], Any]:
    return lambda self, other: does(self._number(), other._number() if type(other) is Unknown else other)


def _backward(does: Callable[[Any, Any], Any]) -> Callable[[Unknown, Any], Any]:
    return lambda self, other: does(other, self._number())


for _does in (bool, int, float, complex, hash, round):
    setattr(Unknown, f"__{_does.__name__}__", _unary(_does))
for _name in ("index", "neg", "pos", "abs", "invert"):
    setattr(Unknown, f"__{_name}__", _unary(getattr(operator, _name)))
for _name in ("trunc", "floor", "ceil"):
    setattr(Unknown, f"__{_name}__", _unary(getattr(math, _name)))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Unknown, f"__{_name}__", _forward(getattr(operator, _name)))
_ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor")
for _does in (*[getattr(operator, name) for name in (*_ARITHMETIC, "lshift", "rshift")], divmod):
    setattr(Unknown, f"__{_does.__name__.strip('_')}__", _forward(_does))
    setattr(Unknown, f"__r{_does.__name__.strip('_')}__", _backward(_does))


def unknown_attribute(value: Value, name: str, known: Any) -> Any:
    """Return what the function under trace sees for an attribute of a Value that is not known.

    `known` is None, or a shape with None in it.
    """
    if name not in _ATTRIBUTES:
        return known
    if type(known) is tuple:
        return tuple(Unknown(f"size {k} of the shape", value) if n is None else n for k, n in enumerate(known))
    return Unknown(f"the {name}", value)
