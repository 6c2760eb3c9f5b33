"""Send many small arrays of one kind as one: their pickles would take longer than computing with them does.

It unpickles as the same list. Results have memory of their own, so that keeping one does not keep all; arguments are
views of the array in which they have travelled.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["batch_of", "calls_batch"]

FEWEST = 8
LARGEST = 1 << 12  # bytes of an array: larger ones are sent without being copied


class _Batch:
    """Pickle a list as one array, or one for each argument."""

    def __init__(self, make: Any, *arrays: Any) -> None:
        self._made = make, arrays

    def __reduce__(self) -> Any:
        return self._made


class _ReadOnly(list[Any]):
    """Hold calls with arrays that are read-only already, so that `tasks.lend` does not look into the list."""


def batch_of(results: list[Any]) -> Any:
    """Return the object to pickle for a list of results."""
    column = _column(results)
    return results if column is None or not column[1] else _Batch(_apart, column[0])


def calls_batch(calls: Any) -> Any:
    """Return the object to pickle for a list of calls: pairs of a tuple and a dict."""
    if len(calls) < FEWEST or any(named for _, named in calls):
        return calls
    n = len(calls[0][0])
    if n == 0 or {len(args) for args, _ in calls} != {n}:
        return calls
    columns = [_column([args[k] for args, _ in calls]) for k in range(n)]
    arrays = [column[0] for column in columns if column is not None]
    return _Batch(_calls, *arrays) if len(arrays) == n else calls


def _column(arrays: list[Any]) -> tuple[Any, bool] | None:
    """Return all arrays in one, and whether all are writable; None if they are not of one kind, or the same ones."""
    first = arrays[0] if len(arrays) >= FEWEST else None
    if type(first) is not np.ndarray or not 0 < first.nbytes <= LARGEST:
        return None
    dtype, shape = first.dtype, first.shape
    if dtype.kind not in "biufc" or not dtype.isnative or dtype.metadata is not None:
        return None
    writable = True
    for x in arrays:
        if type(x) is not np.ndarray or x.dtype != dtype or x.shape != shape:
            return None
        flags = x.flags
        if not flags.c_contiguous or x.dtype.metadata is not None:
            return None
        writable = writable and flags.writeable
    if len(set(map(id, arrays))) < len(arrays):
        return None
    return np.concatenate([x[None] for x in arrays] if not shape else arrays).reshape(len(arrays), *shape), writable


def _apart(array: Any) -> list[Any]:
    return [array[k, ...].copy() for k in range(len(array))]


def _shown(array: Any) -> list[Any]:
    return [array[k, ...] for k in range(len(array))]


def _calls(*columns: Any) -> _ReadOnly:
    for each in columns:
        each.flags.writeable = False
    return _ReadOnly([(args, {}) for args in zip(*map(_shown, columns), strict=True)])
