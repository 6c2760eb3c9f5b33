"""Compute ``len``, ``sum``, ``min`` and ``max`` of lists that loops hold as arrays (`growing`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core import Value
from ..graph.deciding import recorded_loop
from ..graph.symbolic_number import Number
from ..tracing.made import length
from ..tracing.twins import stand_in
from .growing import GrowingList
from .numbers import as_value

__all__ = ["extreme"]

_LARGEST_SUM = 2.0**62
_MOST = 1 << 10  # elements of an array that each iteration goes through


def _len(x: Any) -> Any:
    return x.size() if type(x) is GrowingList else length(x)


def _sum(items: Any, *start: Any, **named: Any) -> Any:
    """Return the sum of a list of ints or truths; floats are added one by one, or compensated (CPython 3.12)."""
    if type(items) is not GrowingList:
        return sum(items, *start, **named)
    if start or named or _kind(items) not in (int, bool):
        items._needed()
    column = _items(items, 0).astype(np.int64)
    size: Any = np.sum(np.abs(column.astype(np.float64)))
    nothing = _nothing_if(items, size < _LARGEST_SUM)  # NumPy's sum goes round without a word
    return items.loop.counted(np.sum(column)[()]) + nothing


def extreme(items: GrowingList, largest: bool) -> Any:
    """Return the first of the smallest or largest items; where there is none, or one is NaN, Python compares them."""
    kind = _kind(items)
    dtype = items.columns[0].dtype if kind is not None else None
    if dtype is None or dtype.kind not in "if":
        items._needed()
    info: Any = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    beyond = (-np.inf if largest else np.inf) if dtype.kind == "f" else info.min if largest else info.max
    column = _items(items, dtype.type(beyond))
    nothing = _nothing_if(items, items.length > 0)
    if dtype.kind == "f":
        nothing = nothing + _nothing_if(items, np.logical_not(np.any(np.isnan(column))))
    at: Any = (np.argmax if largest else np.argmin)(column)
    return items._item(items.position(at[()] + as_value(nothing)))


def _kind(items: GrowingList) -> Any:
    """Return of what kind the items are; None where nobody asks them, or they are rows."""
    kind = items.kind
    if kind is None or kind.row or items.prefix or kind.columns[0] == "text" or not items.columns:
        return None
    inside = recorded_loop(items.loop.graph) is not None
    return None if inside and items.capacity > _MOST else kind.columns[0]


def _items(items: GrowingList, nothing: Any) -> Any:
    """Return the items as an array; in a recorded loop, in which its size has to be known, with `nothing` behind."""
    column = items.straight(items.columns[0])
    if recorded_loop(items.loop.graph) is None:
        return column[: items.length]
    there = np.arange(items.capacity) < as_value(items.length)
    return np.where(there, column, np.asarray(nothing, column.dtype))


def _nothing_if(items: GrowingList, truth: Any) -> Any:
    """Return 0 where a truth holds, which is decided; in a recorded loop a run raises where it does not."""
    if type(truth) is Value:
        truth = Number(bool, truth[()], items.loop.places())
    if recorded_loop(items.loop.graph) is not None:
        return items._nothing_if(truth)
    return 0 if truth else items._needed()


stand_in(len, _len)
stand_in(sum, _sum)
