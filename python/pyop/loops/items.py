"""Look up items of lists and tuples by a number that a loop computes: those of one kind become an array.

``table[k]`` of a list of floats is an element of the array of these, as a Python float; of tuples each item is, and so
are the values of a small dict by ints. What the list holds when it is asked is what counts, so it may change from
iteration to iteration. An index that is out of bounds raises in the plan, and the function itself runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .._core import Value
from ..graph.counter import is_counter
from ..graph.deciding import recorded_loop
from ..graph.symbolic_number import Number, is_number
from ..tracing.lifting import ITEM
from ..tracing.twins import BUILTINS, graph_under_twins
from .numbers import as_value

__all__ = ["are_looked_up"]

_MOST = 4096  # items
_MOST_KEYS = 16  # of a dict


class _Item:
    __slots__ = ()
    _pyop_computes = True
    _pyop_checks_results = True

    def __call__(self, owner: Any, index: Any) -> Any:
        if _is_unknown(index) and (
            (type(owner) in (list, tuple) and 0 < len(owner) <= _MOST) or (type(owner) is dict and _counts(owner))
        ):
            graph: Any = graph_under_twins()
            loop = recorded_loop(graph)
            made = None
            if loop is not None and type(owner) is dict:
                made = _looked_up(loop, [*owner.values()], _place_of(index, owner))
            elif loop is not None:
                made = _looked_up(loop, owner, index)
            if made is not None:
                graph._keep(self)
                return made
        return owner[index]


def are_looked_up(items: tuple[Any, ...]) -> bool:
    """Return whether the items of a tuple are known numbers of one kind, or tuples of such, which become an array."""
    first = items[0]
    if type(first) is tuple:
        same = all(type(x) is tuple and len(x) == len(first) for x in items)
        return same and all(are_looked_up(column) for column in zip(*items, strict=True))
    return type(first) in (int, float, bool) and all(type(x) is type(first) for x in items)


def _is_unknown(index: Any) -> bool:
    if type(index) is not Value:
        return is_counter(index)
    return bool(index._is_scalar) and index.dtype is not None and index.dtype.kind in "iu"


def _counts(owner: dict[Any, Any]) -> bool:
    return 0 < len(owner) <= _MOST_KEYS and all(type(key) is int for key in owner)


def _place_of(index: Any, keys: Iterable[int]) -> Any:
    """Return the place of a key that is not known; where it is none of them, one that is out of bounds."""
    keys = [*keys]
    value: Any = as_value(index) if is_counter(index) else index
    place: Any = len(keys)
    for k, key in enumerate(keys):
        place = np.where(value == key, k, place)
    return place[()]


def _looked_up(loop: Any, items: Any, index: Any) -> Any:
    """Return an item by a number that is not known; None where the items are of several kinds."""
    if all(type(x) is tuple and len(x) == len(items[0]) for x in items):
        parts = [_looked_up(loop, column, index) for column in zip(*items, strict=True)]
        return None if any(part is None for part in parts) else tuple(parts)
    kinds = {int if is_counter(x) else x._kind if is_number(x) else type(x) for x in items}
    if len(kinds) != 1:
        return None
    kind = kinds.pop()
    if kind in (float, int, bool):
        if kind is int and any(type(x) is int and abs(x) >= 1 << 62 for x in items):
            return None
        values = [x.number()._value if is_counter(x) else x._value if is_number(x) else x for x in items]
        known = not any(type(x) is Value for x in values)
        table = (
            loop.graph.constant(np.asarray(values))
            if known
            else np.stack([np.asarray(x) if type(x) is not Value else x for x in values])
        )
        value = table[index]
        return loop.counted(value) if kind is int else Number(kind, value, loop.places())
    if kind is Value or issubclass(kind, np.generic):
        if any(x.dtype != items[0].dtype or x.shape != () for x in items) or not all(_is_scalar(x) for x in items):
            return None
        return (
            np.stack([x if type(x) is Value else np.asarray(x) for x in items])[index]
            if kind is Value
            else loop.graph.constant(np.asarray(items))[index]
        )
    return None


def _is_scalar(x: Any) -> bool:
    return type(x) is not Value or bool(x._is_scalar)


BUILTINS[ITEM] = _Item()
