"""Record a ``for`` of a function under trace as one Loop, by an iterator that records its body once.

The iterator hands out a `Counter`, and the iteration is written down. When the loop asks for the next number, it is
known which variables were bound anew and what memory was written. The variables and the memory are then put back to
what they were, and the same iteration is asked for once more, with stand-ins for what is carried, until nothing new is
found. Of a condition that is not known both arms are recorded (`arms`). At last the variables hold what the Loop leaves
behind, and the loop is over.

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
from ..graph.deciding import recorded_loop
from ..graph.graph import Graph
from ..graph.symbolic_number import Number, is_number
from .alternatives import Alternatives
from .carried import Again, Otherwise, Unit
from .ends import Ends
from .expected import Expected, Unexpected
from .foreseen import foreseen
from .frames import Tuples, locals_of, put
from .held_lists import Lists
from .numbers import LARGEST, named, sizes_of
from .recording import Recording, add_loop
from .sites import Site
from .surroundings import Surroundings
from .unrolled import Flagged, Key, Peeled, Unroll
from .weak import BY_NAME, Flags

__all__ = ["FEW", "Peeled", "Rolled", "Unroll"]

FEW = 8  # iterations that are not worth a Loop
_PEELED = 3
_PASSES = 8
_EXIT = Spec(np.dtype(np.int64), ())


class Rolled(Ends):
    """Record a ``for`` loop as one node; this is the iterator of the loop."""

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
        self.exit: Any = None  # the number of the exit taken, once it is a node
        self.expected: Expected | None = None  # what it carries, if that is foreseen
        self.once = False  # whether there is an iteration for sure
        self.item = item  # what the loop gets for a number; None: the number
        self.source = plain  # what makes the iterator that Python has here
        self.graph = graph
        self.frame: Any = frame
        self.code = self.site = site  # what the code says; and with all that are variables here
        self.tuples = Tuples((), {})
        self.alternatives = Alternatives(graph, (), {})
        self.flags = Flags((), {}, None)
        self.key = key
        self.done = -1
        self.plain: Any = None
        self.head: dict[str, Any] = {}
        self.log: list[Any] = []
        self.outer: Any = None
        self.handed: dict[str, Any] = {}
        self.around: Any = None  # what the body reaches beside its variables
        self.lists: Any = None  # those that it holds as arrays
        self.recording: Recording | None = None
        self.written: list[Any] = []
        self.arms: list[Any] = []  # those that are being recorded
        self.views: list[tuple[Value, int]] = []  # what must not be written, with what its memory holds
        self.condition: Value | None = None  # of a ``while``, if it is not known
        self.conditions_end = 0  # behind the nodes of it

    def __iter__(self) -> Rolled:
        return self

    def __next__(self) -> Any:
        if self.plain is not None:
            return self._next()
        if self.recording is None and self.mark is not None and self.mark.ends_here:
            self._over()
        if self.frame is not sys._getframe(1) or self.frame.f_lasti != self.site.header:
            return self._unrolled()
        if self.around is not None and not self.around.are_the_same:
            return self._unrolled()
        if self.recording is None and self.done > 0 and self.lists.are_any and not self._looks_around():
            return self._unrolled()
        now = self._now() if self.recording is None else self.lists.rebound(self)
        if self.recording is not None:
            if self.tuples.split(now) is None or not self.alternatives.split(now, self.handed):
                self.give_up()
            self.flags.behind(now, self.handed, self.weak())
            return self._behind(now)
        if self.done < 0:
            self.done = 0
            now.clear()  # who holds a list is counted
            if not self._looks_around():
                return self._unrolled()
            now = self._now()
            self.graph._rolling.append(self)
            self.outer = Value._log_writes(self.log)
            if Peeled(self.key) in self.graph._unrolled and self.bounds.known is not None:
                self.head = now
                return self._otherwise()
        self.tuples = Tuples(self.code.carried - self.code.targets, now)
        self.tuples.split(now)
        self.alternatives = Alternatives(self.graph, {*now} - self.code.targets, now)
        if not self.alternatives.split(now, None):
            self.give_up()
        site = self.code.among(self.around.places, self.tuples.names, self.alternatives.names)
        self.weak().by_name |= not BY_NAME.isdisjoint(self.around.names)
        others = site.inner | site.behind if Flagged(self.key) in self.graph._unrolled else frozenset[str]()
        self.flags = Flags(sorted(site.inner), now, self.graph._weak, others)
        self.site = site.among((), self.flags.names)
        self.head = now
        self._begin(self.code.expected)
        if len(self.rest) < 2 or self.done > _PEELED if self.bounds.known is not None else False:
            return self._unrolled()
        return self._open()

    def _begin(self, expected: Expected | None) -> None:
        """Forget all of an iteration but what is expected of it."""
        if expected is not None and (expected.done != self.done or Unexpected(self.key) in self.graph._unrolled):
            expected = None
        self.expected, self.is_foreseen = expected, expected is None
        self.units, self.news, self.affine, self.ints, self.bound_at_times = [], [], {}, set(), set()
        self.passes, self.leaves, self.once = 0, False, self.bounds.known is not None

    def _looks_around(self) -> bool:
        """Note what the body reaches; return whether all that it does is compute."""
        self.around = None
        self.lists = Lists(self, self.frame, self._now(), self.code)
        self.lists.put()
        self.around = Surroundings(self.code, self.frame, self._now())
        computes: bool = self.around.only_computes
        return computes

    def _next(self) -> Any:
        """Return the next item, as Python has it."""
        if self.mark is not None and self.mark.ends_here:
            raise StopIteration
        return next(self.plain)

    def _over(self) -> NoReturn:
        """End a loop that is over while its iterations are recorded one by one."""
        self.lists.release()
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
            self.give_up()
        if self.bounds.known is None:
            self.bounds.needed()
        if self.lists is not None:
            self.lists.release()
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

    @property
    def blamed(self) -> Any:
        """Return what is to be done otherwise in the next trace if this loop cannot be recorded."""
        return self.key if self.expected is None else Unexpected(self.key)

    def give_up(self) -> NoReturn:
        raise Unroll({self.blamed})

    @property
    def trips(self) -> Any:
        """Return how many iterations there may be at most."""
        return sizes_of(self.graph).largest(self.bounds.stop - self.bounds.start)

    def _now(self) -> dict[str, Any]:
        """Return what the variables hold, and the places beside them."""
        now = locals_of(self.frame)
        if self.around is not None:
            now.update(self.around.now())
        return now

    def _put(self, wanted: dict[str, Any], decides: frozenset[str] = frozenset()) -> None:
        wanted = self.tuples.joined(self.alternatives.joined(wanted, decides))
        put(self.frame, wanted, self.site.stored)
        self.around.put(wanted)

    # --- the one iteration

    def _open(self) -> Any:
        """Ask for the iteration, with stand-ins for what is known to be carried."""
        if self.passes >= _PASSES:
            return self._otherwise()
        if self.alternatives.new or self.flags.lost or self.flags.new:
            self.flags.drop(self.head)
            self.alternatives.new = False
            self.head = self.alternatives.joined(self.head)
            if not self.alternatives.split(self.head, None):
                self.give_up()
            names = self.tuples.names, self.alternatives.names, self.flags.names
            self.site = self.code.among(self.around.places, *names)
        Value._log_writes(None)
        self.lists.prepare(self.trips)
        self.recording = recording = Recording(self.graph)
        self.counter, number = recording.counter(self.give_up)
        bounds = self.bounds
        sizes_of(self.graph).counts(size_of(self.counter).name, bounds.start, bounds.stop, bounds.step)
        self.given = [number]
        for unit in self.units:
            unit.written, unit.holders, unit.grown, unit.reset = False, [], 0, None
            unit.stand_in = recording.stand_in(unit.start.spec, unit.start._is_scalar)
            self.given.append(unit.stand_in)
            if unit.weak:
                self.weak().add(unit.stand_in, self.key)
        self.live = [recording.stand_in(_EXIT, True, "exit")] if self.leaves else []
        self.one = []
        if not self.is_foreseen:
            return self._foresee()
        self.passes += 1
        return self._hand_out()

    def _foresee(self) -> Any:
        """Carry what is expected, without asking for the iteration that would show it."""
        self.is_foreseen = True
        assert self.expected is not None
        if not self.expected.foresee(self):
            return self._unforeseen()
        self._drop()
        return self._open()

    def _unforeseen(self) -> Any:
        """Open the iteration as one of which nothing is known."""
        self.news = []
        self._drop()
        self._begin(None)
        return self._open()

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
        self.flags.note(held, self.weak())
        self.handed = held
        self.start = len(self.graph)
        self.condition, self.arms, self.views, self.chosen = None, [], [], {}
        if self.mark is not None:
            self.mark.again()
        self.written = []
        Value._log_writes(self.written)
        return self.counter if self.item is None else self.item(self.counter)

    def _what(self, unit: Unit, value: Value) -> Any:
        """Return what a variable holds for a Value that is carried."""
        if unit.kind is None:
            return value
        if unit.kind is int:
            return self.counted(value) if is_number(unit.handle) else named(self.graph, value, self.give_up)
        return Number(unit.kind, value, self.places())

    def counted(self, value: Value) -> Any:
        """Return an int64 of the loop as a number that it computes with; one that is no int64 raises."""
        made = named(self.graph, value[()], self.give_up)
        sizes_of(self.graph).most[size_of(made).name] = LARGEST
        self.graph._overflows = True
        return made

    def places(self) -> Any:
        return frozenset((self.give_up,))

    def _linear(self, name: str, step: Any, counter: Any) -> Any:
        """Return the value in one iteration of a variable that grows by `step` in each."""
        by, rest = divmod(step, self.bounds.step)
        if rest:
            self.give_up()
        start = self.bounds.start if self.bounds.known is None else self.rest.start
        return self.head[name] + (counter - start) * by

    def _behind(self, now: dict[str, Any]) -> Any:
        """Close the recorded iteration, or open another one if something is new."""
        assert self.recording is not None
        Value._log_writes(None)
        try:
            if self.arms:
                self.give_up()  # one was left on its way
            if self.mark is not None:
                self._ended(now)
            if lost := {f"{name}?" for name in self.flags.lost | self.flags.new.keys()}:
                self.units = [unit for unit in self.units if lost.isdisjoint(unit.names)]
                raise Again
            results = self._results(now)
            if any(self.graph[k].stateful for k in range(self.start, len(self.graph))):
                self.give_up()
            if any(view._root()._key != key for view, key in self.views):
                self.give_up()
            self._apart(now)
            self._check()
            self._settle_lists()
            if self.live:
                results.append(self._exit_of())
            results += self._goes_on()
            self._check_first(results)
        except Again:
            self._drop()
            return self._open()
        except Otherwise:
            return self._otherwise() if self.expected is None else self._unforeseen()
        return self._close(now, results)

    def _settle_lists(self) -> None:
        """Make room for what the lists get, now that it is known how much that is at most."""
        small = self.lists.settle(self)
        if small is not None:
            self.units = [unit for unit in self.units if not any(unit.handle is column for column in small)]
            raise Again

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
        self.weak().forget(self.recording.first, len(self.graph))
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
            self.give_up()  # a variable that was not bound is now: not all Pythons can take that back
        if self.done >= _PEELED or len(self.rest) < 2:
            if self.done >= _PEELED and recorded_loop(self.graph) is None:
                self.graph._unrolled.add(self.key)  # where it begins again, it is not tried again
            return self._unrolled()
        self.units = []
        if self.mark is not None:
            self.mark.again()
        self.done += 1
        self.lists.release()
        Value._log_writes(self.log)
        number = self.bounds.known[self.done - 1]
        return number if self.item is None else self.item(number)

    # --- the end

    def _close(self, now: dict[str, Any], results: list[Value]) -> Any:
        recording = self.recording
        assert recording is not None
        known = self.bounds.known
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
        asked_once = self.once and self.condition is not None  # whose first condition was known
        others = self.alternatives.kinds or self.lists.made or self.lists.held  # of which more than units is found
        self.code.expected = None if asked_once or others else Expected(self)
        self._rewind()
        starts = [unit.start for unit in self.units]
        for unit in self.units:
            if not unit.names:
                unit.handle._write_root(unit.start)
        if not self.units and not self.live:
            if len(results) > 0:
                self.give_up()  # nobody knows whether it ends
            recording.close()
            made: list[Value] = []
        else:
            rest = None if known is None else self.rest
            bounds = self.bounds.values() if rest is None else (rest.start, rest.stop, rest.step)
            leaves = len(results) > len(self.units) + len(self.live)
            starts += [self.graph.constant(np.asarray(0, np.int64))[()] for _ in self.live]
            made = add_loop(recording, bounds, [*self.given, *self.live], starts, results, leaves)
            recording.close()
            self._note(made, results[: len(self.units)])
            made, exits = made[: len(self.units)], made[len(self.units) :]
            self.exit = exits[0] if exits else None
        for unit, value in zip(self.units, made, strict=True):
            if unit.names:
                what = self._what(unit, value)
                behind.update(dict.fromkeys(unit.names, what))
                if unit.kind is int:
                    self._note_size(unit, what, self.trips)
            else:
                unit.handle._write_root(value)
                self.log.append((unit.handle, unit.start.node.index, unit.start.output_index))
        behind = {**self.head, **behind}
        outermost = not any(loop.recording is not None for loop in self.graph._rolling if loop is not self)
        self._put(behind, self.site.behind if outermost else frozenset())
        self.lists.leave()
        self.flags.note(behind, self.weak())
        for a, b in self.one:
            self.weak().note_one(behind[a.names[0]], behind[b.names[0]], self.key)
        self._leave()
        self.plain = iter(())
        self._forget()
        raise StopIteration

    def _give_up_all(self) -> NoReturn:
        if self.bounds.known is None:
            self.bounds.needed()
        self.give_up()

    def _note(self, made: list[Value], results: list[Value]) -> None:
        """Remember what may be a Python number."""
        weak = self.weak()
        empty = self.bounds.known is None or (self.mark is not None and not self.once)
        node = next(
            (k for k in range(len(self.graph) - 1, -1, -1) if type(self.graph[k].function).__name__ == "Loop"), 0
        )
        weak.note_loop(node, self.key, self.given[1:], results, empty, [unit.names for unit in self.units])
        for unit in self.units:
            if unit.weak:
                weak.add(unit.start, self.key)

    def _leave(self) -> None:
        """Leave the loop: what it has written, the loop around it has."""
        if self.outer is not None:
            self.outer += self.log
        Value._log_writes(self.outer)
        self.outer = self.recording = self.expected = None
        self.graph._rolling.remove(self)
