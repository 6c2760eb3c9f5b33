"""Foresee what a loop carries: what it carried when it was recorded last.

A first recording of an iteration shows what it changes, a second one has stand-ins for that. Where the same code is
recorded again (an inner loop in each recording of the loop around it, a loop in a further trace), it mostly changes
what it changed last time: that is foreseen in place of the first recording. Where an iteration then leaves something
else, nothing is foreseen, and it is recorded as one that nobody knows.
"""

from __future__ import annotations

import weakref
from types import BuiltinFunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from .._core import Value
from ..declare.spec import Spec
from ..graph.counter import is_counter
from ..graph.symbolic_number import Number, is_number
from .carried import Again, Otherwise, one_memory
from .numbers import named
from .weak import key_of

__all__ = ["Expected", "Unexpected"]


class Unexpected(NamedTuple):
    """Note a loop that was given up, perhaps for what was foreseen of it: the next trace foresees nothing."""

    loop: Any
    way: str = "unexpected"


class _Kind(NamedTuple):
    """Describe what a variable holds behind an iteration: a Value, or a Python number of some kind."""

    unit: int  # the same number for variables that hold the same
    kind: Any
    spec: Spec
    is_scalar: bool
    is_weak: bool  # a Python number before the loop

    def made(self, loop: Any) -> Any:
        """Return something of the kind, which is never computed."""
        value = loop.recording.stand_in(self.spec, self.is_scalar)
        if self.kind is int:
            return named(loop.graph, value, loop.give_up)
        return value if self.kind is None else Number(self.kind, value, loop.places())


class Expected:
    """Keep what a loop carried, without anything of the trace that it was recorded in."""

    __slots__ = (
        *("_affine", "_bound_at_times", "_graph", "_ints", "_kinds", "_leaves", "_memory", "_once", "_signature"),
        "done",
    )

    def __init__(self, loop: Any) -> None:
        self.done = loop.done  # so many iterations were recorded as they are
        self._once, self._leaves = loop.once, loop.leaves
        self._affine, self._ints, self._bound_at_times = dict(loop.affine), set(loop.ints), set(loop.bound_at_times)
        self._graph, self._signature = weakref.ref(loop.graph), _signature(loop)
        self._kinds: dict[str, _Kind] = {}
        self._memory: list[str] = []  # variables that show memory which is written
        for k, unit in enumerate(loop.units):
            kind = _Kind(k, unit.kind, unit.start.spec, bool(unit.start._is_scalar), unit.weak)
            self._kinds.update(dict.fromkeys(unit.names, kind))
            if not unit.names:
                shown = [name for name, x in loop.head.items() if type(x) is Value and one_memory(x, unit.handle)]
                self._memory += sorted(shown, key=lambda name: loop.head[name] is not unit.handle)[:1]

    def foresee(self, loop: Any) -> bool:
        """Note what a loop changes as if it was seen; return False where that cannot be carried from here."""
        loop.once, loop.leaves, loop.ints = loop.once and self._once, self._leaves, set(self._ints)
        now = {**loop.head, **dict.fromkeys(loop.site.targets, loop.counter)}
        # A scalar of a larger dtype than the iteration would leave stays one: it must be the same in all that decides.
        same = self._graph() is loop.graph and self._signature is not None and self._signature == _signature(loop)
        kinds = {name: kind for name, kind in self._kinds.items() if same or not kind.is_weak}
        made = {kind.unit: kind.made(loop) for kind in {*kinds.values()}}
        now.update({name: made[kind.unit] for name, kind in kinds.items()})
        memory = [x for name in self._memory if type(x := loop.head.get(name)) is Value and not x._is_scalar]
        loop.handed, loop.written = loop.head, [(x, *key_of(x._root())) for x in memory]
        for name, step in self._affine.items():
            if not (type(now.get(name)) is int or is_counter(now.get(name))):
                return False
            now[name] = now[name] + step
        try:
            loop._results(now)
        except Again:
            loop.bound_at_times = set(self._bound_at_times)
            return True
        except Otherwise:
            pass
        return False


def _signature(loop: Any) -> tuple[Any, ...] | None:
    """Return what decides which dtypes an iteration leaves, in one trace; None if that is not known."""
    names = loop.code.read | loop.code.carried | loop.around.places.keys()
    found = tuple([(name, _told(loop.head[name])) for name in sorted(names) if name in loop.head])
    return None if any(part is None for _, part in found) else found


def _told(x: Any) -> Any:
    kind = type(x)
    if kind is Value:
        return kind, x.dtype, x._is_scalar, x.ndim
    if is_counter(x) or is_number(x):
        return kind, getattr(x, "_kind", int)
    if kind in (int, float, bool, complex, str, bytes, type(None)):
        return kind, repr(x)
    if kind is tuple:
        parts = tuple(map(_told, x))
        return None if None in parts else parts
    if kind is np.ndarray:
        return kind, x.dtype, x.shape
    if isinstance(x, (ModuleType, BuiltinFunctionType, type, np.ufunc)):
        return kind, id(x)
    return None
