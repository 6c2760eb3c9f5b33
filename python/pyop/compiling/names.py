"""What the names in a function's code stand for, on every interpreter."""

from __future__ import annotations

import types
from typing import Any

__all__ = ["imported"]

_LAZY: Any = getattr(types, "LazyImportType", None)  # CPython 3.15


def imported(x: Any) -> Any:
    """What a ``lazy import`` stands for, which the interpreter puts in its place at the first use of the name.

    Examples
    --------
    >>> from pyop.compiling.names import imported
    >>> imported(2.0)
    2.0
    """
    if _LAZY is None or type(x) is not _LAZY:
        return x
    try:
        return x.resolve()
    except ImportError:  # the function's own business, if it comes to that name
        return x
