"""Programs that end the process: each is run in a child, so that the run and the shrinking survive it."""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Callable
from typing import Any


class Crash(Exception):
    """The child was ended by a signal, after it had told so much of its progress."""

    def __init__(self, number: int, told: list[Any]) -> None:
        super().__init__(f"{signal.Signals(number).name}")
        self.told = told


def in_child(function: Callable[[Callable[[Any], None]], None]) -> list[Any]:
    """Call ``function(tell)`` in a forked child; what it told, in order."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(receive)
            with os.fdopen(send, "wb") as pipe:

                def tell(item: Any) -> None:
                    pickle.dump(item, pipe)
                    pipe.flush()

                function(tell)
            status = 0
        finally:
            os._exit(status)
    os.close(send)
    told = []
    with os.fdopen(receive, "rb") as pipe:
        while True:
            try:
                told.append(pickle.load(pipe))
            except EOFError:
                break
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        raise Crash(os.WTERMSIG(status), told)
    return told
