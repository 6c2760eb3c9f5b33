"""Tell what a trace leaves behind where a function can reach: is it symbolic, a log, or another thing each time?

Asked where a trace has changed something, which the calls of its plan will not do.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import partial
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from .._core import Value
from ..graph.counter import is_counter
from ..graph.symbolic_number import is_number
from .places import Array, Attributes, Cell, Items, Memory, Place
from .same import same

__all__ = ["added_to", "binds_array", "holds_symbolic", "is_other", "symbolic_in"]

_MOST_LOOKED_AT = 10_000


def added_to(place: Place, state: Any) -> frozenset[Any] | None:
    """Return the keys that a container has gained since `state` (none if it has no keys); None unless it only grew."""
    if not isinstance(place, Items):
        return None
    now = place.now()
    if isinstance(place.owner, set):
        return frozenset() if set(state) < place.owner else None
    if len(now) <= len(state):
        return None
    if not isinstance(place.owner, dict):
        return frozenset() if same(state, now[: len(state)]) else None
    before, held = dict(state), dict(now)
    kept = all(key in held and same(x, held[key]) for key, x in state)
    return frozenset(held.keys() - before.keys()) if kept else None


def is_other(place: Place, state: Any) -> bool:
    """Return whether a place holds other numbers, texts or objects than at `state`, and not the same made once more."""
    if isinstance(place, Array):
        return state[3] is None or not same(state[3], place.owner)
    if isinstance(place, Memory):
        return True
    now = place.now()
    if isinstance(place, Items):
        kind = dict if isinstance(place.owner, dict) else set if isinstance(place.owner, set) else list
        return not same(kind(state), kind(now))
    return not same(state, now)


def binds_array(place: Place, state: Any) -> bool:
    """Return whether a variable, or an attribute, is another array than at `state`, whatever its elements."""
    if not isinstance(place, (Cell, Attributes)):
        return False
    now = place.now()
    if isinstance(place, Cell):
        return isinstance(now, np.ndarray) and now is not state
    before = dict(state)
    return any(isinstance(x, np.ndarray) and name in before and before[name] is not x for name, x in now)


def holds_symbolic(x: Any) -> bool:
    """Return whether an object, or what it holds, is a symbolic array or number.

    >>> from pyop.tracing.left_behind import holds_symbolic
    >>> holds_symbolic([{"a": (1, 2)}])
    False
    """
    return any(True for _ in symbolic_in(x))


def symbolic_in(x: Any) -> Iterator[Any]:
    """Yield the symbolic arrays and numbers that an object holds, or is."""
    pending, seen = [x], {id(x)}
    while pending and len(seen) < _MOST_LOOKED_AT:
        x = pending.pop()
        if type(x) is Value or is_number(x) or is_counter(x):
            yield x
            continue
        parts = [part for part in _parts(x) if id(part) not in seen]
        seen.update(map(id, parts))
        pending.extend(parts)


def _parts(x: Any) -> list[Any]:
    if isinstance(x, dict):
        return [part for pair in dict.items(x) for part in pair]
    if isinstance(x, (list, tuple, deque, set, frozenset)):
        return list(x)
    if isinstance(x, np.ndarray):
        return list(x.flat) if x.dtype.hasobject else []
    if isinstance(x, np.void):
        return list(x.item()) if x.dtype.names else []
    if isinstance(x, FunctionType):
        return [*(x.__closure__ or ()), *(x.__defaults__ or ()), *(x.__kwdefaults__ or {}).values()]
    if isinstance(x, MethodType):
        return [x.__self__]
    if isinstance(x, partial):
        return [x.func, *x.args, *x.keywords.values()]
    if isinstance(x, CellType):
        try:
            return [x.cell_contents]
        except ValueError:  # empty
            return []
    if isinstance(x, (type, ModuleType)):
        return []
    held = getattr(x, "__dict__", None)
    return list(held.values()) if type(held) is dict else []
