"""Put lists as arrays (`growing`) in the place of Python's in a loop, and back if it is not recorded.

Only a list that one variable alone holds is taken: counts of references tell.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator
from types import FrameType
from typing import Any

from .._core import Value
from ..graph.deciding import recorded_loop
from ..tracing.list_names import LISTS, REBOUND, ROWS
from .frames import put
from .growing import GrowingList
from .numbers import sizes_of
from .sites import Site, mapped

__all__ = ["Lists"]

_UNBOUNDED = 1 << 14  # items of a list of which nobody knows how long it gets
_SPARE = 16  # that a list may get behind a loop
_MOST = 1 << 22


class Lists:
    """Hold the lists that a loop has as arrays."""

    __slots__ = ("_frame", "_rebound", "_site", "_wanted", "are_any", "held", "made")

    def __init__(self, loop: Any, frame: FrameType, now: dict[str, Any], site: Site) -> None:
        self._frame = frame
        self.are_any = LISTS in now
        self._site = site
        self._wanted: dict[str, int] = {}  # how many items there must be room for
        self.made: dict[str, tuple[GrowingList, list[Any]]] = {}
        self._rebound: list[str] = []  # to lists that iterations make
        self.held: dict[str, tuple[GrowingList, int]] = {}  # which another loop has made, and how many items they have
        for name in now.get(LISTS, ()):
            items: Any = now.get(name)
            rebound = name in site.stored
            if name not in site.read or (rebound and (name not in now.get(REBOUND, ()) or name in site.fresh)):
                continue
            if type(items) is GrowingList and recorded_loop(loop.graph) is None:
                self.held[name] = items, min(items.capacity, sizes_of(loop.graph).largest(items.length))
            is_deque = type(items) is deque and items.maxlen is None
            if type(items) is not list and not is_deque:
                continue
            made = GrowingList(loop, name, is_deque)
            made.has_rows = name in now.get(ROWS, ())
            if made.take([*items]) and _is_alone(loop, frame, name, now):
                around = recorded_loop(loop.graph)
                made.arms = [] if around is None else [*around.arms]
                self.made[name] = made, items

        self._rebound = [name for name, _ in self if name in site.stored]

    def rebound(self, loop: Any) -> dict[str, Any]:
        """Return what the variables hold behind an iteration, after `rebind`."""
        self.rebind(loop, self._site.inner | self._site.behind)
        now: dict[str, Any] = loop._now()
        return now

    def rebind(self, loop: Any, read: frozenset[str]) -> None:
        """Bind variables to their own list again where the iteration has bound them to one that it has made.

        Their own list becomes that one. Where another variable has it, too, that may be `read` from here on, the loop
        gives up.
        """
        if not self._rebound:
            return
        now, lists = loop._now(), dict(iter(self))
        again = {name: lists[name] for name in self._rebound if now.get(name) is not lists[name]}
        for name, made in again.items():
            new = now.get(name)
            if type(new) not in (list, GrowingList) or any(x is new for x in lists.values()):
                loop.give_up()
            if any(x is new for other, x in now.items() if other != name and other in read):
                loop.give_up()
            self._wanted[name] = max(self._wanted[name], new.capacity if type(new) is GrowingList else len(new))
            made.become(new)
        self._bind(again)

    def put(self) -> None:
        """Put them in the place of Python's lists."""
        self._bind({name: made for name, (made, _) in self.made.items()})

    def release(self) -> None:
        """Put Python's lists back, to which nothing has happened."""
        self._bind({name: items for name, (_, items) in self.made.items()})
        self.made.clear()

    def leave(self) -> None:
        """Put Python's lists back where nothing is known of the items: in the recorded loop they have none."""
        self._bind({name: items for name, (made, items) in self.made.items() if made.kind is None})

    def prepare(self, trips: int) -> None:
        """Make their arrays, for a loop of so many iterations."""
        for name in (*self.made, *self.held):
            if name not in self._wanted:
                appends = _appends(self._site, name)
                more = _UNBOUNDED if appends is None or trips * appends >= _MOST else trips * appends
                self._wanted[name] = self._before(name) + more + _SPARE
        for name, (made, items) in self.made.items():
            made.prepare(items, self._wanted[name])
        for name, (made, _) in self.held.items():
            if made.capacity < self._wanted[name]:
                made.extend(self._wanted[name])

    def _before(self, name: str) -> int:
        """Return how many items there are before the loop at most."""
        return len(self.made[name][1]) if name in self.made else self.held[name][1]

    def settle(self, loop: Any) -> list[Value] | None:
        """Make room for what an iteration of the loop appends at most.

        Return the arrays that are too small, None if all are as they have to be.
        """
        small: list[Value] = []
        again = False
        for name, made in self:
            place = loop.around.length_of(made)
            unit = next((unit for unit in loop.units if place in unit.names), None)
            growth = max(loop.affine.get(place, 0), 0 if unit is None else unit.grown)
            need = self._before(name) + growth * loop.trips + _SPARE
            need = max(need, self._wanted[name] if name in self._rebound else 0)
            if made.columns and made.capacity < need <= _MOST:
                small += made.columns
                self._wanted[name] = need
                if name in self.made:
                    made.columns = []
            again = again or (made.kind is not None and not made.columns)
        return small if small or again else None

    def __iter__(self) -> Iterator[tuple[str, GrowingList]]:
        yield from ((name, made) for name, (made, _) in (*self.made.items(), *self.held.items()))

    def _bind(self, wanted: dict[str, Any]) -> None:
        if wanted:
            put(self._frame, wanted, wanted)


def _appends(site: Site, name: str) -> int | None:
    """Return how often an iteration may append to the list of a variable; None if nobody knows."""
    ops, place, arms = mapped(site.code)
    inside = range(place[site.start], place[site.end])
    many = any(ops[k].opname == "FOR_ITER" and k not in arms for k in inside)
    called = [k for k in inside if ops[k].opname in ("LOAD_ATTR", "LOAD_METHOD")]
    called = [k for k in called if ops[k].argval in ("append", "appendleft")]
    appends = sum(name == x or (type(x) is tuple and name == x[-1]) for x in (ops[k - 1].argval for k in called))
    return None if many and appends else appends


def _count(frame: FrameType, name: str) -> int:
    return sys.getrefcount(frame.f_locals[name])


def _count_alone() -> int:
    """Return what `_count` says of a list that one variable holds."""
    alone: list[Any] = []
    return _count(sys._getframe(), "alone") if not alone else 0


_ALONE = _count_alone()


def _is_alone(loop: Any, frame: FrameType, name: str, now: dict[str, Any]) -> bool:
    """Return whether nobody but this variable holds the list, and what is noted of loops that are recorded."""
    noted = [now]
    for other in loop.graph._rolling:
        noted += [other.head, other.handed]
        noted += [known for arms in other.arms for known in (arms.head, arms.yes)]
    held = sum(x is now[name] for known in noted for x in known.values())
    return _count(frame, name) <= _ALONE + held + 1  # the caller's variable
