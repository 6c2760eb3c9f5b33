"""Python numbers that a function needs while it is traced: each value has a plan of its own, if they are few."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ..graph.deciding import RunItself

if TYPE_CHECKING:
    from .arguments import Place

__all__ = ["NumbersNeeded"]

_VALUES = 3
_CALLS_PER_TRACE = 8  # where there are as many, more values may have plans


class NumbersNeeded:
    """The numbers that the traces of one function have needed, by the paths of their arguments."""

    __slots__ = ("_for_all", "_values")

    def __init__(self) -> None:
        self._for_all: set[str] = set()  # that some path needs, so that all paths are for the same calls
        self._values: dict[str, dict[str, None]] = {}

    def of(self, places: Sequence[Place]) -> set[int]:
        """Return the places of those that every trace is made with."""
        return {k for k, place in enumerate(places) if place.path in self._for_all} if self._for_all else set()

    def add(self, places: Sequence[Place], specialised: Iterable[int], branches: bool) -> None:
        """Note a trace that was made with these numbers. `branches`: it is of one path among others."""
        for k in specialised:
            path = places[k].path
            self._values.setdefault(path, {})[repr(places[k].value)] = None
            if branches:
                self._for_all.add(path)

    def check(self, places: Sequence[Place], traces: int, calls: int) -> None:
        """End the trace where one of the numbers is another one in most calls."""
        if not self._values or calls >= _CALLS_PER_TRACE * traces:
            return
        for place in places:
            name, known = place.path, self._values.get(place.path, {})
            if place.kind != b"n" or len(known) < _VALUES or repr(place.value) in known:
                continue
            raise RunItself(
                f"needs argument {name!r}, a Python number, while it is traced (an if, a shape, a function that is not "
                f"NumPy's), and that had {len(known) + 1} values in {calls + 1} calls ({', '.join([*known][:3])}, ...)",
                remedy=f"Use NumPy's functions of it, and np.where instead of if, or give each value a plan with "
                f"static=({name.partition('[')[0].partition('.')[0]!r},)",
            )
