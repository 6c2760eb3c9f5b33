"""Follow lists and dicts that an iteration has made: what an arm of a condition changes in them is chosen, too."""

from __future__ import annotations

from collections import deque
from typing import Any

from .surroundings import Place, Surroundings, layout_of

__all__ = ["NewContainers"]

_MOST = 1024  # items


class NewContainers:
    """Find the places of lists and dicts that variables hold, but for those that were there before the loop."""

    __slots__ = ("_layouts", "_others", "places")

    def __init__(self, now: dict[str, Any], around: Surroundings, before: dict[str, Any]) -> None:
        self.places: dict[str, Place] = {}
        self._others = False  # of which changes are not followed
        owners: list[Any] = []
        waiting = [*now.values()]
        while waiting and len(self.places) <= _MOST:
            x = waiting.pop()
            if type(x) is tuple:
                waiting += x
            elif type(x) in (deque, set):
                there = around.reaches(x) or any(x is known for known in before.values())
                self._others = self._others or not there
            elif type(x) in (list, dict) and not around.reaches(x) and not any(x is owner for owner in owners):
                owners.append(x)
                for key in range(len(x)) if type(x) is list else x:
                    self.places[f"new {len(self.places)}:{key}"] = Place(x, key)
                waiting += x if type(x) is list else x.values()
        self._layouts = [(owner, layout_of(owner)) for owner in owners]

    @property
    def are_too_many(self) -> bool:
        """Return whether there are more than anybody wants to look at, or others."""
        return len(self.places) > _MOST or self._others

    @property
    def has_same_layout(self) -> bool:
        """Return whether no list is longer, and no key came or went."""
        return all(layout_of(owner) == layout for owner, layout in self._layouts)

    def now(self) -> dict[str, Any]:
        """Return what is at the places."""
        return {name: place.read() for name, place in self.places.items()}

    def put(self, wanted: dict[str, Any]) -> None:
        """Have the places hold what is in `wanted`."""
        for name, place in self.places.items():
            place.write(wanted[name])
