"""Return results as arrays that a framework may write into, for frameworks that reuse the memory of arguments.

The function may keep its result, or return a view of its argument. pyop never writes into it, but the next step of a
framework's graph does. An array is passed on uncopied only if nobody else can have it, by its references.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["ALONE", "own", "unshared", "writable_copy"]


def own(parts: Sequence[Any]) -> list[Any]:
    """Return arrays in order, aligned and writable; those that somebody else may hold are copied.

    Parameters
    ----------
    parts : sequence of ndarray
        The caller holds its parts by this alone.

    Returns
    -------
    list of ndarray

    Examples
    --------
    >>> x = np.arange(3.0)
    >>> found = own((x, x[1:], np.arange(3.0)))
    >>> np.shares_memory(found[0], x), np.shares_memory(found[1], x)
    (False, False)
    """
    return [parts[k] if unshared(parts, k) else writable_copy(parts[k]) for k in range(len(parts))]


def writable_copy(x: Any) -> Any:
    """Return a copy that is a plain array."""
    return np.array(x, order="K", subok=False)


def _counts(parts: Sequence[Any], k: int) -> tuple[int, int]:
    base = parts[k].base
    return sys.getrefcount(parts[k]), 0 if base is None else sys.getrefcount(base)


def _of_nobody_else() -> tuple[int, int]:
    """Return the counts of an array that nobody else has; interpreters count references on the stack differently."""
    return _counts((np.empty(2)[:1],), 0)


# Of `sys.getrefcount(parts[0])`, where a tuple alone holds the array.
ALONE, _BASE_ALONE = _of_nobody_else()


def unshared(parts: Sequence[Any], k: int) -> bool:
    """Return whether nobody but `parts` holds this array, and a framework may write into it."""
    flags = parts[k].flags
    if not (flags.forc and flags.writeable and flags.aligned) or type(parts[k]) is not np.ndarray:
        return False
    del flags  # it holds the array
    base = parts[k].base
    if base is None:
        return sys.getrefcount(parts[k]) <= ALONE
    del base
    count, of_base = _counts(parts, k)
    base = parts[k].base
    return count <= ALONE and of_base <= _BASE_ALONE and type(base) is np.ndarray and bool(base.flags.owndata)
