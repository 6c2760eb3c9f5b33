"""``for i in range(n)`` of a function under trace, as one Loop: what stands for `range` in twins.

The first iterations are written down as they are, with their numbers. From them it is known which variables are bound
anew and what memory is written. Then stand-ins take the place of these: the Values that the variables hold now are
moved on to the stand-ins, and one more iteration is written down, with a `Counter` for its number. What it makes of the
stand-ins is the body. When the loop asks for the next number, the Values are moved on to what the Loop leaves behind,
and the loop is over.

Whatever is not as it should be (another variable bound, a number needed, anything raised) ends the trace by `Unroll`,
and the function is traced again with that loop as it was written.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any, NoReturn

import numpy as np

from .._core import Value
from ..graph.counter import is_counter
from ..graph.graph import Graph
from ..graph.symbolic_number import Specialise
from ..tracing.twins import graph_under_twins, stand_in
from .recording import Recording, add_loop
from .sites import Site, globals_of, only_computes, site_of

__all__ = ["Unroll"]

_FEW = 8  # iterations that are not worth a Loop
_PEELED = 3
_LARGE = 1 << 20  # bytes of an array of the user's that are not worth looking at
_IN_FRAME = 2 if sys.version_info < (3, 13) else 1  # references that a frame has to what a variable holds
_MISSING: Any = object()


def _asking() -> int:
    """How many references there are to what nobody has, where `_Rolled._only_here` asks."""

    def ask(x: Any) -> int:
        asked = [x]
        return sys.getrefcount(asked[0])

    class Holder:
        held = object()

    holder = Holder()
    holder.held = object()
    return ask(holder.held)


_ASKING = _asking()
_Key = tuple[Any, int]


class Unroll(Specialise):
    """The trace is made again, with these loops unrolled."""

    def __init__(self, keys: set[_Key]) -> None:
        super().__init__(frozenset())
        self.keys = keys


def _range(*args: Any) -> Any:
    graph = graph_under_twins()
    if graph is None or graph._unrolled is None or any(map(is_counter, args)):
        return range(*args)
    numbers = range(*args)
    return _Numbers(numbers, graph) if len(numbers) >= _FEW else numbers


class _Numbers:
    """A range that counts a loop symbolically, if it is asked by one."""

    __slots__ = ("_graph", "_range")

    def __init__(self, numbers: range, graph: Graph) -> None:
        self._range = numbers
        self._graph = graph

    def __iter__(self) -> Any:
        frame = sys._getframe(1)
        key = frame.f_code, frame.f_lasti
        site = None if key in self._graph._unrolled else site_of(*key)
        return iter(self._range) if site is None else _Rolled(self._range, self._graph, frame, site, key)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return range

    def __getattr__(self, name: str) -> Any:
        return getattr(self._range, name)

    def __len__(self) -> int:
        return len(self._range)

    def __getitem__(self, key: Any) -> Any:
        return self._range[key]

    def __contains__(self, item: object) -> bool:
        return item in self._range

    def __reversed__(self) -> Any:
        return reversed(self._range)

    def __eq__(self, other: object) -> bool:
        return self._range == (other._range if type(other) is _Numbers else other)

    def __hash__(self) -> int:
        return hash(self._range)

    def __repr__(self) -> str:
        return repr(self._range)

    def __reduce__(self) -> Any:
        return self._range.__reduce__()


class _Unit:
    """What is carried: a Value under some names, or memory that is written."""

    __slots__ = ("handle", "names", "stand_in", "start")

    def __init__(self, handle: Value, names: list[str]) -> None:
        self.handle = handle
        self.names = names

        self.start: Value = handle._apart() if names else handle._root()
        self.stand_in = self.start


class _Rolled:
    """The iterator of a loop that becomes a node."""

    def __init__(self, numbers: range, graph: Graph, frame: FrameType, site: Site, key: _Key) -> None:
        self.numbers = numbers
        self.graph = graph
        self.frame: Any = frame
        self.site = site
        self.key = key
        self.done = 0
        self.plain: Any = None
        self.before: dict[str, Any] = {}
        self.log: list[Any] = []
        self.outer: Any = None
        self.units: list[_Unit] = []
        self.recording: Recording | None = None

    def __iter__(self) -> _Rolled:
        return self

    def __next__(self) -> Any:
        if self.plain is not None:
            return next(self.plain)
        if self.frame is not sys._getframe(1) or self.frame.f_lasti != self.site.header:
            return self._unrolled(started=self.done > 0)
        if self.recording is not None:
            self._close()
        now = _locals(self.frame)
        if self.done == 0:
            if not self._may(now):
                return self._unrolled()
            self.graph._rolling.append(self)
            self.outer = Value._log_writes(self.log)
        elif self._opens(now):
            return self._open(now)
        elif self.done == _PEELED:
            return self._unrolled(started=True)
        self.before = now
        self.first = len(self.graph)
        self.log_from = len(self.log)
        self.done += 1
        return self.numbers[self.done - 1]

    # --- whether

    def _unrolled(self, started: bool = False) -> Any:
        """Go on as Python does."""
        if self.recording is not None:
            self._give_up()
        if started:
            self._leave()
        self.frame = None
        self.plain = iter(self.numbers[self.done :])
        return next(self.plain)

    def _give_up(self) -> NoReturn:
        raise Unroll({self.key})

    def _may(self, now: dict[str, Any]) -> bool:
        """Whether the body does nothing but compute and write into Values."""
        used = [now[name] for name in self.site.read if name in now] + globals_of(self.site, self.frame)
        arrays = [x for x in used if type(x) is np.ndarray]
        if any(x.nbytes > _LARGE or x.dtype.hasobject for x in arrays):
            return False
        self.arrays = [(x, x.tobytes()) for x in arrays]
        return all(type(x) is np.ndarray or only_computes(x) for x in used)

    def _opens(self, now: dict[str, Any]) -> bool:
        """Find what is carried; False if another iteration has to be written down first."""
        units: list[_Unit] = []
        bound: dict[int, list[str]] = {}
        for name in self.site.carried:
            held, before = now.get(name, _MISSING), self.before.get(name, _MISSING)
            if held is before and type(held) is Value:
                continue  # its memory may be written
            if type(held) is Value:
                bound.setdefault(id(held), []).append(name)
            elif not _same(held, before):
                return False
        held = before = None  # which `_only_here` would count
        for key, names in bound.items():
            if [id(x) for x in now.values()].count(key) != len(names):
                return False  # another variable has it, which is not bound anew
            unit = _Unit(now[names[0]], names)
            if _is_shown(unit.handle) or not _is_known(unit.start) or not self._only_here(unit.handle, now):
                return False
            units.append(unit)
        for handle, node, _ in self.log[self.log_from :]:
            if node >= self.first or any(_one_memory(handle, unit.handle) for unit in units):
                continue
            unit = _Unit(handle, [])
            if not _is_known(unit.start):
                return False
            units.append(unit)
        if any(self.graph[k].stateful for k in range(self.first, len(self.graph))):
            return False
        apart = [unit.handle for unit in units]
        if any(a._shares_memory(b) for k, a in enumerate(apart) for b in apart[:k]):
            return False
        self.units = units
        return bool(units)

    def _only_here(self, handle: Value, now: dict[str, Any]) -> bool:
        """Whether nobody holds a Value but the variables of this function."""
        names = [id(held) for held in now.values()].count(id(handle))
        known = names * (_IN_FRAME + 1) + [id(held) for held in self.before.values()].count(id(handle))
        known += [id(unit.handle) for unit in self.units].count(id(handle))
        asked = [handle]
        return sys.getrefcount(asked[0]) <= known + _ASKING

    # --- the one iteration

    def _open(self, now: dict[str, Any]) -> Any:
        self.before = now
        self.recording = recording = Recording(self.graph)
        Value._log_writes(None)
        counter, number = recording.counter(self._give_up)
        self.given = [number]
        for unit in self.units:
            unit.stand_in = recording.stand_in(unit.start.spec, unit.start._is_scalar)
            self.given.append(unit.stand_in)
            unit.handle._write_root(unit.stand_in)
        Value._log_writes(recording.written)
        self.rest = self.numbers[self.done :]
        return counter

    def _close(self) -> NoReturn:
        recording = self.recording
        assert recording is not None
        Value._log_writes(None)
        now = _locals(self.frame)
        results = self._results(now)
        if recording.written_before() or any(x.tobytes() != held for x, held in self.arrays):
            self._give_up()
        if any(self.graph[k].stateful for k in range(recording.first, len(self.graph))):
            self._give_up()
        starts = [unit.start for unit in self.units]
        for start, (_, value) in zip(starts, results, strict=True):
            if start.spec != value.spec or start._is_scalar != value._is_scalar:
                self._give_up()
        bounds = self.rest.start, self.rest.stop, self.rest.step
        made = add_loop(recording, bounds, self.given, starts, [value for _, value in results])
        recording.close()
        for (handle, _), value in zip(results, made, strict=True):
            handle._write_root(value)
        for unit, start in zip(self.units, starts, strict=True):
            if not unit.names:
                self.log.append((unit.handle, start.node.index, start.output_index))
        self._leave()
        self.plain = iter(())
        self.frame = None
        raise StopIteration

    def _results(self, now: dict[str, Any]) -> list[tuple[Value, Value]]:
        """Of each unit the handle that has it now, and what that is."""
        found: list[tuple[Value, Value]] = []
        named = {name for unit in self.units for name in unit.names}
        for unit in self.units:
            handle = now.get(unit.names[0]) if unit.names else unit.handle
            if type(handle) is not Value or any(now.get(name) is not handle for name in unit.names):
                self._give_up()
            if unit.names and (_is_shown(handle) or not self._only_here(handle, now)):
                self._give_up()
            found.append((handle, handle._apart() if unit.names else handle._root()))
        handles = [handle for handle, _ in found]
        for k, a in enumerate(handles):
            if any(a is b or a._shares_memory(b) for b in handles[:k]):
                self._give_up()
        for name in self.site.carried - named:
            held, before = now.get(name, _MISSING), self.before.get(name, _MISSING)
            if not (held is before or _same(held, before)):
                self._give_up()
        return found

    def _leave(self) -> None:
        """The loop is over: what it has written, the loop around it has."""
        if self.outer is not None:
            self.outer += self.log
        Value._log_writes(self.outer)
        self.graph._rolling.remove(self)
        self.recording = None


def _locals(frame: FrameType) -> dict[str, Any]:
    return dict(frame.f_locals)


def _is_known(value: Value) -> bool:
    return (
        value.dtype is not None
        and value.dtype.kind in "biufc"
        and value.shape is not None
        and value._is_scalar is not None
        and all(size is not None for size in value.shape)
    )


def _is_shown(value: Value) -> bool:
    """Whether another Value has ever shown its memory, and may still do."""
    return value._shares_memory(value)


def _one_memory(a: Value, b: Value) -> bool:
    return a is b or a._shares_memory(b)


def _same(a: Any, b: Any) -> bool:
    """Whether two things that are no Values are one number or name, whose value an iteration does not change."""
    if a is b:
        return type(a) is not Value
    return type(a) is type(b) and type(a) in (int, float, complex, bool, str) and repr(a) == repr(b)


stand_in(range, _range)
