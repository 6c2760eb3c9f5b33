"""Look at, and hurry, the release of Python objects that C++ threads have dropped.

The C++ objects of pyop own Python objects, and may lose their last owner on a thread that does not hold the
GIL. Such a thread never waits for the GIL: it puts the reference on a list, and the main thread, or whoever
calls an op next, releases it. These functions show the list's counters and empty it at once.
"""

from __future__ import annotations

from typing import TypedDict

from pyop import _core

__all__ = ["Stats", "collect", "stats"]


class Stats(TypedDict):
    """What `stats` returns.

    Attributes
    ----------
    deferred : int
        References dropped by threads without the GIL, and put on the list.
    drained : int
        Of those, how many have been taken off it and released. The difference is still waiting.
    leaked : int
        References dropped by such threads after the interpreter began to shut down. They are never
        released: there is no safe moment left. Zero in a program whose threads end before it does.
    closed : bool
        Whether that shutdown has begun.
    """

    deferred: int
    drained: int
    leaked: int
    closed: bool


def stats() -> Stats:
    """Return the counters of deferred release. After a fork, the child counts anew.

    Returns
    -------
    Stats
        A new dictionary; see there for the meaning of each entry.

    Examples
    --------
    >>> import pyop.debug
    >>> s = pyop.debug.stats()
    >>> s["leaked"], s["closed"]
    (0, False)
    """
    return _core.debug_stats()


def collect() -> int:
    """Release now whatever threads without the GIL have dropped.

    It happens by itself: on the main thread, between two bytecodes, soon after it has let other threads run;
    and at every call of an op or plan. Call this where neither will come soon and the memory matters, or in
    a test.

    Returns
    -------
    int
        How many references were released.

    Examples
    --------
    >>> import pyop.debug
    >>> _ = pyop.debug.collect()
    >>> pyop.debug.collect()
    0
    """
    return _core.collect()
