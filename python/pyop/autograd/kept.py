"""Keep the plain arrays among the arguments of a recorded call until its backward pass.

A mask, an index or a constant may be a buffer of the caller, which has changed by then.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core

__all__ = ["give_back", "keep"]

_COPIED = 1 << 16  # bytes
_ALWAYS_COPIED = 512


class _Printed:
    """Hold an array that is too large to copy, with a fingerprint of its numbers."""

    def __init__(self, array: np.ndarray[Any, Any], result: int) -> None:
        self.array, self.result = array, result
        self.print = self.now()

    def now(self) -> int:
        return _core.fingerprint(self.array, self.result)


def keep(leaf: Any, result: Any) -> Any:
    """Return what a record keeps of an argument that is no Tensor: a copy, if that is not larger than the result."""
    if not issubclass(type(leaf), np.ndarray) or leaf.dtype.hasobject or not _is_writeable(leaf):
        return leaf
    size = getattr(result, "nbytes", leaf.nbytes)
    copied = max(_ALWAYS_COPIED, min(_COPIED, size))
    return leaf.copy("K") if leaf.nbytes <= copied else _Printed(leaf, size)


def _is_writeable(array: Any) -> bool:
    """Return whether the memory is writeable, by this array or the one that it is a view of."""
    while issubclass(type(array), np.ndarray):
        if array.flags.writeable:
            return True
        array = array.base
    return array is not None


def give_back(kept: Any) -> Any:
    """Return the argument as it was; RuntimeError if it has been written into since."""
    if type(kept) is not _Printed:
        return kept
    array = kept.array
    if kept.print != kept.now():
        raise RuntimeError(
            f"an argument of a recorded call, {array.dtype}{list(array.shape)}, has been written into since, and its "
            "derivative needs what was there: compute with a copy (x.copy()), or change it after backward"
        )
    return array
