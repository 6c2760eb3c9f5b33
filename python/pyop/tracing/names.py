"""Find what the names in a function's code stand for, on every interpreter."""

from __future__ import annotations

import builtins
import sys
import types
from typing import Any

__all__ = ["imported", "of_loaded", "value_of"]

_LAZY: Any = getattr(types, "LazyImportType", None)  # CPython 3.15


def imported(x: Any) -> Any:
    """Return what a ``lazy import`` stands for, as the interpreter does at its first use; anything else as it is."""
    if _LAZY is None or type(x) is not _LAZY:
        return x
    try:
        return x.resolve()
    except ImportError:  # the function's own business, if it comes to that name
        return x


def of_loaded(*paths: str) -> tuple[type, ...]:
    """Return the types of these import paths; those of modules that nobody has imported are left out.

    >>> from pyop.tracing.names import of_loaded
    >>> of_loaded("collections.deque", "nowhere.Type")
    (<class 'collections.deque'>,)
    """
    homes = [(sys.modules.get(path.rpartition(".")[0]), path.rpartition(".")[2]) for path in paths]
    return tuple(getattr(home, name) for home, name in homes if isinstance(getattr(home, name, None), type))


def value_of(op: Any, function: types.FunctionType) -> Any:
    """Return what the name in an instruction of a function stands for; None if that is not known."""
    if op.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
        return imported(function.__globals__.get(op.argval, getattr(builtins, str(op.argval), None)))
    if op.opname == "LOAD_DEREF" and op.argval in function.__code__.co_freevars:
        try:
            return (function.__closure__ or ())[function.__code__.co_freevars.index(op.argval)].cell_contents
        except (ValueError, IndexError):
            return None
    return None
