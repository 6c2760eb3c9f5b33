"""What a trace leaves behind: whether it is symbolic, and how it differs from what the trace before it had left."""

from __future__ import annotations

import enum
from collections import deque
from functools import partial
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from .._core import Value
from ..graph.symbolic_number import is_number
from .places import Array, Items, Memory, Place

__all__ = ["Moved", "holds_symbolic", "logs_in", "moved", "moved_in"]

_BY_VALUE: tuple[type, ...] = (int, float, complex, np.generic, np.dtype, range, slice, MethodType)
_MODULES_BY_VALUE = ("datetime", "decimal", "fractions", "uuid")
_DEEPEST = 20
_MOST_LOOKED_AT = 10_000


class Moved(enum.IntEnum):
    """What has become of a value."""

    NOT = 0  # it is the same, or made the same way
    LONGER = 1  # what it was, with more behind it: a log
    ON = 2  # another number, text, array: a counter, a time


def moved(before: Any, now: Any, depth: int = 0) -> Moved:
    """Compare two values, and all that they hold.

    >>> from pyop.tracing.moved import moved
    >>> [moved([1, "a"], x).name for x in ([1, "a"], [1, "a", 2], [1, "ab"], [2, "a"], (1, "a"))]
    ['NOT', 'LONGER', 'ON', 'ON', 'ON']
    """
    if before is now or depth > _DEEPEST:
        return Moved.NOT
    if type(before) is not type(now) or _is_symbolic(now):
        return Moved.ON
    if isinstance(now, np.ndarray) and now.dtype == object:
        before, now = list(before.flat), list(now.flat)
    if isinstance(now, dict):
        if before.keys() - now.keys():
            return Moved.ON
        return _of_all(len(before), len(now), [(x, now[key]) for key, x in dict.items(before)], depth)
    if isinstance(now, (list, tuple, deque)):
        return _of_all(len(before), len(now), zip(before, now, strict=False), depth)
    if isinstance(now, (set, frozenset)):
        return Moved.NOT if before == now else Moved.ON
    if isinstance(now, (str, bytes)):
        return Moved.NOT if before == now else Moved.LONGER if now[: len(before)] == before else Moved.ON
    if isinstance(now, np.ndarray):
        return _of_arrays(before, now)
    if isinstance(now, FunctionType):
        if before.__code__ is not now.__code__:
            return Moved.ON
        return moved(before.__closure__, now.__closure__, depth + 1)
    if type(now).__name__ == "cell":
        return moved(before.cell_contents, now.cell_contents, depth + 1)
    if isinstance(now, _BY_VALUE) or type(now).__module__ in _MODULES_BY_VALUE:
        same = before == now or (before != before and now != now)  # nan is not another nan
        return Moved.NOT if same else Moved.ON
    held = getattr(now, "__dict__", None)
    if type(held) is not dict or isinstance(now, (type, ModuleType)):
        return Moved.NOT  # nobody knows
    return moved(vars(before), held, depth + 1)


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


def _of_all(n: int, m: int, pairs: Any, depth: int) -> Moved:
    # What holds a log is none itself: an item that is longer may be another one.
    if m < n or any(moved(x, y, depth + 1) for x, y in pairs):
        return Moved.ON
    return Moved.LONGER if m > n else Moved.NOT


def _of_arrays(before: Any, now: Any) -> Moved:
    if before.dtype == now.dtype and before.ndim == now.ndim == 1 and len(before) < len(now):
        return Moved.LONGER if before.tobytes() == now[: len(before)].tobytes() else Moved.ON
    same = (before.dtype, before.shape) == (now.dtype, now.shape) and before.tobytes() == now.tobytes()
    return Moved.NOT if same else Moved.ON


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
