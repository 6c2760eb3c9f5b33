"""Recall a task from the client: it begins no more calls, and returns the results it has.

Each task has a byte, in memory that both processes map (`memory`). A worker that cannot see it ignores recalls, and
returns when its time is over.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from .._core import mapped_file
from .memory import Address, Memory, NotHere

__all__ = ["SILENT", "Bell", "Rope"]

TASKS = 1 << 12  # those that come later have no bell

SILENT = memoryview(b"\0")


@dataclass(frozen=True)
class Rope:
    """Locate the byte of a task."""

    address: Address
    place: int

    def hear(self) -> memoryview:
        """Return, on the worker, a view whose first byte is 1 once the task is recalled."""
        try:
            fd = self.address.open(os.O_RDONLY)
        except NotHere:
            return SILENT
        try:
            return mapped_file(fd, False)[self.place :].data
        finally:
            os.close(fd)


class Bell:
    """Hold the bytes of one map's tasks, on the client."""

    def __init__(self) -> None:
        self._memory = Memory()
        os.ftruncate(self._memory.fd, TASKS)
        self._given = 0

    def rope(self) -> Rope | None:
        """Return the rope of one more task; None if no bytes are left."""
        if self._given == TASKS:
            return None
        self._given += 1
        return Rope(self._memory.address, self._given - 1)

    def ring(self, rope: Rope) -> None:
        """Recall a task, which is waited for."""
        os.pwrite(self._memory.fd, b"\1", rope.place)

    def close(self) -> None:
        """Close the memory; later recalls have no effect."""
        self._memory.close()
