"""Programs in forked children: one that ends the process, or does not end, is an outcome like any other."""

from __future__ import annotations

import json
import os
import select
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

LIMIT = 20.0


def in_children(items: Sequence[Any], work: Callable[[Any], Any], limit: float = LIMIT) -> list[Any]:
    """``work(item)`` of each, as JSON; of an item that ended its process, or took too long, ``{"broken": how}``."""
    workers = min(os.cpu_count() or 1, len(items)) or 1
    found: list[Any] = [None] * len(items)
    running = [Child(range(k, len(items), workers), items, work) for k in range(workers)]
    while running:
        ready, _, _ = select.select([child.pipe for child in running], [], [], 1.0)
        for child in list(running):
            if child.pipe in ready:
                for place, answer in child.read():
                    found[place] = answer
            if child.open and time.monotonic() - child.heard < limit:
                continue
            running.remove(child)
            how = child.end(limit)
            if child.left:
                found[child.left[0]] = {"broken": how}
                if len(child.left) > 1:
                    running.append(Child(child.left[1:], items, work))
    return found


def tried(work: Callable[[Any], Any], item: Any) -> Any:
    try:
        return work(item)
    except Exception:
        return {"broken": traceback.format_exc()[-1500:]}


class Child:
    """A process that works through some of the items, and tells of each."""

    def __init__(self, places: Sequence[int], items: Sequence[Any], work: Callable[[Any], Any]) -> None:
        self.left = list(places)
        self.rest, self.open, self.heard = b"", True, time.monotonic()
        self.pipe, send = os.pipe()
        with warnings.catch_warnings():
            # Threads of pyop and of NumPy's BLAS wait for work here; a child has its own.
            warnings.filterwarnings("ignore", ".*multi-threaded, use of fork", DeprecationWarning)
            self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                os.close(self.pipe)
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
                with os.fdopen(send, "wb") as pipe:
                    for place in self.left:
                        pipe.write(json.dumps([place, tried(work, items[place])]).encode() + b"\n")
                        pipe.flush()
                status = 0
            finally:
                os._exit(status)
        os.close(send)

    def read(self) -> Iterator[tuple[int, Any]]:
        data = os.read(self.pipe, 1 << 16)
        self.open = bool(data)
        self.heard = time.monotonic()
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            place, answer = json.loads(line)
            self.left.remove(place)
            yield place, answer

    def end(self, limit: float) -> str:
        """Make an end of it, and say which it was."""
        late = self.open
        if late:
            os.kill(self.pid, signal.SIGKILL)
        os.close(self.pipe)
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return f"no end in {limit:.0f} s" if late else f"the process ended with {status}"
