"""What a loop is expected to carry: what it carried when it was recorded last.

A first recording of an iteration shows what it changes, a second one has stand-ins for that. Where the same code is
recorded again (an inner loop in each recording of the loop around it, a loop in a further trace), it mostly changes
what it changed last time: that is foreseen in place of the first recording. Where an iteration then leaves something
else, nothing is foreseen, and it is recorded as one that nobody knows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._core import Value
from ..graph.counter import is_counter
from ..graph.symbolic_number import Number
from .carried import Again, Otherwise, one_memory
from .numbers import DTYPES, named
from .weak import key_of

__all__ = ["Expected", "Unexpected"]


class Unexpected(NamedTuple):
    """A loop that was given up for what was foreseen of it, perhaps: nothing is, in the next trace."""

    loop: Any


class _Kind(NamedTuple):
    """What a variable holds behind an iteration: a Value, or a Python number of some kind."""

    unit: int  # the same number for variables that hold the same
    kind: Any
    dtype: Any
    shape: Any
    is_scalar: bool

    def made(self, loop: Any) -> Any:
        """Return something of the kind, which nobody reads."""
        graph = loop.graph
        if not self.is_scalar:
            return graph.constant(np.zeros(self.shape, self.dtype))
        value = graph.constant(np.zeros((), DTYPES.get(self.kind, self.dtype)))[()]
        if self.kind is int:
            return named(graph, value, loop.give_up)
        return value if self.kind is None else Number(self.kind, value, loop.places())


class Expected:
    """What a loop carried, without anything of the trace that it was recorded in."""

    __slots__ = ("_affine", "_bound_at_times", "_ints", "_kinds", "_leaves", "_memory", "_once", "done")

    def __init__(self, loop: Any) -> None:
        self.done = loop.done  # so many iterations were recorded as they are
        self._once, self._leaves = loop.once, loop.leaves
        self._affine, self._ints, self._bound_at_times = dict(loop.affine), set(loop.ints), set(loop.bound_at_times)
        self._kinds: dict[str, _Kind] = {}
        self._memory: list[str] = []  # variables that show memory which is written
        for k, unit in enumerate(loop.units):
            start = unit.start
            kind = _Kind(k, unit.kind, start.dtype, start.shape, bool(start._is_scalar))
            self._kinds.update(dict.fromkeys(unit.names, kind))
            if not unit.names:
                shown = [name for name, x in loop.head.items() if type(x) is Value and one_memory(x, unit.handle)]
                self._memory += sorted(shown, key=lambda name: loop.head[name] is not unit.handle)[:1]

    def foresee(self, loop: Any) -> bool:
        """Note what a loop changes as if it was seen; return False where that cannot be carried from here."""
        loop.once, loop.leaves, loop.ints = loop.once and self._once, self._leaves, set(self._ints)
        now = {**loop.head, **dict.fromkeys(loop.site.targets, loop.counter)}
        made = {kind.unit: kind.made(loop) for kind in {*self._kinds.values()}}
        now.update({name: made[kind.unit] for name, kind in self._kinds.items()})
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
