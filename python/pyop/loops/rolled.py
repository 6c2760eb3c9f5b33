"""A ``for`` of a function under trace, as one Loop: the iterator that writes its body down once.

The iterator hands out a `Counter`, and the iteration is written down. When the loop asks for the next number, it is
known which variables were bound anew and what memory was written. The variables and the memory are then put back to
what they were, and the same iteration is asked for once more, with stand-ins for what is carried, until nothing new is
found. A decision by the contents of an array goes one way; the iteration is asked for again with the other outcome
(`ways`). At last the variables hold what the Loop leaves behind, and the loop is over.

Where a first iteration has other dtypes than those behind it, that is written down as it is, with its number. Whatever
is not as it should be (a number needed, anything raised) ends the trace by `Unroll`, and the function is traced again
with that loop as it was written.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any, NoReturn

import numpy as np

from .._core import Value
from ..declare.spec import Spec
from ..graph.counter import size_of
from ..graph.graph import Graph
from ..graph.symbolic_number import Number
from .carried import Again, Carried, Otherwise, Unit
from .foreseen import foreseen
from .frames import Tuples, locals_of, put
from .numbers import named, sizes_of
from .recording import Recording, add_loop
from .sites import Site
from .surroundings import Surroundings
from .unrolled import Key, Peeled, Unroll
from .ways import MOST_WAYS, Decision, Way, joined
from .weak import Flagged, Flags

__all__ = ["FEW", "Peeled", "Rolled", "Unroll"]

FEW = 8  # iterations that are not worth a Loop
_PEELED = 3
_PASSES = 8
_TRUTH = Spec(np.dtype(np.bool_), ())


class Rolled(Carried):
    """The iterator of a loop that becomes a node."""

    def __init__(
        self,
        bounds: Any,
        graph: Graph,
        frame: FrameType,
        site: Site,
        key: Key,
        item: Any = None,
        plain: Any = None,
        mark: Any = None,
    ) -> None:
        self.bounds = bounds
        self.mark = mark  # of a loop that may be left early
        self.exits: Any = None  # the truths of its exits, once it is a node
        self.kinds: list[int] = []  # the numbers of the exits that were taken
        self.once = False  # whether there is an iteration for sure
        self.item = item  # what the loop gets for a number; None: the number
        self.source = plain  # what makes the iterator that Python has here
        self.graph = graph
        self.frame: Any = frame
        self.code = self.site = site  # what the code says; and with all that are variables here
        self.tuples = Tuples((), {})
        self.flags = Flags((), {}, None, False)
        self.key = key
        self.done = -1
        self.plain: Any = None
        self.head: dict[str, Any] = {}
        self.log: list[Any] = []
        self.outer: Any = None
        self.around: Any = None  # what the body reaches beside its variables
        self.units: list[Unit] = []
        self.affine: dict[str, Any] = {}
        self.ints: set[str] = set()
        self.recording: Recording | None = None
        self.written: list[Any] = []
        self.news: list[Unit] = []
        self.passes = 0

    def __iter__(self) -> Rolled:
        return self

    def __next__(self) -> Any:
        if self.plain is not None:
            return self._next()
        if self.frame is not sys._getframe(1) or self.frame.f_lasti != self.site.header:
            return self._unrolled()
        if self.around is not None and not self.around.are_the_same:
            return self._unrolled()
        now = self._now()
        if self.recording is not None:
            if self.tuples.split(now) is None:
                self._give_up()
            self.flags.behind(now, self.handed, self._weak())
            return self._behind(now)
        if self.done < 0:
            self.done = 0
            self.around = Surroundings(self.code, self.frame, now)
            if not self.around.only_computes:
                return self._unrolled()
            now = self._now()
            self.graph._rolling.append(self)
            self.outer = Value._log_writes(self.log)
            if Peeled(self.key) in self.graph._unrolled and self.bounds.known is not None:
                self.head = now
                return self._otherwise()
        if self.mark is not None and self.mark.ends:
            self._over(now)
        self.tuples = Tuples(self.code.carried - self.code.targets, now)
        self.tuples.split(now)
        site = self.code.among(self.around.places, self.tuples.names)
        marked = any(type(mark) is Flagged for mark in self.graph._unrolled)  # a loop around it hands it on
        self.flags = Flags(sorted(site.inner), now, self.graph._weak, marked)
        self.site = site.among((), self.flags.names)
        self.head = now
        self.once = self.bounds.known is not None
        self.units, self.affine, self.ints, self.passes, self.bound_at_times = [], {}, set(), 0, set()
        if len(self.rest) < 2 or self.done > _PEELED if self.bounds.known is not None else False:
            return self._unrolled()
        return self._open()

    def _next(self) -> Any:
        """The next item, as Python has it."""
        if self.mark is not None and self.mark.ends:
            raise StopIteration
        return next(self.plain)

    def _over(self, now: dict[str, Any]) -> NoReturn:
        """The loop has ended while its iterations were written down as they are."""
        self._leave()
        self.plain = iter(())
        self.frame = None
        raise StopIteration

    @property
    def rest(self) -> range:
        numbers: range = self.bounds.known[self.done :]
        return numbers

    # --- whether

    def _unrolled(self) -> Any:
        """Go on as Python does."""
        if self.recording is not None:
            self._give_up()
        if self.bounds.known is None:
            self.bounds.needed()
        if self in self.graph._rolling:
            self._leave()
        self.frame, self.head = None, {}
        self.plain = iter(self.bounds.known[max(self.done, 0) :])
        if self.item is not None:
            self.plain = self.source() if self.done <= 0 else map(self.item, self.plain)
        if self.mark is None:
            self.plain = foreseen(self.graph, self.plain, len(self.bounds.known[max(self.done, 0) :]))
        if self.mark is not None:
            self.mark.again()
        return self._next()

    def _give_up(self) -> NoReturn:
        raise Unroll({self.key})

    def _now(self) -> dict[str, Any]:
        """What the variables hold, and the places beside them."""
        now = locals_of(self.frame)
        if self.around is not None:
            now.update(self.around.now())
        return now

    def _put(self, wanted: dict[str, Any]) -> None:
        put(self.frame, self.tuples.joined(wanted), self.site.stored)
        self.around.put(wanted)

    # --- the one iteration

    def _open(self) -> Any:
        """Ask for the iteration, with stand-ins for what is known to be carried."""
        self.passes += 1
        if self.passes > _PASSES:
            return self._otherwise()
        Value._log_writes(None)
        self.recording = recording = Recording(self.graph)
        self.counter, number = recording.counter(self._give_up)
        sizes_of(self.graph).counts(size_of(self.counter).name, self.bounds.start, self.bounds.stop)
        self.given = [number]
        for unit in self.units:
            unit.written, unit.holders, unit.grown, unit.reset = False, [], 0, None
            unit.stand_in = recording.stand_in(unit.start.spec, unit.start._is_scalar)
            self.given.append(unit.stand_in)
            if unit.weak:
                self._weak().add(unit.stand_in, self.key)
        self.live = [recording.stand_in(_TRUTH, True, "goes_on") for _ in self._exit_starts()]
        self.one = []
        self.ways: list[Way] = []
        self.path: list[bool] = []
        return self._hand_out()

    def _hand_out(self) -> Any:
        held = dict(self.head)
        for unit in self.units:
            if not unit.names:
                unit.handle._write_root(unit.stand_in)
                continue
            unit.fresh = self._what(unit, unit.stand_in) if unit.kind is not None else unit.stand_in._apart()
            held.update(dict.fromkeys(unit.names, unit.fresh))
        for name, step in self.affine.items():
            held[name] = self._linear(name, step, self.counter)
        self._put(held)
        self.flags.note(held, self._weak())
        self.handed = held
        self.way = Way(len(self.graph))
        self.memo: dict[int, bool] = {}
        if self.mark is not None:
            self.mark.again()
        self.written = []
        Value._log_writes(self.written)
        return self.counter if self.item is None else self.item(self.counter)

    def _what(self, unit: Unit, value: Value) -> Any:
        """What a variable holds for a Value that is carried."""
        if unit.kind is None:
            return value
        if unit.kind is int:
            return named(self.graph, value, self._give_up)
        return Number(unit.kind, value, self._places())

    def _places(self) -> Any:
        return frozenset((self._give_up,))

    def _linear(self, name: str, step: Any, counter: Any) -> Any:
        """What a variable that grows by `step` in each iteration is in one."""
        by, rest = divmod(step, self.bounds.step)
        if rest:
            self._give_up()
        start = self.bounds.start if self.bounds.known is None else self.rest.start
        return self.head[name] + (counter - start) * by

    def began(self) -> None:
        """The condition of a ``while`` holds."""
        if self.recording is not None:
            self.way.head = len(self.way.taken)

    def decide(self, value: Value) -> bool:
        """Go one way by a truth that is not known."""
        if value.shape != () or value.dtype is None or value.dtype.kind not in "biufc":
            self._give_up()
        key = value._key
        if key not in self.memo:
            k = len(self.way.taken)
            if k >= MOST_WAYS:
                self._give_up()  # there are more ways than decisions
            self.memo[key] = self.path[k] if k < len(self.path) else True
            self.way.taken.append(Decision(value._lent(), len(self.graph) - self.way.first, self.memo[key]))
        return self.memo[key]

    def _behind(self, now: dict[str, Any]) -> Any:
        """The iteration is written down, on one of its ways."""
        assert self.recording is not None
        Value._log_writes(None)
        way = self.way
        try:
            if self.mark is not None:
                self._ended(way, now)
            way.results = [] if way.over else [*self._results(now), *self._exits_of(way)]
            way.end = len(self.graph)
            if any(self.graph[k].stateful for k in range(way.first, way.end)):
                self._give_up()
            if not way.over:
                self._apart(now)
            self.ways.append(way)
            path = [decision.outcome for decision in way.taken]
            while path and not path[-1]:
                path.pop()
            if path:
                if len(self.ways) >= MOST_WAYS:
                    self._give_up()
                self.path = [*path[:-1], False]
                self._rewind()
                return self._hand_out()
            self._check()
            results = self._joined()
            self._check_first(results)
        except Again:
            self._drop()
            return self._open()
        except Otherwise:
            return self._otherwise()
        return self._close(now, results)

    def _ended(self, way: Way, now: dict[str, Any]) -> None:
        """How an iteration has ended that may have left the loop."""
        way.number, way.over = self.mark.way, self.mark.over
        if way.over:
            if self.written or any(now.get(name) is not self.handed.get(name) for name in self.site.carried):
                self._give_up()  # its condition does something
            if not way.taken:
                if self.passes > 1:
                    self._give_up()
                self._drop()
                self._over(now)
        if self.passes == 1 and not self.ways:
            self.once = self.once and not way.over and way.head == 0
        if way.number is not None and way.number not in self.kinds:
            self.kinds.append(way.number)
            if not way.over:
                self._results(now)
            raise Again

    def _exit_starts(self) -> list[bool]:
        """What is carried that says whether the loop goes on, and which exit it took, if there are several."""
        return [True, *[False] * len(self.kinds)] if len(self.kinds) > 1 else [True] * len(self.kinds)

    def _exits_of(self, way: Way) -> list[bool]:
        by = [way.number == number for number in self.kinds]
        return [way.number is None, *by] if len(by) > 1 else [way.number is None for _ in by]

    def _joined(self) -> list[Any]:
        """What an iteration makes; behind that, for a loop that may be left, whether there is one more."""
        assert self.recording is not None
        first = self.recording.first
        on = [way for way in self.ways if not way.over]
        if not on or (self.mark is not None and self.mark.endless and len(on) == len(self.ways) and not self.kinds):
            self._give_up()
        results = [self._as_value(x) for x in joined(self.graph, first, on)]
        if len(on) == len(self.ways):
            return [*results, self.live[0]] if self.live else results
        heads: dict[Any, Way] = {}
        alive = [Decision(self.live[0], 0, True)] if self.live else []
        for way in self.ways:
            taken = way.taken if way.over else way.taken[: way.head]
            outcomes = tuple([decision.outcome for decision in taken])
            heads.setdefault(outcomes, Way(way.first, way.end, [*alive, *taken], [not way.over]))
        if alive:
            dead = Way(self.ways[0].first, self.ways[0].first, [Decision(self.live[0], 0, False)], [False])
            heads[None] = dead
        return [*results, self._as_value(joined(self.graph, first, [*heads.values()])[0])]

    def _as_value(self, x: Any) -> Value:
        made: Value = self.graph.constant(np.asarray(x))[()] if type(x) is bool else x
        return made

    def _rewind(self) -> None:
        """Put back what the iteration has written."""
        assert self.recording is not None
        Value._log_writes(None)
        for handle, node, output in reversed(self.written):
            if node < self.recording.first:
                handle._write_root(self.graph._value(node, output))
        self.written = []

    def _drop(self) -> None:
        """Put all back to what it was before the iteration."""
        self._rewind()
        for unit in self.units:
            if not unit.names:
                unit.handle._write_root(unit.start)
        assert self.recording is not None
        self.recording.close()
        self.recording = None
        for unit in self.news:
            if type(unit.handle) is Value:
                unit.start = unit.handle._apart() if unit.names else unit.handle._root()
            self.units.append(unit)
        self.news = []
        self._put(self.head)

    def _otherwise(self) -> Any:
        """Write one iteration down as it is."""
        self.news = []
        if self.recording is not None:
            self._drop()
        if self.bounds.known is None:
            return self.bounds.needed()
        if any(name not in self.head for name in self.site.carried & locals_of(self.frame).keys()):
            self._give_up()  # a variable that was not bound is now: not all Pythons can take that back
        if self.done >= _PEELED or len(self.rest) < 2:
            if self.done >= _PEELED and not any(loop.recording is not None for loop in self.graph._rolling):
                self.graph._unrolled.add(self.key)  # where it begins again, it is not tried again
            return self._unrolled()
        self.units = []
        if self.mark is not None:
            self.mark.again()
        self.done += 1
        Value._log_writes(self.log)
        number = self.bounds.known[self.done - 1]
        return number if self.item is None else self.item(number)

    # --- the end

    def _close(self, now: dict[str, Any], results: list[Value]) -> Any:
        recording = self.recording
        assert recording is not None
        known = self.bounds.known
        iterations = sizes_of(self.graph).largest(self.bounds.stop - self.bounds.start)
        behind: dict[str, Any] = {}
        for name, step in self.affine.items():
            if name in self.site.behind:
                if known is None:
                    self._give_up_all()
                behind[name] = self.head[name] + step * len(self.rest)
        for name in self.site.targets & self.site.behind if self.mark is None else ():
            if known is None or self.item is not None:
                self._give_up_all()
            behind[name] = self.rest[-1]
        self._rewind()
        starts = [unit.start for unit in self.units]
        for unit in self.units:
            if not unit.names:
                unit.handle._write_root(unit.start)
        if not self.units and not self.live:
            if self.mark is not None and len(results) > 0:
                self._give_up()  # nobody knows whether it ends
            recording.close()
            made: list[Value] = []
        else:
            rest = None if known is None else self.rest
            bounds = self.bounds.values() if rest is None else (rest.start, rest.stop, rest.step)
            leaves = len(results) > len(self.units) + len(self.live)
            starts += [self._as_value(start) for start in self._exit_starts()]
            made = add_loop(recording, bounds, [*self.given, *self.live], starts, results, leaves)
            recording.close()
            self._note(made, results[: len(self.units)])
            made, exits = made[: len(self.units)], made[len(self.units) :]
            if self.mark is not None:
                self.exits = self._exits(exits)
        for unit, value in zip(self.units, made, strict=True):
            if unit.names:
                what = self._what(unit, value)
                behind.update(dict.fromkeys(unit.names, what))
                if unit.kind is int:
                    self._note_size(unit, what, iterations)
            else:
                unit.handle._write_root(value)
                self.log.append((unit.handle, unit.start.node.index, unit.start.output_index))
        behind = {**self.head, **behind}
        self._put(behind)
        self.flags.note(behind, self._weak())
        for a, b in self.one:
            self._weak().note_one(behind[a.names[0]], behind[b.names[0]], self.key)
        self._leave()
        self.plain = iter(())
        self.frame, self.head, self.handed = None, {}, {}
        raise StopIteration

    def _exits(self, made: list[Value]) -> dict[int, Value]:
        """Which exit was taken, by its number."""
        if len(self.kinds) > 1:
            return dict(zip(self.kinds, made[1:], strict=True))
        truths: dict[int, Any] = {number: np.logical_not(made[0]) for number in self.kinds}
        return truths

    def _give_up_all(self) -> NoReturn:
        if self.bounds.known is None:
            self.bounds.needed()
        self._give_up()

    def _note(self, made: list[Value], results: list[Value]) -> None:
        """Remember what may be a Python number."""
        weak = self._weak()
        empty = self.bounds.known is None or (self.mark is not None and not self.once)
        node = next(
            (k for k in range(len(self.graph) - 1, -1, -1) if type(self.graph[k].function).__name__ == "Loop"), 0
        )
        weak.note_loop(node, self.key, self.given[1:], results, empty)
        for unit in self.units:
            if unit.weak:
                weak.add(unit.start, self.key)

    def _leave(self) -> None:
        """The loop is over: what it has written, the loop around it has."""
        if self.outer is not None:
            self.outer += self.log
        Value._log_writes(self.outer)
        self.graph._rolling.remove(self)
        self.recording = None
