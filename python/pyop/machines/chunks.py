"""How many items travel together.

So many that a task takes far longer than sending it does, and so few that all workers have some.
"""

from __future__ import annotations

from typing import Any

from .callee import Call

__all__ = ["Chunks"]

WORTH = 0.01  # seconds of a task: some ten times what sending it takes on one machine
DASK_WORTH = 0.5  # the same through a scheduler: client, scheduler and worker work for some milliseconds on a task
LEAST = 0.1  # of that: shorter ones would cost more than waiting for the last
HEAVY = 1 << 26  # bytes of arguments
PARTS = 2  # tasks that a worker should get of what is left, so that none waits long for the last


class Chunks:
    """Cuts ``range(total)`` into pieces, in order."""

    def __init__(self, chunk: Any, calls: list[Call], workers: int, worth: float = WORTH) -> None:
        if chunk != "auto" and (not isinstance(chunk, int) or isinstance(chunk, bool) or chunk < 1):
            raise ValueError(f'chunk= takes "auto" or a number of calls, at least 1, got {chunk!r}')
        self._chunk = chunk
        self._calls_to_make = calls
        self._total = len(calls)
        self._workers = workers
        self._worth = worth
        self._at = 0
        self._calls = 0
        self._seconds = 0.0
        self._tries = 0
        self._last = 0

    def took(self, calls: int, seconds: float) -> None:
        """Say how long a task has taken on its worker."""
        self._calls += calls
        self._seconds += seconds

    def next(self) -> tuple[int, int] | None:
        """The next piece, as start and stop; None: there is none, or none before the first have ended."""
        left = self._total - self._at
        if left <= 0:
            return None
        if self._chunk == "auto" and self._calls == 0:
            if self._tries >= self._workers:
                return None
            self._tries += 1
        size = min(left, self._chunk if self._chunk != "auto" else self._light(self._auto(left)))
        start, self._at = self._at, self._at + size
        return start, self._at

    def _light(self, size: int) -> int:
        """Not more than what a task may carry."""
        carried = 0
        for k, (args, named) in enumerate(self._calls_to_make[self._at : self._at + size]):
            carried += sum(getattr(x, "nbytes", 0) for x in (*args, *named.values()))
            if carried > HEAVY:
                return max(1, k)
        return size

    def _auto(self, left: int) -> int:
        if self._calls == 0:
            return 1
        worth = self._worth / max(self._seconds / self._calls, 1e-7)
        if left <= self._workers * LEAST * worth:
            self._last = self._last or -(-left // self._workers)
            return self._last
        return max(1, int(min(worth, max(left / (PARTS * self._workers), LEAST * worth))))
