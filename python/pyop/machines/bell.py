"""A bell that is rung at a task from the client: it begins no more calls, and comes back with what it has.

A byte for each task, in memory that both processes map (`memory`). A worker that does not see it hears nothing, and
comes back when its time is over.
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
    """What a task carries: where its byte is."""

    address: Address
    place: int

    def hear(self) -> memoryview:
        """On the worker: a view whose first byte is 1 from the moment that the bell is rung."""
        try:
            fd = self.address.open(os.O_RDONLY)
        except NotHere:
            return SILENT
        try:
            return mapped_file(fd, False)[self.place :].data
        finally:
            os.close(fd)


class Bell:
    """On the client, for one map."""

    def __init__(self) -> None:
        self._memory = Memory()
        os.ftruncate(self._memory.fd, TASKS)
        self._given = 0

    def rope(self) -> Rope | None:
        """For one task more."""
        if self._given == TASKS:
            return None
        self._given += 1
        return Rope(self._memory.address, self._given - 1)

    def ring(self, rope: Rope) -> None:
        """Say to a task that it is waited for."""
        os.pwrite(self._memory.fd, b"\1", rope.place)

    def close(self) -> None:
        """What is still rung is not heard."""
        self._memory.close()
