"""A ``for`` of a function under trace, as one Loop: the iterator that writes its body down once.

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
from .carried import Again, Carried, Otherwise, Unit
from .foreseen import foreseen
from .frames import Tuples, locals_of, put
from .held_lists import Lists
from .junction import join
from .numbers import LARGEST, as_value, named, sizes_of
from .recording import Recording, add_loop
from .sites import Site
from .surroundings import Surroundings
from .unrolled import Key, Peeled, Unroll
from .weak import BY_NAME, Flagged, Flags

__all__ = ["FEW", "Peeled", "Rolled", "Unroll"]

FEW = 8  # iterations that are not worth a Loop
_PEELED = 3
_PASSES = 8
_EXIT = Spec(np.dtype(np.int64), ())


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
        self.exit: Any = None  # the number of the exit taken, once it is a node
        self.leaves = False  # an iteration may leave it
        self.once = False  # whether there is an iteration for sure
        self.item = item  # what the loop gets for a number; None: the number
        self.source = plain  # what makes the iterator that Python has here
        self.graph = graph
        self.frame: Any = frame
        self.code = self.site = site  # what the code says; and with all that are variables here
        self.tuples = Tuples((), {})
        self.alternatives = Alternatives(graph, (), {})
        self.flags = Flags((), {}, None, False)
        self.key = key
        self.done = -1
        self.plain: Any = None
        self.head: dict[str, Any] = {}
        self.log: list[Any] = []
        self.outer: Any = None
        self.handed: dict[str, Any] = {}
        self.around: Any = None  # what the body reaches beside its variables
        self.lists: Any = None  # those that it holds as arrays
        self.units: list[Unit] = []
        self.affine: dict[str, Any] = {}
        self.ints: set[str] = set()
        self.recording: Recording | None = None
        self.written: list[Any] = []
        self.news: list[Unit] = []
        self.passes = 0
        self.arms: list[Any] = []  # those that are being recorded
        self.views: list[tuple[Value, int]] = []  # what must not be written, with what its memory holds
        self.condition: Value | None = None  # of a ``while``, if it is not known
        self.conditions_end = 0  # behind the nodes of it

    def __iter__(self) -> Rolled:
        return self

    def __next__(self) -> Any:
        if self.plain is not None:
            return self._next()
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
        if self.mark is not None and self.mark.ends_here:
            self._over(now)
        self.tuples = Tuples(self.code.carried - self.code.targets, now)
        self.tuples.split(now)
        self.alternatives = Alternatives(self.graph, {*now} - self.code.targets, now)
        if not self.alternatives.split(now, None):
            self.give_up()
        site = self.code.among(self.around.places, self.tuples.names, self.alternatives.names)
        marked = any(type(mark) is Flagged for mark in self.graph._unrolled)  # a loop around it hands it on
        self.weak().follows = marked
        self.weak().by_name |= not BY_NAME.isdisjoint(self.around.names)
        self.flags = Flags(sorted(site.inner), now, self.graph._weak, marked)
        self.site = site.among((), self.flags.names)
        self.head = now
        self.once = self.bounds.known is not None
        self.units, self.affine, self.ints, self.passes, self.bound_at_times = [], {}, set(), 0, set()
        if len(self.rest) < 2 or self.done > _PEELED if self.bounds.known is not None else False:
            return self._unrolled()
        return self._open()

    def _looks_around(self) -> bool:
        """Note what the body reaches; return whether all that it does is compute."""
        self.around = None
        self.lists = Lists(self, self.frame, self._now(), self.code)
        self.lists.put()
        self.around = Surroundings(self.code, self.frame, self._now())
        computes: bool = self.around.only_computes
        return computes

    def _next(self) -> Any:
        """The next item, as Python has it."""
        if self.mark is not None and self.mark.ends_here:
            raise StopIteration
        return next(self.plain)

    def _over(self, now: dict[str, Any]) -> NoReturn:
        """The loop has ended while its iterations were written down as they are."""
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

    def give_up(self) -> NoReturn:
        raise Unroll({self.key})

    @property
    def trips(self) -> Any:
        """Return how many iterations there may be at most."""
        return sizes_of(self.graph).largest(self.bounds.stop - self.bounds.start)

    def _now(self) -> dict[str, Any]:
        """What the variables hold, and the places beside them."""
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
        self.passes += 1
        if self.passes > _PASSES:
            return self._otherwise()
        if self.alternatives.new:
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
        sizes_of(self.graph).counts(size_of(self.counter).name, self.bounds.start, self.bounds.stop)
        self.given = [number]
        for unit in self.units:
            unit.written, unit.holders, unit.grown, unit.reset = False, [], 0, None
            unit.stand_in = recording.stand_in(unit.start.spec, unit.start._is_scalar)
            self.given.append(unit.stand_in)
            if unit.weak:
                self.weak().add(unit.stand_in, self.key)
        self.live = [recording.stand_in(_EXIT, True, "exit")] if self.leaves else []
        self.one = []
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
        """What a variable holds for a Value that is carried."""
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
        """What a variable that grows by `step` in each iteration is in one."""
        by, rest = divmod(step, self.bounds.step)
        if rest:
            self.give_up()
        start = self.bounds.start if self.bounds.known is None else self.rest.start
        return self.head[name] + (counter - start) * by

    def holds(self, condition: Value) -> None:
        """Take what a ``while`` goes on by."""
        now = self._now()
        if self.written or self.arms or any(now.get(x) is not self.handed.get(x) for x in self.site.carried):
            self.give_up()  # its condition does something
        self.condition, self.conditions_end = condition, len(self.graph)

    def _behind(self, now: dict[str, Any]) -> Any:
        """The iteration is written down."""
        assert self.recording is not None
        Value._log_writes(None)
        try:
            if self.arms:
                self.give_up()  # one was left on its way
            if self.mark is not None:
                self._ended(now)
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
            return self._otherwise()
        return self._close(now, results)

    def _ended(self, now: dict[str, Any]) -> None:
        """Look how an iteration has ended that may have left the loop."""
        if self.mark.over:
            if self.passes > 1 or self.written:
                self.give_up()
            self._drop()
            self._over(now)
        if self.passes == 1:
            self.once = self.once and self.condition is None
        if not self.leaves and (type(self.mark.way) is not int or self.mark.way > 0):
            self.leaves = True
            self._results(now)
            raise Again

    def _settle_lists(self) -> None:
        """Make room for what the lists get, now that it is known how much that is at most."""
        small = self.lists.settle(self)
        if small is not None:
            self.units = [unit for unit in self.units if not any(unit.handle is column for column in small)]
            raise Again

    def _exit_of(self) -> Value:
        """Return the number of the exit that an iteration takes, 0 if none."""
        way = self.mark.way
        value = as_value(way) if type(way) is not int else self.graph.constant(np.asarray(way, np.int64))
        made: Value = value[()]
        return made

    def _goes_on(self) -> list[Value]:
        """Return the truth by which there is an iteration, if it is not always so."""
        if self.mark is not None and self.mark.endless and self.condition is None and not self.live:
            self.give_up()  # nobody knows whether it ends
        if not self.live:
            return [] if self.condition is None else [self.condition]
        alive = self.live[0] <= 0
        if self.condition is None:
            return [alive[()]]
        nodes = range(self.start, self.conditions_end)
        return [self._as_value(x) for x in join(self.graph, alive, nodes, (), [(self.condition, False)])]

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
        self.weak().forget(self.recording.first)
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
        weak.note_loop(node, self.key, self.given[1:], results, empty)
        for unit in self.units:
            if unit.weak:
                weak.add(unit.start, self.key)

    def _leave(self) -> None:
        """The loop is over: what it has written, the loop around it has."""
        if self.outer is not None:
            self.outer += self.log
        Value._log_writes(self.outer)
        self.outer = self.recording = None
        self.graph._rolling.remove(self)
