"""Choose how many items travel together.

A task should take far longer than sending it does, and all workers should have some. The time of a call is known when
the first calls have ended. Until then tasks carry a share of what is left, or all of it where a task is expensive. They
return when their time is over or a worker is idle (`bell`), with the calls that they have not begun.
"""

from __future__ import annotations

import heapq
import math
from typing import Any, NamedTuple

from .callee import Call

__all__ = ["Chunks", "Worth"]


class Worth(NamedTuple):
    """Hold the target and the least useful duration of a task, in seconds."""

    most: float = 0.01  # some ten times what sending it takes on one machine
    least: float = 0.001
    shares: bool = False  # whether the first tasks carry all there is, to be called back


PATIENCE = 2  # times `most`, after which a task comes back
HEAVY = 1 << 26  # bytes of arguments
PARTS = 2  # tasks that a worker should get of what is left, so that none waits long for the last
BLIND = 10_000  # calls at once, as long as nobody knows what one takes


class Chunks:
    """Cut ``range(total)`` into pieces, in order except for those that are returned."""

    def __init__(self, chunk: Any, calls: list[Call], workers: int, worth: Worth) -> None:
        if chunk != "auto" and (not isinstance(chunk, int) or isinstance(chunk, bool) or chunk < 1):
            raise ValueError(f'chunk= takes "auto" or a number of calls, at least 1, got {chunk!r}')
        self._chunk = chunk
        self._calls_to_make = calls
        self._workers = workers
        self._worth = worth
        self._left = [(0, len(calls))] if calls else []  # a heap
        self._total = self._count = len(calls)
        self._calls = 0
        self._seconds = 0.0
        self._last = 0

    @property
    def patience(self) -> float:
        """Return the seconds after which a task begins no more calls."""
        return PATIENCE * self._worth.most if self._chunk == "auto" else math.inf

    @property
    def shares(self) -> bool:
        """Return whether tasks are recalled."""
        return self._chunk == "auto" and self._worth.shares

    @property
    def least(self) -> float:
        """Return the least useful duration of a task, in seconds."""
        return self._worth.least

    @property
    def each(self) -> float | None:
        """Return the seconds of a call; None until one has ended."""
        return max(self._seconds / self._calls, 1e-7) if self._calls else None

    def took(self, calls: int, seconds: float) -> None:
        """Record how long a task has taken on its worker."""
        self._calls += calls
        self._seconds += seconds

    def back(self, start: int, stop: int) -> None:
        """Put back the items that a task has not begun."""
        heapq.heappush(self._left, (start, stop))
        self._count += stop - start
        self._last = 0

    def next(self, before: float = math.inf) -> tuple[int, int] | None:
        """Return start and stop of the next piece; None if none starts before that item."""
        if not self._left or self._left[0][0] >= before:
            return None
        start, stop = heapq.heappop(self._left)
        if self._chunk == "auto":
            size = self._light(start, min(stop - start, self._auto()))
        else:
            size = min(stop - start, self._chunk)
        if start + size < stop:
            heapq.heappush(self._left, (start + size, stop))
        self._count -= size
        return start, start + size

    def _light(self, start: int, size: int) -> int:
        """Return a size at which the piece carries no more bytes than a task may."""
        carried = 0
        for k, (args, named) in enumerate(self._calls_to_make[start : start + size]):
            for x in args:
                carried += getattr(x, "nbytes", 0)
            if named:
                carried += sum(getattr(x, "nbytes", 0) for x in named.values())
            if carried > HEAVY:
                return max(1, k)
        return size

    def _auto(self) -> int:
        share, each = max(1, self._count // (PARTS * self._workers)), self.each
        if each is None:
            return min(-(-self._total // self._workers) if self._worth.shares else share, BLIND)
        most, least = self._worth.most / each, self._worth.least / each
        if self._count <= self._workers * least:
            self._last = self._last or -(-self._count // self._workers)
            return self._last
        return max(1, int(min(most, max(share, least))))
