"""Record how an iteration of a recorded loop ends: by a condition, by an exit, or by going on."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from .._core import Value
from .carried import Again, Carried, Otherwise
from .junction import join
from .numbers import as_value
from .weak import Flags

__all__ = ["Ends"]


class Ends(Carried):
    """Hold what the iterator of a loop knows of its end."""

    passes: int
    flags: Flags
    arms: list[Any]
    leaves: bool  # an iteration may leave it
    live: list[Value]  # the stand-in of the number of the exit that was taken, if it may be left
    start: int  # the first node of the iteration
    condition: Value | None  # of a ``while``, if it is not known
    conditions_end: int  # behind the nodes of it

    def give_up(self) -> NoReturn:
        raise NotImplementedError

    def _now(self) -> dict[str, Any]:
        raise NotImplementedError

    def _drop(self) -> None:
        raise NotImplementedError

    def _over(self) -> NoReturn:
        raise NotImplementedError

    def holds(self, condition: Value) -> None:
        """Take what a ``while`` goes on by."""
        now = self._now()
        self.flags.behind(now, self.handed, self.weak())
        if self.written or self.arms or any(now.get(x) is not self.handed.get(x) for x in self.site.carried):
            self.give_up()  # its condition does something
        self.condition, self.conditions_end = condition, len(self.graph)

    def _ended(self, now: dict[str, Any]) -> None:
        """Look how an iteration has ended that may have left the loop."""
        if self.mark.over:
            if self.expected is not None:
                raise Otherwise
            if self.passes > 1 or self.written:
                self.give_up()
            self._drop()
            self._over()
        if self.passes == 1 and self.once and self.condition is not None:
            self.once = False
            if self.expected is not None:
                raise Otherwise  # it was foreseen that there is an iteration
        if not self.leaves and (type(self.mark.way) is not int or self.mark.way > 0):
            self.leaves = True
            self._results(now)
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
