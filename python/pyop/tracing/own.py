"""Record what a function changes itself while it is traced."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from .code import facts
from .names import imported
from .places import MISSING, Attributes, Items, Place, Reading

__all__ = ["Own"]


class Own:
    """Record what a trace has changed without changing what it wrote down: logs, memos, what it sets.

    What every trace makes longer, a log, is not compared at calls. What it sets is: where another plan, or somebody
    else, has set something else, the call has to set it once more.
    """

    def __init__(self) -> None:
        self._memos: set[Any] = set()
        self._logs: dict[Any, frozenset[Any]] = {}
        self.moving: list[str] = []  # what is another one after every trace: counters, times

    def first(self, places: list[Place]) -> None:
        """Note places that were changed by a trace."""
        for place in places:
            with contextlib.suppress(Exception):  # of keys that do not like to be looked at
                if place.gained():
                    self._memos.add(place.key)

    def again(self, places: list[Place], state: list[Any], of_state: bool) -> None:
        """Note what another trace has changed, which began at `state`.

        `of_state`: an array that is made once more is another one, as what an instance or closure holds may be seen
        elsewhere.
        """
        from .left_behind import added_to, binds_array, is_other  # on first use

        for place, held in zip(places, state, strict=True):
            if not place.differs(held):
                continue
            try:
                added, other = added_to(place, held), is_other(place, held) or (of_state and binds_array(place, held))
            except Exception:  # of objects that do not like to be compared
                added, other = None, True
            if added is not None:
                self._logs[place.key] = added | self._logs.get(place.key, frozenset())
            elif other:
                self.moving.append(place.label)

    def is_log(self, kind: type, owner: Any, name: str) -> bool:
        """Return whether every trace makes it longer."""
        return (kind, id(owner), name) in self._logs

    def readings(self, place: Place, names: frozenset[str] | None) -> Iterator[Reading]:
        """Return what to compare of a place."""
        if not self._logs and not self._memos:  # as of most functions
            return place.readings(names)
        logs = self._logs.get(place.key)
        if logs is None:
            memos = place.key in self._memos and type(place) is Items
            return place.memos() if memos else place.readings(names)  # type: ignore[attr-defined]
        if isinstance(place, Attributes):
            return place.readings((place.names() if names is None else names) - logs)
        return place.memos(logs) if logs and isinstance(place, Items) else iter(())

    def global_readings(self, fn: Any) -> Iterator[Reading]:
        """Yield what to compare of the globals and builtins that a function names: the objects, whatever they are."""
        known, builtin, found = fn.__globals__, fn.__builtins__, facts(fn.__code__)
        names = found.globals_read | (found.names & known.keys()) if found.writes_globals else found.globals_read
        for name in names:
            value = known.get(name, MISSING)
            if value is MISSING:  # of this name nothing is there, and a builtin is meant
                yield b"n", known, name, Ellipsis, repr(name)
                yield b"n", builtin, name, builtin.get(name, Ellipsis), repr(name)
            elif imported(value) is value and not self.is_log(Place, known, name):  # else it was not needed yet
                yield b"n", known, name, value, repr(name)
