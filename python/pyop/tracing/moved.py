"""What a trace leaves behind: whether it is symbolic, and how it differs from what the trace before it had left."""

from __future__ import annotations

import enum
from collections import deque
from functools import partial
from itertools import islice
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from .._core import Value
from ..graph.symbolic_number import is_number
from .places import Array, Items, Memory, Place
from .same import same

__all__ = ["Moved", "holds_symbolic", "logs_in", "moved", "moved_in"]

_MOST_LOOKED_AT = 10_000


class Moved(enum.IntEnum):
    """What has become of a value."""

    NOT = 0  # it is the same, or made the same way
    LONGER = 1  # what it was, with more behind it: a log
    ON = 2  # another number, text, array: a counter, a time


def moved(before: Any, now: Any) -> Moved:
    """Compare two values, and all that they hold.

    >>> from pyop.tracing.moved import moved
    >>> [moved([1, "a"], x).name for x in ([1, "a"], [1, "a", 2], [1, "ab"], [2, "a"], (1, "a"))]
    ['NOT', 'LONGER', 'ON', 'ON', 'ON']
    """
    if same(before, now):
        return Moved.NOT
    if type(before) is not type(now) or not isinstance(now, (list, tuple, deque, str, bytes, np.ndarray)):
        return Moved.ON
    if isinstance(now, np.ndarray) and not before.ndim == now.ndim == 1:
        return Moved.ON
    first = type(now)(islice(now, len(before))) if isinstance(now, deque) else now[: len(before)]
    return Moved.LONGER if len(before) < len(now) and same(before, first) else Moved.ON


def moved_in(place: Place, state: Any) -> Moved:
    """Compare what a place holds with what it held at `state`, from which it differs."""
    try:
        if isinstance(place, Array):
            return Moved.ON if state[3] is None else moved(state[3], place.owner)
        if isinstance(place, Memory):
            return Moved.ON
        if isinstance(place, Items) and isinstance(place.owner, set):
            return Moved.LONGER if set(state) < place.owner else Moved.ON
        if not (isinstance(place, Items) and isinstance(place.owner, dict)):
            return moved(state, place.now())
        held = dict(place.now())
        how = [moved(x, held[key]) if key in held else Moved.ON for key, x in state]
        return max(how, default=Moved.NOT) or Moved(len(held) > len(state))
    except Exception:  # of objects that do not like to be compared
        return Moved.ON


def logs_in(place: Place, state: Any) -> frozenset[Any]:
    """The attributes or keys, where a place has any, that are longer than they were at `state`, or new."""
    if not (isinstance(place, Items) and isinstance(place.owner, dict)):
        return frozenset()
    before = dict(state)
    return frozenset(key for key, x in place.now() if key not in before or moved(before[key], x) is Moved.LONGER)


def holds_symbolic(x: Any) -> bool:
    """Whether an object, or what it holds, is a symbolic array or number.

    >>> from pyop.tracing.moved import holds_symbolic
    >>> holds_symbolic([{"a": (1, 2)}])
    False
    """
    pending, seen = [x], {id(x)}
    while pending and len(seen) < _MOST_LOOKED_AT:
        x = pending.pop()
        if _is_symbolic(x):
            return True
        parts = [part for part in _parts(x) if id(part) not in seen]
        seen.update(map(id, parts))
        pending.extend(parts)
    return False


def _is_symbolic(x: Any) -> bool:
    return type(x) is Value or is_number(x)


def _parts(x: Any) -> list[Any]:
    if isinstance(x, dict):
        return [part for pair in dict.items(x) for part in pair]
    if isinstance(x, (list, tuple, deque, set, frozenset)):
        return list(x)
    if isinstance(x, np.ndarray):
        return list(x.flat) if x.dtype == object else []
    if isinstance(x, FunctionType):
        return [*(x.__closure__ or ()), *(x.__defaults__ or ()), *(x.__kwdefaults__ or {}).values()]
    if isinstance(x, MethodType):
        return [x.__self__]
    if isinstance(x, partial):
        return [x.func, *x.args, *x.keywords.values()]
    if type(x).__name__ == "cell":
        try:
            return [x.cell_contents]
        except ValueError:  # empty
            return []
    if isinstance(x, (type, ModuleType)):
        return []
    held = getattr(x, "__dict__", None)
    return list(held.values()) if type(held) is dict else []
