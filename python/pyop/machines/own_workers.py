"""Run tasks in processes of our own.

They are started as programs, not forked, so that threads and locks of the client do not matter, and its ``__main__`` is
not run again. A thread of the client's talks to each. When a worker dies its task fails with `WorkerDied`, and a new
one takes its place; the others do not notice.
"""

from __future__ import annotations

import atexit
import os
import queue
import socket
import subprocess
import sys
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from .failures import WorkerDied
from .worker import receive, send

__all__ = ["OwnWorkers", "end_workers", "own_workers"]


class OwnWorkers:
    """Run `n` processes, with `submit` like executors, of functions that `worker.py` knows.

    Threads: each `_serve` has a process and a socket of its own; the queue is all they share.
    """

    def __init__(self, n: int) -> None:
        self.n = n
        self._tasks: queue.SimpleQueue[tuple[Any, Future[Any]] | None] = queue.SimpleQueue()
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._threads = [
            threading.Thread(target=self._serve, args=(k,), name=f"pyop.map worker {k}", daemon=True) for k in range(n)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, task: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self._tasks.put((task, future))
        return future

    def processes(self) -> list[int]:
        """Return the process ids of the workers that have been started."""
        return [process.pid for process in list(self._processes.values()) if process.poll() is None]

    def close(self) -> None:
        """End the workers; those that compute are killed."""
        for _ in self._threads:
            self._tasks.put(None)
        for process in list(self._processes.values()):
            process.kill()

    def _serve(self, place: int) -> None:
        connection = None
        while (got := self._tasks.get()) is not None:
            task, future = got
            if not future.set_running_or_notify_cancel():
                continue
            try:
                if connection is None:
                    connection = self._start(place)
                send(connection, task)
                answer = receive(connection)
            except (EOFError, OSError):
                self._gone(place, connection, future)
                connection = None
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(answer)
        if connection is not None:
            connection.close()
        if place in self._processes:
            self._processes[place].wait()

    def _start(self, place: int) -> socket.socket:
        mine, theirs = socket.socketpair()
        with theirs:
            self._processes[place] = subprocess.Popen(
                [sys.executable, "-c", _BOOT, _ROOT, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )
        send(mine, sys.path)
        return mine

    def _gone(self, place: int, connection: socket.socket | None, future: Future[Any]) -> None:
        if connection is not None:
            connection.close()
        process = self._processes.pop(place, None)
        status = process.wait() if process is not None else None
        how = f"signal {-status}" if status is not None and status < 0 else f"exit status {status}"
        pid = process.pid if process is not None else "?"
        future.set_exception(WorkerDied(f"worker process {pid} ended ({how}) while it was computing"))


# The interpreter must find pyop before it is told the rest of the path.
_ROOT = str(Path(__file__).parents[2])
_BOOT = (
    "import sys; sys.path.insert(0, sys.argv[1]); from pyop.machines import worker; "
    "worker.main(int(sys.argv[2])); worker.leave()"
)
_lock = threading.Lock()
_kept: dict[int, OwnWorkers] = {}


def own_workers(n: int) -> OwnWorkers:
    """Return `n` workers, kept for the next call: starting Python takes longer than most maps."""
    with _lock:
        workers = _kept.get(n)
        if workers is None:
            workers = _kept[n] = OwnWorkers(n)
        return workers


def end_workers(n: int) -> None:
    """Kill them; the next call starts others."""
    with _lock:
        workers = _kept.pop(n, None)
    if workers is not None:
        workers.close()


@atexit.register
def _close() -> None:
    for n in list(_kept):
        end_workers(n)


def _forked() -> None:
    """Reset in a child of fork, which has none of the threads; the workers are the parent's."""
    global _lock
    _lock = threading.Lock()
    _kept.clear()


os.register_at_fork(after_in_child=_forked)
