"""The local variables of a function that runs: read, and put back to what they were.

A loop that is written down asks for the same iteration more than once. Each time the variables are what they were where
the loop asked first.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import FrameType
from typing import Any

__all__ = ["locals_of", "put"]


def locals_of(frame: FrameType) -> dict[str, Any]:
    """The variables that are bound.

    >>> import sys
    >>> from pyop.loops.frames import locals_of, put
    >>> def f(x):
    ...     before = locals_of(sys._getframe())
    ...     x, y = x + 1, 2
    ...     put(sys._getframe(), before, ["x", "y"])
    ...     return x
    >>> f(1)
    1
    """
    return dict(frame.f_locals)


if sys.version_info >= (3, 13):

    def put(frame: FrameType, wanted: dict[str, Any], names: Iterable[str]) -> None:
        """Bind variables as they are in `wanted`; one that is not stays as it is, for it is not read."""
        held = frame.f_locals
        for name in names:
            if name in wanted:
                held[name] = wanted[name]

else:
    import ctypes

    _write = ctypes.pythonapi.PyFrame_LocalsToFast
    _write.argtypes = [ctypes.py_object, ctypes.c_int]
    _write.restype = None

    def put(frame: FrameType, wanted: dict[str, Any], names: Iterable[str]) -> None:
        """Bind variables as they are in `wanted`; one that is not stays as it is, for it is not read."""
        held = frame.f_locals
        for name in names:
            if name in wanted:
                held[name] = wanted[name]
        _write(frame, 0)
