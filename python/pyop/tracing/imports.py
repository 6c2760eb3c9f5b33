"""Find the modules that a function imports itself, when it runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FunctionType

from .code import facts

__all__ = ["imported_modules"]


def imported_modules(fn: FunctionType) -> Iterator[str]:
    """Yield the full names of the modules that the code of a function imports, packages before what is in them.

    >>> from pyop.tracing.imports import imported_modules
    >>> def f():
    ...     import os.path
    >>> list(imported_modules(f))
    ['os', 'os.path']
    """
    found = facts(fn.__code__)
    for level, name in found.imports:
        path = _absolute(fn, level, name)
        if path and (level >= 0 or path in sys.modules):
            yield from _with_packages(path)


def _absolute(fn: FunctionType, level: int, name: str) -> str:
    if level <= 0:
        return name
    package = fn.__globals__.get("__package__") or str(fn.__globals__.get("__name__", "")).rpartition(".")[0]
    parts = str(package).split(".")
    above = parts[: len(parts) - level + 1]
    return ".".join([*above, *([name] if name else [])])


def _with_packages(path: str) -> Iterator[str]:
    parts = path.split(".")
    for k in range(1, len(parts) + 1):
        yield ".".join(parts[:k])
