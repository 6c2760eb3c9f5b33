"""Implement ``len``, iteration and ``in`` of a Value for the slots of csrc/graph/value_sequence.cpp."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

from ..refusals import refusal
from .deciding import decides, size_of

__all__ = ["contains", "iterate", "length", "set_rolls"]


def length(value: Any) -> int:
    """Return the first size, if it is a number when the graph is built.

    >>> import pyop
    >>> len(pyop.Graph().input("float64[3, n]"))
    3
    """
    _check_array(value, "len()", "object of type {} has no len()")
    return _first_size(value, "len()", "len() of unsized object")


def iterate(value: Any) -> Iterator[Any]:
    """Iterate over the Values along the first axis, if its size is a number when the graph is built.

    >>> import pyop
    >>> [row.spec for row in pyop.Graph().input("float64[2, n]")]
    [Spec('float64[n]'), Spec('float64[n]')]
    """
    _check_array(value, "iteration", "{} object is not iterable")
    # One after the other: what is written meanwhile is seen.
    size = _first_size(value, "iteration", "iteration over a 0-d array")
    rolled = _rolls(value, size, sys._getframe(1))
    return map(value.__getitem__, range(size)) if rolled is None else rolled


def _never(value: Any, size: int, frame: Any) -> Any:
    """Return None in place of the iterator of a recorded loop, until the module of such loops is loaded."""
    return None


_rolls: Callable[[Any, int, Any], Any] = _never


def set_rolls(rolls: Callable[[Any, int, Any], Any]) -> None:
    """Set the function that records a loop over an array once; a module above this one provides it."""
    global _rolls
    _rolls = rolls


def contains(value: Any, item: Any) -> bool:
    """Return whether an element equals the item, where a function under trace may decide by it; else raise.

    >>> import pyop
    >>> 1.0 in pyop.Graph().input("float64[3]")
    Traceback (most recent call last):
    TypeError: 'in' needs numbers, and a Value has no numbers until its graph runs: use np.any(...
    """
    _check_array(value, "'in'", "argument of type {} is not iterable")
    if decides(value):
        return bool((value == item).any())
    raise refusal(
        "'in' needs numbers, and a Value has no numbers until its graph runs: use np.any(value == item), or np.isin, "
        "which give Values"
    )


def _check_array(value: Any, what: str, message: str) -> None:
    """Raise what NumPy says of its scalars; those of text and records have parts, which are not known."""
    if not value._is_scalar:
        return
    if value.dtype is None or value.dtype.kind in "USVO":
        raise refusal(
            f"{what} of {value!r}: a number has no items, a text has some, and a Value has no numbers until "
            "its graph runs: use a pyop.op, which is called with arrays"
        )
    raise TypeError(message.format(f"'numpy.{value.__class__.__name__}'"))


def _first_size(value: Any, what: str, without: str) -> int:
    shape = value.shape
    if shape == ():
        raise TypeError(without)
    size = None if shape is None else shape[0]
    if not isinstance(size, int):
        decided = None if shape is None or size is not None else size_of(value, 0)
        if decided is not None:
            return decided
        known = "not known" if size is None else f"symbolic ({size})"
        raise refusal(
            f"{what} of {value!r}: its first size is {known} when the graph is built; "
            "declare a number in the spec of the input, or use a NumPy function over the axis instead of a loop"
        )
    return size
