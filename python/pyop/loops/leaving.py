"""Record how an iteration has ended, in the mark of a loop that may be left before its end.

`pyop.tracing.lifting` writes the mark. It is the iterable of the loop, too. Where the loop is recorded, its iterator
is asked for the next item after each way through the body, and sees in the mark that this way leaves the loop; else the
iterator has no further item then.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

from ..graph.deciding import recorded_loop
from ..tracing.lifting import ITEM, LOOP
from ..tracing.twins import BUILTINS, graph_under_twins
from .arms import unknown
from .counted import Bounds
from .items import are_looked_up
from .rolled import Rolled
from .sequences import counted
from .sites import site_of

__all__ = ["Mark"]

_ENDLESS = range(sys.maxsize)


class Mark:
    """Record how a loop is left: 1 by ``break``, other numbers where something is to be done behind the loop."""

    __slots__ = ("_iterable", "_rolled", "endless", "over", "way")

    def __init__(self, *iterable: Any) -> None:
        self.endless = not iterable
        self._iterable = iterable[0] if iterable else None
        self._rolled: Any = None
        self.way: Any = 0  # the number of the exit that was taken, 0: none; in a recorded loop it may be a Counter
        self.over = False  # the condition of a ``while`` did not hold

    _pyop_computes = True

    # --- what the body says

    def leave(self, number: Any) -> None:
        """End an iteration, which leaves the loop by an exit if its number is above 0."""
        self.way = number

    def ends(self, test: Any) -> bool:
        """Return whether the condition of a ``while`` does not hold; a recorded loop notes it where it is not known."""
        found = None if self._rolled is None else unknown(test)
        if found is not None and found[0] is self._rolled:
            self._rolled.holds(found[1])
        elif not test:
            self.over = True
        return self.over

    # --- for the iterator

    @property
    def ends_here(self) -> bool:
        """Return whether this iteration is the last one."""
        return bool(self.over or self.way > 0)

    def again(self) -> None:
        """Reset the mark for another iteration."""
        self.way, self.over = 0, False

    # --- behind the loop

    def left_by(self, number: int) -> Any:
        """Return the truth that the loop was left by this exit."""
        exit = None if self._rolled is None else self._rolled.exit
        return self.way == number if exit is None else exit == number

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
        few = self._iterable
        if recorded_loop(graph) is not None:  # which exit is taken is not known
            if type(few) is range and len(few) > 1:
                found = Bounds(few.start, few.stop, few.step), None, None
            elif type(few) is tuple and len(few) > 1 and are_looked_up(few):
                found = Bounds(0, len(few), 1), partial(BUILTINS[ITEM], few), partial(iter, few)
        if site is None or found is None:
            return None
        return Rolled(found[0], graph, frame, site, key, found[1], found[2], self)

    def _plain(self) -> Iterator[Any]:
        iterable: Any = _ENDLESS if self.endless else self._iterable
        items = iter(iterable)
        while not self.ends_here:
            try:
                item = next(items)
            except StopIteration:
                return
            yield item


BUILTINS[LOOP] = Mark
