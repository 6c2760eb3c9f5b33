"""Plain arrays among the arguments of a recorded call, until its backward pass: a mask, an index, a constant may be a
buffer of the caller, which holds other numbers by then."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["give_back", "keep"]

_COPIED = 1 << 16  # bytes
_SAMPLED = 1024  # elements


class _Large:
    """An array that is too large for a copy, with some of its numbers."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array
        self.sample = self.sampled()

    def sampled(self) -> bytes:
        return self.array.flat[:: self.array.size // _SAMPLED | 1].tobytes()


def keep(leaf: Any) -> Any:
    """What a record keeps of an argument that is no Tensor."""
    if not issubclass(type(leaf), np.ndarray) or not leaf.flags.writeable or leaf.dtype.hasobject:
        return leaf
    return leaf.copy("K") if leaf.nbytes <= _COPIED else _Large(leaf)


def give_back(kept: Any) -> Any:
    """The argument, as it was.

    Raises
    ------
    RuntimeError
        Somebody has written into it.
    """
    if type(kept) is not _Large:
        return kept
    array = kept.array
    if kept.sample != kept.sampled():
        raise RuntimeError(
            f"an argument of a recorded call, {array.dtype}{list(array.shape)}, has been written into since, and its "
            "derivative needs what was there: compute with a copy (x.copy()), or change it after backward"
        )
    return array
