"""Inspect and release what the core keeps: dropped Python objects, and the memory of results.

C++ objects of pyop own Python objects, and may lose their last owner on a thread that does not hold the GIL. Such a
thread never waits for the GIL. It puts the reference on a list; the main thread, or the next caller of an op,
releases it. `stats` shows the list's counters, `collect` empties it at once.

The memory of a plan's result goes to a pool when the last reference to the array is dropped. The next result of that
size is made in it, because fresh memory costs a page fault for every 4 KiB written. `pool_stats` shows what the pool
keeps, `pool_trim` gives it back to the system, and `pool_limit` sets how much may be kept.

Kernels of pyop compute some of NumPy's functions with the same bits and many times as fast. `exact_kernels` lists
those that this process uses.
"""

from __future__ import annotations

from typing import TypedDict

from pyop import _core

__all__ = ["PoolStats", "Stats", "collect", "exact_kernels", "pool_limit", "pool_stats", "pool_trim", "stats"]


class Stats(TypedDict):
    """Hold the counters that `stats` returns.

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

    Examples
    --------
    >>> import pyop.debug
    >>> sorted(pyop.debug.stats())
    ['closed', 'deferred', 'drained', 'leaked']
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


class PoolStats(TypedDict):
    """Hold the counters that `pool_stats` returns.

    Attributes
    ----------
    limit : int
        How many bytes are kept at most. By default a sixteenth of the machine's memory (or of the
        container's), and no more than 512 MiB.
    kept : int
        How many bytes are kept now, for no array.
    blocks : int
        In how many blocks.
    hits : int
        How often a block that was kept has been used again.
    misses : int
        How often memory had to be asked of the system.
    evicted : int
        How many blocks were given back to the system: the oldest when the limit was reached, and all by
        `pool_trim`.

    Examples
    --------
    >>> import pyop.debug
    >>> pyop.debug.pool_stats()["limit"] > 0
    True
    """

    limit: int
    kept: int
    blocks: int
    hits: int
    misses: int
    evicted: int


def pool_stats() -> PoolStats:
    """Return the counters of the pool in which the memory of results waits to be used again.

    Returns
    -------
    PoolStats
        A new dictionary; see there for the meaning of each entry.

    Examples
    --------
    >>> import pyop.debug
    >>> s = pyop.debug.pool_stats()
    >>> s["kept"] <= s["limit"]
    True
    """
    return _core.pool_stats()


def pool_trim() -> int:
    """Return the memory that waits in the pool to the system.

    Arrays are not touched. It is worth calling when a program has done its large computations and continues to run.

    Returns
    -------
    int
        How many bytes were given back.

    Examples
    --------
    >>> import pyop.debug
    >>> _ = pyop.debug.pool_trim()
    >>> pyop.debug.pool_stats()["kept"]
    0
    """
    return _core.pool_trim()


def pool_limit(bytes: int) -> int:
    """Set how much memory may wait in the pool.

    Parameters
    ----------
    bytes : int
        The new limit, for the whole process. Zero: the memory of every result goes back to the system.

    Returns
    -------
    int
        The old limit.

    Raises
    ------
    TypeError
        If `bytes` is not an integer, is negative, or does not fit into the machine's word.

    Examples
    --------
    >>> import pyop.debug
    >>> old = pyop.debug.pool_limit(64 << 20)
    >>> pyop.debug.pool_stats()["limit"] == 64 << 20
    True
    >>> _ = pyop.debug.pool_limit(old)
    """
    return _core.pool_limit(bytes)


def exact_kernels() -> dict[str, str]:
    """Return which functions compiled code computes in vectors, with the bits of NumPy's loop.

    NumPy computes functions such as ``np.sin`` of float64 one number after the other, by libm. pyop knows most of
    these results by libm's error bound, computes them four at a time, and leaves the others to NumPy's own loop.
    Each function is tried out against that loop when a graph with it is first compiled, and is left alone for the
    life of the process where anything differs. ``PYOP_EXACT_KERNELS=0`` in the environment leaves all of them alone.

    Returns
    -------
    dict
        The name of each ufunc that has such a kernel on this processor, and ``"on"``, ``"not asked for"``, or
        ``"off: "`` and the reason. Empty on a processor without AVX2.

    Examples
    --------
    >>> import numpy as np, pyop, pyop.debug
    >>> @pyop.compile
    ... def f(x):
    ...     return np.sin(x)
    >>> _ = f(np.zeros(100))
    >>> pyop.debug.exact_kernels().get("sin", "off") != "not asked for"
    True
    """
    return _core.exact_kernels()
