"""How many items travel together.

So many that a task takes far longer than sending it does, and so few that all workers have some. How long a call takes
is known when the first have ended: until then tasks carry a share of what is left, or all of it where a task is dear,
and come back when their time is over or a worker has nothing to do (`bell`), with the calls that they have not begun.
"""

from __future__ import annotations

import heapq
import math
from typing import Any, NamedTuple

from .callee import Call

__all__ = ["Chunks", "Worth"]


class Worth(NamedTuple):
    """Seconds of a task: what it should take, and what is the least, shorter than which it costs more than it saves."""

    most: float = 0.01  # some ten times what sending it takes on one machine
    least: float = 0.001
    shares: bool = False  # whether the first tasks carry all there is, to be called back


PATIENCE = 2  # times `most`, after which a task comes back
HEAVY = 1 << 26  # bytes of arguments
PARTS = 2  # tasks that a worker should get of what is left, so that none waits long for the last
BLIND = 10_000  # calls at once, as long as nobody knows what one takes


class Chunks:
    """Cuts ``range(total)`` into pieces, in order but for what comes back."""

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
        """Seconds after which a task begins no more calls."""
        return PATIENCE * self._worth.most if self._chunk == "auto" else math.inf

    @property
    def shares(self) -> bool:
        """Whether tasks are called back."""
        return self._chunk == "auto" and self._worth.shares

    @property
    def least(self) -> float:
        """Seconds for which a task is worth having."""
        return self._worth.least

    @property
    def each(self) -> float | None:
        """Seconds that a call has taken; None: none has ended."""
        return max(self._seconds / self._calls, 1e-7) if self._calls else None

    def took(self, calls: int, seconds: float) -> None:
        """Say how long a task has taken on its worker."""
        self._calls += calls
        self._seconds += seconds

    def back(self, start: int, stop: int) -> None:
        """Give back what a task has not begun."""
        heapq.heappush(self._left, (start, stop))
        self._count += stop - start
        self._last = 0

    def next(self, before: float = math.inf) -> tuple[int, int] | None:
        """The next piece, as start and stop; None: there is none that starts before that item."""
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
        """Not more than what a task may carry."""
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
