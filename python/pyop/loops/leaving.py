"""The mark of a loop that may be left before its end, as `pyop.tracing.exits` writes it: how an iteration has ended.

It is the iterable of the loop, too. Where the loop is recorded, its iterator is asked for the next item after each way
through the body, and sees in the mark that this way leaves the loop; else the iterator has no further item then.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from ..tracing.exits import LOOP
from ..tracing.twins import BUILTINS, graph_under_twins
from .counted import Bounds
from .rolled import Rolled
from .sequences import counted
from .sites import site_of

__all__ = ["Mark"]

_ENDLESS = range(sys.maxsize)


class Mark:
    """How a loop is left: 0 by ``break``, by other numbers where something is to be done behind the loop."""

    __slots__ = ("_iterable", "_rolled", "_way", "begun", "endless", "over")

    def __init__(self, *iterable: Any) -> None:
        self.endless = not iterable
        self._iterable = iterable[0] if iterable else None
        self._rolled: Any = None
        self._way: Any = None  # the number of the exit that was taken
        self.over = False  # the condition of a ``while`` did not hold
        self.begun = False  # it held

    _pyop_computes = True

    # --- what the body says

    def leave(self, number: int) -> None:
        """The iteration leaves the loop."""
        self._way = number

    def end(self) -> None:
        """The condition of a ``while`` does not hold."""
        self.over = True

    def begin(self) -> None:
        """It does."""
        self.begun = True
        if self._rolled is not None:
            self._rolled.began()

    # --- for the iterator

    @property
    def way(self) -> Any:
        """The number of the exit, None: by none."""
        return self._way

    @property
    def ends(self) -> bool:
        """Whether this iteration is the last one."""
        return self.over or self._way is not None

    def again(self) -> None:
        """There will be another iteration."""
        self._way, self.over, self.begun = None, False, False

    # --- behind the loop

    @property
    def left(self) -> bool:
        """Whether the loop was left by ``break``."""
        return self.left_by(0)

    def left_by(self, number: int) -> bool:
        """Whether the loop was left by this exit."""
        exits = None if self._rolled is None else self._rolled.exits
        if exits is None:
            return bool(self._way == number)
        return bool(exits[number]) if number in exits else False

    # --- the loop

    def __iter__(self) -> Any:
        graph = graph_under_twins()
        frame = sys._getframe(1)
        found = None if graph is None or graph._unrolled is None else self._recorded(graph, frame)
        self._rolled = found
        return self._plain() if found is None else found

    def _recorded(self, graph: Any, frame: Any) -> Rolled | None:
        key = frame.f_code, frame.f_lasti
        site = None if key in graph._unrolled else site_of(*key)
        found = (Bounds(0, _ENDLESS.stop, 1), None, None) if self.endless else counted(self._iterable)
        if site is None or found is None:
            return None
        return Rolled(found[0], graph, frame, site, key, found[1], found[2], self)

    def _plain(self) -> Iterator[Any]:
        iterable: Any = _ENDLESS if self.endless else self._iterable
        items = iter(iterable)
        while not self.ends:
            try:
                item = next(items)
            except StopIteration:
                return
            yield item


BUILTINS[LOOP] = Mark
