"""What a function changes itself while it is traced."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .places import Attributes, Items, Place, Reading

__all__ = ["Own"]


class Own:
    """What a trace has changed without changing what it wrote down: logs and counts, memos.

    What every trace changes is not compared at calls; what only the first one does, is.
    """

    def __init__(self) -> None:
        self._memos: set[Any] = set()
        self._counts: dict[Any, frozenset[str]] = {}

    def first(self, places: list[Place]) -> None:
        """They were changed by a trace."""
        self._memos.update(place.key for place in places)

    def again(self, places: list[Place], state: list[Any]) -> None:
        """After another trace, which began at `state`."""
        for place, held in zip(places, state, strict=True):
            if place.differs(held):
                self._counts[place.key] = place.changing(held) | self._counts.get(place.key, frozenset())

    def counts(self, kind: type, owner: Any, name: str) -> bool:
        """Whether every trace changes it."""
        return (kind, id(owner), name) in self._counts

    def readings(self, place: Place, names: frozenset[str] | None) -> Iterator[Reading]:
        """What to compare of a place."""
        if not self._counts and not self._memos:  # as of most functions
            return place.readings(names)
        return self._readings(place, names)

    def _readings(self, place: Place, names: frozenset[str] | None) -> Iterator[Reading]:
        if place.key not in self._counts:
            yield from place.memos() if place.key in self._memos and type(place) is Items else place.readings(names)
        elif isinstance(place, Attributes):
            yield from place.readings((place.names() if names is None else names) - self._counts[place.key])
