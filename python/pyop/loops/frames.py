"""Read the local variables of a function that runs, and put them back to what they were.

A loop that is written down asks for the same iteration more than once. Each time the variables are what they were where
the loop asked first.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import FrameType
from typing import Any

__all__ = ["Tuples", "locals_of", "put"]


def locals_of(frame: FrameType) -> dict[str, Any]:
    """Return the variables that are bound.

    >>> import sys
    >>> from pyop.loops.frames import locals_of, put
    >>> def f(x):
    ...     before = locals_of(sys._getframe())
    ...     x, y = x + 1, 2
    ...     put(sys._getframe(), before, ["x", "y"])
    ...     return x
    >>> f(1)
    1
    """
    return dict(frame.f_locals)


if sys.version_info >= (3, 13):

    def put(frame: FrameType, wanted: dict[str, Any], names: Iterable[str]) -> None:
        """Bind variables as they are in `wanted`; one that is not stays as it is, for it is not read."""
        held = frame.f_locals
        for name in names:
            if name in wanted:
                held[name] = wanted[name]

else:
    import ctypes

    _write = ctypes.pythonapi.PyFrame_LocalsToFast
    _write.argtypes = [ctypes.py_object, ctypes.c_int]
    _write.restype = None

    def put(frame: FrameType, wanted: dict[str, Any], names: Iterable[str]) -> None:
        """Bind variables as they are in `wanted`; one that is not stays as it is, for it is not read."""
        held = frame.f_locals
        for name in names:
            if name in wanted:
                held[name] = wanted[name]
        _write(frame, 0)


_LONGEST = 16


class Tuples:
    """Hold the variables that are tuples, each of whose items counts as a variable, under a name of its own.

    >>> from pyop.loops.frames import Tuples
    >>> pairs = Tuples({"where", "best"}, {"where": (1, 2), "best": 0.5})
    >>> pairs.split({"where": (3, 4), "best": 0.5})
    {'best': 0.5, 'where.0': 3, 'where.1': 4}
    >>> pairs.joined({"best": 0.5, "where.0": 5, "where.1": 6})
    {'best': 0.5, 'where.0': 5, 'where.1': 6, 'where': (5, 6)}
    """

    __slots__ = ("items",)

    def __init__(self, names: Iterable[str], now: dict[str, Any]) -> None:
        held = {name: now[name] for name in names if type(now.get(name)) is tuple}
        self.items = {
            name: [f"{name}.{k}" for k in range(len(x))] for name, x in held.items() if 0 < len(x) <= _LONGEST
        }

    def names(self, names: frozenset[str]) -> frozenset[str]:
        """Return the names of variables, with those of items in the place of tuples."""
        return frozenset(item for name in names for item in self.items.get(name, (name,)))

    def split(self, now: dict[str, Any]) -> dict[str, Any] | None:
        """Return what variables hold, with items in the place of tuples; None if one is no such tuple any more."""
        for name, items in self.items.items():
            x = now.pop(name, None)
            if type(x) is not tuple or len(x) != len(items):
                return None
            now.update(zip(items, x, strict=True))
        return now

    def joined(self, wanted: dict[str, Any]) -> dict[str, Any]:
        """Return what variables hold, with the tuples that the items make."""
        made = {name: tuple([wanted[item] for item in items]) for name, items in self.items.items()}
        return {**wanted, **made} if made else wanted
